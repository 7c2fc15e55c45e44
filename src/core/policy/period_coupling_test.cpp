// Tests period coupling: which size it chooses, that it takes back an overshoot, and that sizes do not ratchet.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "policy/interference_testing.hpp"

namespace hocket::policy {
namespace {

using model::Application;
using testing::at;
using testing::Interference;

class PeriodCoupling : public Interference {
 protected:
  // Returns two applications, of which the second was coupled to the first: by its curve both have 72.1 s now.
  std::pair<Application&, Application&> coupled() {
    Application& first = application("A1", 64, 72.1, 4.7, 900);
    Application& second = application("A2", 50, 90.7, 4.7, 878);
    carry_out(decide(period_coupling, first, 905).changes.at(0));
    EXPECT_EQ(second.malleability.processes, 64);
    return {first, second};
  }
  // Lets both show their periods, `phases` times the second, so that their next phases meet.
  void show(Application& first, double period, Application& second, double period_of_second, int phases = 8) {
    const double meet_s = last_of(first) + 40 * period;
    for (int i = 39; i > 0; --i) report(first, meet_s - i * period, 4.7);
    for (int i = phases; i > 0; --i) report(second, meet_s + 2 - i * period_of_second, 4.7);
    first.expansion.start_after = second.expansion.start_after = {};
    now = std::max(last_of(first), last_of(second)) + 4.7;
  }
  static double last_of(const Application& app) { return to_s(app.history.last()->start - at(0)); }
  // Returns the permanent change that is decided on.
  CoreChange correction(const Application& subject) {
    const CoreDecision decision = decide(period_coupling, subject, now);
    EXPECT_EQ(decision.changes.size(), 1u);
    if (decision.changes.empty()) return {};
    EXPECT_EQ(decision.changes.front().return_at_iteration, 0);
    return decision.changes.front();
  }
  bool couples(const Application& subject) {
    const CoreDecision decision = decide(period_coupling, subject, now);
    return !decision.changes.empty() && decision.changes.front().return_at_iteration == 0;
  }

  // The outcome of two applications that ran together.
  struct Ending {
    int changed = 0;  // applications that have not their original size
    int resizes = 0;
    int shrinks = 0;
    double too_short = 0;  // part by which a coupled period is below that of the other
  };
  Ending run_together(std::uint64_t seed);

