// Tests phase shifting, and what both policies against interference have in common.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "policy/interference_testing.hpp"

namespace hocket::policy {
namespace {

using model::Application;
using testing::at;
using testing::Interference;

// The examples of CLARISSE+FlexMPI, section 4.2.1, save 50 s of 100 s, and of 200 s.
TEST(NeededSpeedup, IsEquationTwo) {
  EXPECT_DOUBLE_EQ(*needed_speedup(100, 50), 2);
  EXPECT_NEAR(*needed_speedup(200, 50), 1.33, 0.005);
  EXPECT_FALSE(needed_speedup(50, 50));
  EXPECT_FALSE(needed_speedup(50, 70));
  EXPECT_FALSE(needed_speedup(0, 0));
}

// Figs. 6 to 8 show this case: periods of 100 and 80 s, with 20 s of I/O from 80 s on and 10 s of I/O from 90 s on.
TEST_F(Interference, ShiftsTheShorterOfSimilarPeriodsWhichComesSecond) {
  settings.uncertainty = Duration{0};
  Application& first = application("A1", 64, 190, 10, 900);   // next at 1090, until 1100
  Application& second = application("A2", 64, 200, 20, 880);  // next at 1080, until 1100
  const CoreDecision decision = decide(phase_shift, first, 910);
  ASSERT_EQ(decision.changes.size(), 1u);
  const CoreChange& change = decision.changes[0];
  EXPECT_EQ(change.application, first.id);
  EXPECT_EQ(change.because_of, second.id);
  EXPECT_EQ(change.start_before, at(1090));
  // T_shift = T_io + T_ini = 10 + 10 s. With two reconfigurations of 1 s, T_reconf is 22 s of the 178.2 s that 99
  // iterations take.
  EXPECT_EQ(change.processes, static_cast<std::int64_t>(std::ceil(64 * 178.2 / (178.2 - 22))));
  EXPECT_LE(change.start_after, at(1070));
  EXPECT_GT(change.start_after, at(1067)) << "no more than a process' worth";
  EXPECT_EQ(change.at_iteration, 0);
  EXPECT_EQ(change.return_at_iteration, first.history.last()->iteration + 100);
}

// The application does no I/O in one period of ten.
TEST_F(Interference, IsBackBeforeThePhaseThoughPhasesAreLeftOut) {
  Application& app = application("A1", 64, 100, 10, 1000);
  double start = 1000;
  for (int i = 0; i < 40; ++i) {
    const bool left_out = i % 10 == 4;
    if (left_out) app.malleability.iteration += 100;
    start += left_out ? 190 : 100;
    report(app, start, 10);
    const auto stretch = stretch_ahead(app, app.history.last()->end);
    ASSERT_TRUE(stretch);
    EXPECT_EQ(stretch->end, app.history.last()->iteration + 100) << i;
  }
}

TEST_F(Interference, SaysThatAnApplicationHasNoPeriod) {
  Application& app = application("A1", 64, 100, 10, 1000);
  std::mt19937_64 random{11};
  std::exponential_distribution<double> gap{0.02};
  double start = 1000;
  for (int i = 0; i < 40; ++i) report(app, start += 11 + gap(random), 10);
  for (const CorePolicy* policy : {&phase_shift, &period_coupling}) {
    const CoreDecision decision = decide(*policy, app, start + 10);
    EXPECT_TRUE(decision.changes.empty());
    ASSERT_EQ(decision.left_alone.size(), 1u);
    EXPECT_TRUE(decision.left_alone[0].once);
    const auto* irregular = std::get_if<event::IrregularPhases>(&decision.left_alone[0].reason);
    ASSERT_NE(irregular, nullptr);
    EXPECT_GT(irregular->spread_s, 10);
  }
}

// The application writes, computes for 20 iterations, and reads back.
TEST_F(Interference, LooksAheadToTheNextPhaseOfACycle) {
  Application& app = application("A1", 64, 100, 10, 100);
  double start = 100;
  for (int i = 0; i < 60; ++i) {
    const bool reads = i % 2 == 1;
    app.malleability.iteration += reads ? -80 : -20;
    start += 10 + (reads ? 20 : 80);
    report(app, start, 10);
    if (i < 36) continue;
    const auto stretch = stretch_ahead(app, app.history.last()->end);
    ASSERT_TRUE(stretch);
    EXPECT_EQ(stretch->end, app.history.last()->iteration + (reads ? 80 : 20)) << i;
    EXPECT_NEAR(stretch->time_s, reads ? 79 : 19, 1e-6);
  }
}

TEST_F(Interference, ShiftsTheShorterOfSimilarPeriodsWhichComesFirst) {
  settings.uncertainty = Duration{0};
  application("A1", 64, 210, 10, 880);                        // next at 1090
  Application& second = application("A2", 64, 200, 20, 880);  // next at 1080, until 1100
  const CoreDecision decision = decide(phase_shift, second, 900);
  ASSERT_EQ(decision.changes.size(), 1u);
  EXPECT_EQ(decision.changes[0].application, second.id);
  // T_shift is the overlap: 10 s, until 1090.
  EXPECT_LE(decision.changes[0].start_after, at(1070));
  EXPECT_GT(decision.changes[0].start_after, at(1067));
}

TEST_F(Interference, ShiftsTheFirstOfEqualPeriods) {
  Application& first = application("A1", 64, 200, 10, 880);
  Application& second = application("A2", 64, 200, 10, 885);
  EXPECT_EQ(decide(phase_shift, first, 895).changes.at(0).application, first.id);
  EXPECT_EQ(decide(phase_shift, second, 895).changes.at(0).application, first.id);
}

TEST_F(Interference, ShiftsTheFirstOfVeryDifferentPeriods) {
  Application& rare = application("A1", 64, 700, 10, 380);   // next at 1080
  Application& often = application("A2", 64, 200, 10, 885);  // next at 1085
  EXPECT_EQ(decide(phase_shift, often, 895).changes.at(0).application, rare.id);
}

// Fig. 13 shows this case: the phase of the first application moves from 782.4 to 779.0 s.
TEST_F(Interference, SaysWhatItDoesInNumbers) {
  Application& first = application("A1", 128, 100, 5.1, 682.4);
  Application& second = application("A2", 150, 94, 5, 690);
  const CoreDecision decision = decide(phase_shift, second, 695.5);
  ASSERT_EQ(decision.changes.size(), 1u);
  EXPECT_EQ(decision.changes[0].because_of, first.id);
  const auto shift = reason<event::PhaseShift>(decision.changes[0]);
  EXPECT_NEAR(shift.conflict.own_start_s, 88.5, 0.05);
  EXPECT_NEAR(shift.conflict.other_start_s, 86.9, 0.05);
  EXPECT_NEAR(shift.conflict.uncertainty_s, 2, 1e-6);
  EXPECT_EQ(shift.iterations, 99);
  EXPECT_GT(shift.earlier_s, 3);
  EXPECT_GT(shift.saved_s, shift.cost_s);
}

TEST_F(Interference, ResizesTheOtherWhereOneCannotBe) {
  Application& first = application("A1", 64, 200, 10, 880);
  Application& second = application("A2", 64, 200, 10, 885);
  first.malleability.malleable = false;
  EXPECT_EQ(decide(phase_shift, second, 895).changes.at(0).application, second.id);
  second.malleability.resizing_to = 70;
  EXPECT_EQ(obstacle<event::NeitherResizable>(decide(phase_shift, second, 895)), event::NeitherResizable{});
}

TEST_F(Interference, LeavesAloneWhatTheModelDoesNotReach) {
  Application& first = application("A1", 64, 200, 10, 880);
  application("A2", 64, 200, 10, 885);
  first.curve = {};
  EXPECT_EQ(obstacle<event::Circumstance>(decide(phase_shift, first, 890)).what, event::circumstance::unknown_times);
  ASSERT_TRUE(first.curve.add({64, 1.9, 0, 10, 0, 1}).ok());
  ASSERT_TRUE(first.curve.add({128, 1.85, 0, 10, 0, 1}).ok());
  EXPECT_NEAR(obstacle<event::SpeedupMissing>(decide(phase_shift, first, 890)).known, 1.9 / 1.85, 1e-6);
}

TEST_F(Interference, LeavesAloneWhatThereAreNoCoresFor) {
  Application& first = application("A1", 64, 200, 10, 880);
  application("A2", 64, 200, 10, 885);
  cores.claim(AppId{99}, 1024 - 128 - 3, "n1");
  const CoreDecision decision = decide(phase_shift, first, 890);
  EXPECT_EQ(decision.left_alone.at(0).application, first.id);
  const auto missing = obstacle<event::CoresMissing>(decision);
  EXPECT_EQ(missing.available, 3);
  EXPECT_GT(missing.needed, 3);
}

TEST_F(Interference, LeavesAloneWhatIsTooLate) {
  application("A1", 64, 200, 10, 880);
  Application& second = application("A2", 64, 300, 10, 785);
  const auto saving = obstacle<event::SavingTooLarge>(decide(phase_shift, second, 1077));
  EXPECT_GE(saving.needed_s, saving.available_s);
}

TEST_F(Interference, LeavesAloneWhatWouldMeetAThird) {
  Application& first = application("A1", 64, 200, 10, 880);
  application("A2", 64, 200, 10, 885);
  application("A3", 64, 200, 10, 868);
  EXPECT_EQ(obstacle<event::ThirdConflict>(decide(phase_shift, first, 890)).third, "A3");
}

TEST_F(Interference, DecidesOnceAndWhenAPhaseIsOver) {
  Application& first = application("A1", 64, 200, 10, 880);
  application("A2", 64, 200, 10, 885);
  const CoreView view{cluster, cores, settings, at(890)};
  EXPECT_TRUE(phase_shift.decide(view, {at(890), {}, event::Malleable{}}, first.id).changes.empty());
  EXPECT_TRUE(phase_shift.decide(view, {at(890), {}, event::IoPhase{}}, AppId{}).changes.empty());
  carry_out(decide(phase_shift, first, 890).changes.at(0));
  const CoreDecision again = decide(phase_shift, first, 895);
  EXPECT_TRUE(again.changes.empty());
  EXPECT_TRUE(again.left_alone.empty());
}

// Adds measured costs of growing and of shrinking back.
void measured(Application& app, double stopped_s) {
  app.malleability.costs.add({64, 80, 16, ""}, from_s(stopped_s));
  app.malleability.costs.add({80, 64, 0, ""}, from_s(stopped_s));
}

TEST_F(Interference, SavesTheTimeThatItsResizesWereMeasuredToTakeToo) {
  Application& first = application("A1", 256, 200, 10, 880);
  application("A2", 64, 200, 10, 885);
  const std::int64_t assumed = decide(phase_shift, first, 890).changes.at(0).processes;
  measured(first, 2);
  const CoreChange change = decide(phase_shift, first, 890).changes.at(0);
  EXPECT_GT(change.processes, assumed);
  EXPECT_NEAR(reason<event::PhaseShift>(change).cost_s, 4, 1e-6);
}

TEST_F(Interference, LeavesAloneWhatSavesLessThanItsResizesCost) {
  settings.uncertainty = Duration{0};
  Application& first = application("A1", 64, 200, 10, 880);
  application("A2", 64, 200, 10, 889.93);  // 0.07 s of overlap, once: one wait ends it
  measured(first, 1.5);
  const auto not_worth_it = obstacle<event::NotWorthIt>(decide(phase_shift, first, 890));
  EXPECT_NEAR(not_worth_it.cost_s, 3, 1e-6);
  EXPECT_NEAR(not_worth_it.saved_s, 0.07, 1e-6);
  EXPECT_EQ(not_worth_it.periods, 4);
  measured(first, 0.001);
  for (int i = 0; i < 40; ++i) measured(first, 0.001);
  EXPECT_EQ(decide(phase_shift, first, 890).changes.size(), 1u);
}

// The phase with the shorter period is the later one. It comes earlier in each period, so it waits again and again.
TEST_F(Interference, CountsAnOverlapAsOftenAsItComesAgain) {
  settings.uncertainty = Duration{0};
  application("A1", 64, 200, 10, 880);                        // next at 1080, until 1090
  Application& second = application("A2", 64, 195, 10, 894);  // next at 1089
  measured(second, 7.5);
  const CoreDecision decision = decide(phase_shift, second, 905);
  ASSERT_EQ(decision.changes.size(), 1u);
  EXPECT_NEAR(reason<event::PhaseShift>(decision.changes[0]).cost_s, 15, 0.05);
  EXPECT_NEAR(reason<event::PhaseShift>(decision.changes[0]).saved_s, 16, 0.05)
      << "1 s now, and 5 s in each of the next three periods";
  for (int i = 0; i < 40; ++i) measured(second, 8.5);
  const auto not_worth_it = obstacle<event::NotWorthIt>(decide(phase_shift, second, 905));
  EXPECT_NEAR(not_worth_it.cost_s, 17, 0.05);
  EXPECT_NEAR(not_worth_it.saved_s, 16, 0.05);
}

TEST_F(Interference, WeighsWhatIsLostTogetherWhereTargetsAreShared) {
  settings.uncertainty = Duration{0};
  Application& first = application("A1", 64, 200, 10, 880);
  application("A2", 64, 200, 10, 885);  // 5 s of overlap
  measured(first, 3);
  const auto shared = [&](double slower) {
    const CoreView view{cluster, cores, settings, at(895), slower};
    return phase_shift.decide(view, event::Event{at(895), {}, event::IoPhase{}}, first.id);
  };
  EXPECT_TRUE(shared(1.05).changes.empty()) << "they hardly disturb each other";
  EXPECT_EQ(shared(2).changes.size(), 1u);
}

TEST_F(Interference, LeavesAloneForAGrowingTimeWhosePredictionsKeepMissing) {
  Application& first = application("A1", 64, 200, 10, 880);
  Application& second = application("A2", 64, 200, 10, 885);
  second.malleability.malleable = false;
  std::int64_t before = 0;
  for (int miss = 0; miss < 5; ++miss) {
    first.judge(false);
    const std::int64_t phases = first.reliance.until_phases - first.history.phases();
    EXPECT_GT(phases, before);
    before = phases;
    const CoreDecision decision = decide(phase_shift, first, 890);
    const auto neither = obstacle<event::NeitherResizable>(decision);
    const bool is_own = decision.left_alone.at(0).application == first.id;
    EXPECT_EQ(is_own ? neither.own_phases : neither.other_phases, phases);
    EXPECT_EQ(is_own ? neither.own_misses : neither.other_misses, first.reliance.misses);
  }
  first.reliance.until_phases = first.history.phases();
  EXPECT_EQ(decide(phase_shift, first, 890).changes.size(), 1u);
  first.judge(true);
  EXPECT_EQ(first.reliance.misses, 2);
  EXPECT_FALSE(first.is_left_alone());
}

// For random applications, changes never use more cores than are free, and they avoid the predicted overlap.
TEST_F(Interference, PredictedPhasesDoNotMeetAfterTheChange) {
  int shifted = 0;
  int coupled = 0;
  for (std::uint64_t seed = 0; seed < 900; ++seed) {
    std::mt19937_64 random{seed};
    const auto draw = [&](double low, double high) {
      return std::uniform_real_distribution<double>{low, high}(random);
    };
    cluster = model::Cluster{};
    cores = model::Cores{{{"n1", static_cast<std::int64_t>(draw(100, 600))}}};
    settings.uncertainty = seed % 3 == 0 ? Duration{-1} : from_s(draw(0, 3));
    std::vector<Application*> apps;
    const int count = 2 + static_cast<int>(random() % 4);
    for (int i = 0; i < count; ++i) {
      const double period = draw(60, 120) * (random() % 4 == 0 ? 3 : 1);
      const double last = draw(995 - period, 990);
      apps.push_back(&application(std::string{"A"}.append(std::to_string(i)),
                                  10 + static_cast<std::int64_t>(random() % 80), period, draw(1, 8), last));
    }
    for (const Application* subject : apps) {
      const CorePolicy& policy = seed % 2 ? phase_shift : period_coupling;
      const CoreDecision decision = decide(policy, *subject, 1000);
      for (const CoreChange& change : decision.changes) {
        const Application& k = *cluster.find(change.application);
        ASSERT_GT(change.processes, k.computing_processes());
        ASSERT_LE(change.processes - k.computing_processes(), cores.free()) << "seed " << seed;
        ASSERT_FALSE(is_none(change.reason));
        carry_out(change);
        if (change.return_at_iteration == 0) {
          ++coupled;
          continue;
        }
        ++shifted;
        ASSERT_LT(change.start_after, change.start_before) << "seed " << seed;
        ASSERT_GT(change.start_after, at(1000)) << "seed " << seed;
        ASSERT_GT(change.return_at_iteration, k.malleability.iteration) << "seed " << seed;
        ASSERT_TRUE(model::conflicts(cluster, k, at(1000), settings.uncertainty).empty()) << "seed " << seed;
      }
    }
  }
  EXPECT_GT(shifted, 50);
  EXPECT_GT(coupled, 20);
}

}  // namespace
}  // namespace hocket::policy