  double now = 0;  // in seconds
};

PeriodCoupling::Ending PeriodCoupling::run_together(std::uint64_t seed) {
  constexpr int phases = 400;
  std::mt19937_64 random{seed};
  const auto draw = [&](double low, double high) { return std::uniform_real_distribution<double>{low, high}(random); };
  struct Program {
    Application* app;
    double compute_s, io_s, exponent, next_s;
    double period_s(std::int64_t at_size) const {
      const auto ratio = static_cast<double>(original) / static_cast<double>(at_size);
      return io_s + compute_s * std::pow(ratio, exponent);
    }
    double period_s() const { return period_s(app->malleability.processes); }
    std::int64_t original;
  };
  cluster = model::Cluster{};
  cores = model::Cores{{{"n1", 1024}}};
  settings.reconfiguration = from_s(0.05);
  std::vector<Program> programs;
  for (const char* name : {"A1", "A2"}) {
    const std::int64_t size = 20 + static_cast<std::int64_t>(random() % 60);
    const double compute_s = draw(60, 110);
    const double io_s = draw(3, 8);
    const double last_s = draw(900, 950);
    Application& app = application(name, size, compute_s + io_s, io_s, last_s);
    programs.push_back({&app, compute_s, io_s, draw(0.5, 1.8), last_s + compute_s + io_s, size});
  }
  Ending end;
  for (int i = 0; i < phases; ++i) {
    Program& next = programs[programs[0].next_s < programs[1].next_s ? 0 : 1];
    next.app->expansion.start_after = {};
    report(*next.app, next.next_s, next.io_s);
    const double done_s = next.next_s + next.io_s;
    next.next_s += next.period_s() * draw(0.997, 1.003);
    for (const CoreChange& change : decide(period_coupling, *next.app, done_s).changes) {
      if (change.return_at_iteration != 0) continue;  // without shifts, the two meet again
      end.shrinks += change.processes < cluster.find(change.application)->malleability.processes;
      ++end.resizes;
      carry_out(change);
    }
  }
  for (const Program& one : programs) {
    if (one.app->malleability.processes == one.original) continue;
    const Program& other = &one == programs.data() ? programs[1] : programs[0];
    ++end.changed;
    end.too_short = 1 - one.period_s() / other.period_s();
  }
  return end;
}

// Use case D runs one program twice, on 64 and on 50 processes.
TEST_F(PeriodCoupling, CouplesTheLongerPeriodToTheShorter) {
  Application& first = application("A1", 64, 72.1, 4.7, 900);
  Application& second = application("A2", 50, 90.7, 4.7, 878);
  const CoreDecision decision = decide(period_coupling, first, 905);
  ASSERT_EQ(decision.changes.size(), 1u);
  const CoreChange& change = decision.changes[0];
  EXPECT_EQ(change.application, second.id);
  EXPECT_EQ(change.processes, 64);
  EXPECT_EQ(change.return_at_iteration, 0);
  EXPECT_NEAR(to_s(change.period_after), 72.1, 1);
  const auto coupling = reason<event::PeriodCoupling>(change);
  EXPECT_NEAR(coupling.period_s, 90.7, 1e-6);
  EXPECT_NEAR(coupling.coupled_period_s, to_s(change.period_after), 1e-6);
  EXPECT_EQ(coupling.multiple, 1);
}

TEST_F(PeriodCoupling, CouplesToAMultiple) {
  application("A1", 64, 220, 10, 850);                        // next at 1070
  Application& second = application("A2", 64, 480, 10, 595);  // next at 1075
  const CoreDecision decision = decide(period_coupling, second, 865);
  ASSERT_EQ(decision.changes.size(), 1u);
  EXPECT_NEAR(to_s(decision.changes[0].period_after), 440, 5);
  const auto coupling = reason<event::PeriodCoupling>(decision.changes[0]);
  EXPECT_EQ(coupling.multiple, 2);
  EXPECT_NEAR(coupling.other_period_s, 220, 1e-6);
}

TEST_F(PeriodCoupling, ShiftsOncePeriodsFitOrCannot) {
  Application& first = application("A1", 64, 200, 10, 880);
  application("A2", 64, 200.5, 10, 885);
  EXPECT_GT(decide(period_coupling, first, 896).changes.at(0).return_at_iteration, 0) << "they fit";
  cluster = model::Cluster{};
  cores = model::Cores{{{"n1", 180}}};
  Application& third = application("A3", 64, 200, 10, 880);
  application("A4", 64, 380, 10, 705);
  settings.reconfiguration = from_s(0.1);  // they meet again soon: the shift saves little
  EXPECT_GT(decide(period_coupling, third, 896).changes.at(0).return_at_iteration, 0)
      << "380 s are nearer to 400 s, no expansion makes a period longer, and 52 cores do not lead to 200 s";
}

TEST_F(PeriodCoupling, TakesTheNextMultipleIfTheNearestCannotBeReached) {
  Application& first = application("A1", 64, 200, 10, 880);
  Application& second = application("A2", 64, 380, 10, 705);
  const CoreChange change = decide(period_coupling, first, 896).changes.at(0);
  EXPECT_EQ(change.application, second.id);
  EXPECT_EQ(change.processes, 125);
  EXPECT_EQ(reason<event::PeriodCoupling>(change).multiple, 1);
}

// ---- corrections -------------------------------------------------------------------------------------------------

TEST_F(PeriodCoupling, TakesBackAnOvershoot) {
  const auto& [first, second] = coupled();
  show(first, 72.1, second, 65);
  const CoreChange change = correction(first);
  EXPECT_EQ(change.application, second.id) << "it overshot, although the other has the longer period now";
  // 90.7 s at 50 processes and 65 s at 64 lead to 72.1 s at 59.
  EXPECT_EQ(change.processes, 59);
  EXPECT_NEAR(to_s(change.period_after), 72.1, 0.8);
  EXPECT_EQ(reason<event::PeriodCoupling>(change).multiple, 1);
}

TEST_F(PeriodCoupling, GrowsAgainAfterAnUndershoot) {
  const auto& [first, second] = coupled();
  show(first, 72.1, second, 80);
  const CoreChange change = correction(first);
  EXPECT_EQ(change.application, second.id);
  EXPECT_GT(change.processes, 64);
  EXPECT_NEAR(to_s(change.period_after), 72.1, 1);
}

TEST_F(PeriodCoupling, WaitsUntilTheNewPeriodIsKnown) {
  const auto& [first, second] = coupled();
  show(first, 72.1, second, 65, 2);  // one whole period
  EXPECT_FALSE(couples(first));
}

TEST_F(PeriodCoupling, GivesBackNoMoreThanItGave) {
  const auto& [first, second] = coupled();
  show(first, 90.5, second, 65);  // the first has become slower
  const CoreChange change = correction(first);
  EXPECT_EQ(change.application, second.id);
  EXPECT_EQ(change.processes, 50);
}

TEST_F(PeriodCoupling, FollowsOnePartnerWhileThatRuns) {
  const auto& [first, second] = coupled();
  show(first, 72.1, second, 72.1);
  Application& third = application("A3", 64, 60, 4.7, last_of(second) + 78.1 - 60);
  now = last_of(third) + 4.7;
  EXPECT_FALSE(couples(third)) << "the second would fit the first no more";
  cluster.leave(*first.members.front());
  EXPECT_TRUE(couples(third));
}

// The two applications scale otherwise than their curves say. They meet again and again, and each resize shows what it
// really leads to.
TEST_F(PeriodCoupling, SizesComeToRestAndAnOvershootIsTakenBack) {
  int corrected = 0;
  int taken_back = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Ending end = run_together(seed);
    ASSERT_LE(end.changed, 1) << "seed " << seed << ": the two grew in turn";
    ASSERT_LE(end.resizes, 10) << "seed " << seed;
    ASSERT_LT(end.too_short, 0.05) << "seed " << seed << ": an overshoot has stayed";
    corrected += end.resizes > 1;
    taken_back += end.shrinks > 0;
  }
  EXPECT_GT(corrected, 60);
  EXPECT_GT(taken_back, 30);
}

}  // namespace
}  // namespace hocket::policy
