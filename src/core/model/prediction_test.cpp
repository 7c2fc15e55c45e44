#include "model/prediction.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

#include "model/testing.hpp"

namespace hocket::model {
namespace {

using testing::at;

class Prediction : public ::testing::Test {
 protected:
  // Adds a malleable application.
  Application& application(std::int64_t processes, const std::string& target = "fs") {
    const MemberId id{++members};
    const event::Hello hello{"job" + std::to_string(members), "A", "/bin/a", "mpich", "0.1", 1, processes};
    Application& made = *cluster.join({"n1", "", id}, hello, Time{}).application;
    made.target = target;
    made.malleability.malleable = true;
    made.malleability.processes = processes;
    return made;
  }
  // Reports `count` phases of `io` seconds, 100 iterations and `period` seconds apart; the last one starts at `last`.
  static void phases(Application& application, double last, double period, double io, int count = 4) {
    for (int i = count; i-- > 0;) report(application, last - i * period, io);
  }
  static void report(Application& application, double start, double io) {
    event::IoPhase phase;
    phase.start = at(start);
    phase.end = at(start + io);
    phase.io = from_s(io);
    phase.iteration = application.malleability.iteration + 100;
    phase.processes = application.malleability.processes;
    application.add_phase(phase, phase.end);
  }
  static void resized(Application& application, std::int64_t processes) {
    application.malleability.processes = processes;
    ++application.malleability.reconfigurations;
  }

  Cluster cluster;
  std::uint64_t members = 0;
};

TEST_F(Prediction, PaceIsWhatWasShownAtThePresentSize) {
  Application& app = application(64);
  EXPECT_FALSE(pace(app, 64));
  ASSERT_TRUE(app.curve.add({64, 9, 0, 9, 0, 1}).ok());
  EXPECT_FALSE(pace(app, 64)) << "a profile does not say how many iterations a period has";
  phases(app, 300, 70, 5);
  const auto shown = pace(app, 64);
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->iterations, 100);
  EXPECT_DOUBLE_EQ(shown->compute.value, 65);
  EXPECT_DOUBLE_EQ(shown->period_s(), 70);
  EXPECT_DOUBLE_EQ(shown->io_ratio(), 5.0 / 70);
}

TEST_F(Prediction, PaceElsewhereIsTheProfileScaledToWhatWasShown) {
  Application& app = application(64);
  for (const auto& point : {CurvePoint{32, 2, 0, 6, 0, 1}, {64, 1, 0, 4, 0, 1}, {128, 0.6, 0, 3, 0, 1}}) {
    ASSERT_TRUE(app.curve.add(point).ok());
  }
  phases(app, 300, 71, 6);
  const auto larger = pace(app, 128);
  ASSERT_TRUE(larger);
  EXPECT_DOUBLE_EQ(larger->compute.value, 65 * 0.6);
  EXPECT_DOUBLE_EQ(larger->io.value, 6 * 3.0 / 4);
  EXPECT_EQ(larger->iterations, 100);
  EXPECT_GT(pace(app, 90)->compute.uncertainty, larger->compute.uncertainty);

  resized(app, 128);
  EXPECT_DOUBLE_EQ(pace(app, 128)->compute.value, 65 * 0.6) << "it has not shown anything else yet";
  report(app, 350, 5);
  report(app, 400, 5);
  EXPECT_DOUBLE_EQ(pace(app, 128)->compute.value, 45);
  EXPECT_DOUBLE_EQ(pace(app, 64)->compute.value, 65) << "what it showed before";
}

TEST_F(Prediction, PaceOfAProgramThatIsNotMalleableIsKnownAtItsSizeOnly) {
  Application& app = application(4);
  app.malleability = {};
  phases(app, 300, 70, 5);
  EXPECT_TRUE(pace(app, 4));
  EXPECT_FALSE(pace(app, 8));
}

TEST_F(Prediction, ExpectsTheNextPhaseAfterThePace) {
  Application& app = application(64);
  phases(app, 300, 70, 5);
  const auto next = next_phases(app, at(310), Duration{-1}, 2);
  ASSERT_EQ(next.size(), 2u);
  EXPECT_EQ(next[0].start, at(370));
  EXPECT_EQ(next[1].start, at(440));
  EXPECT_EQ(next[0].uncertainty, Duration{});
  EXPECT_EQ(next_phases(app, at(310), from_s(2), 1)[0].uncertainty, from_s(2));
}

TEST_F(Prediction, ExpectsTheShiftedPhaseWhileAChangeIsUnderWay) {
  Application& app = application(64);
  phases(app, 300, 70, 5);
  app.expansion = {1, "phase-shift", 64, 900, at(360)};
  resized(app, 85);
  auto next = next_phases(app, at(330), Duration{-1}, 2);
  EXPECT_EQ(next[0].start, at(360));
  EXPECT_EQ(next[1].start, at(430)) << "at the original size again";
  resized(app, 64);
  report(app, 361, 5);
  next = next_phases(app, at(366), Duration{-1}, 1);
  EXPECT_EQ(next[0].start, at(431));
}

TEST_F(Prediction, ExpectsThePaceOfTheNewSizeAfterAChangeForGood) {
  Application& app = application(64);
  ASSERT_TRUE(app.curve.add({64, 1, 0, 5, 0, 1}).ok());
  ASSERT_TRUE(app.curve.add({128, 0.5, 0, 5, 0, 1}).ok());
  phases(app, 300, 70, 5);
  app.expansion = {1, "period-coupling", 64, 0, at(350)};
  resized(app, 128);
  EXPECT_EQ(next_phases(app, at(310), Duration{-1}, 1)[0].start, at(350));
  report(app, 350, 5);
  EXPECT_EQ(next_phases(app, at(360), Duration{-1}, 1)[0].start, at(355 + 32.5));
}

TEST_F(Prediction, APhaseThatWaitsMovesTheNextOne) {
  Application& app = application(64);
  phases(app, 300, 70, 5);
  app.count_requests(+1, 0, at(369));
  auto next = next_phases(app, at(375), Duration{-1}, 2);
  EXPECT_EQ(next[0].start, at(369));
  EXPECT_EQ(next[1].start, at(375 + 5 + 65));
  app.count_requests(-1, +1, at(378));
  next = next_phases(app, at(379), Duration{-1}, 2);
  EXPECT_EQ(next[1].start, at(378 + 5 + 65));
}

// CLARISSE+FlexMPI, section 5.2: 903.2 s and 911.0 s conflict, because 8.49 s of I/O count as 10.49 s.
TEST_F(Prediction, FindsThePapersConflict) {
  Application& first = application(128);
  Application& second = application(150);
  phases(first, 803.2, 100, 8.49);
  phases(second, 821.0, 90, 8.2);
  ASSERT_EQ(conflicts(cluster, second, at(830), from_s(2)).size(), 1u);
  EXPECT_NEAR(to_s(conflicts(cluster, second, at(830), Duration{0})[0].overlap), 903.2 + 8.49 - 911.0, 1e-6);
  const Conflict met = conflicts(cluster, second, at(830), from_s(2))[0];
  EXPECT_EQ(met.other, &first);
  EXPECT_EQ(met.start, at(911.0));
  EXPECT_EQ(met.of_other.duration, from_s(10.49));
  EXPECT_NEAR(to_s(met.overlap), 903.2 + 10.49 - 911.0, 1e-6);
  EXPECT_TRUE(conflicts(cluster, second, at(830), from_s(2), at(891)).empty()) << "shifted";
}

TEST_F(Prediction, MeetsOnOneTargetOnly) {
  Application& first = application(64);
  Application& second = application(64, "other-fs");
  phases(first, 300, 70, 5);
  phases(second, 300, 70, 5);
  EXPECT_TRUE(conflicts(cluster, first, at(310), from_s(2)).empty());
  Application& third = application(64);
  phases(third, 300, 70, 5);
  EXPECT_EQ(conflicts(cluster, first, at(310), from_s(2)).size(), 1u);
}

// Both write at the same times, but never to the same file system.
TEST_F(Prediction, ThoseThatAlternateMeetWhereTheyAreOnOneTarget) {
  const auto alternate = [](Application& app, int first) {
    for (int i = 0; i < 20; ++i) {
      app.target = (i + first) % 2 == 0 ? "scratch" : "home";
      report(app, 100 + 50 * i, 5);
    }
  };
  Application& first = application(64);
  Application& second = application(64);
  alternate(first, 0);
  alternate(second, 1);
  EXPECT_EQ(next_phases(first, at(1060), from_s(2), 2)[1].target, "home");
  EXPECT_TRUE(conflicts(cluster, first, at(1060), from_s(2)).empty());
  EXPECT_TRUE(conflicts(cluster, second, at(1060), from_s(2)).empty());
  Application& third = application(64);
  alternate(third, 0);
  const auto met = conflicts(cluster, first, at(1060), from_s(2));
  ASSERT_EQ(met.size(), 1u);
  EXPECT_EQ(met[0].other, &third);
  EXPECT_EQ(met[0].start, at(1100));
}

TEST_F(Prediction, PaceOfOneThatOnlyComputesIsOfItsIterations) {
  Application& app = application(4);
  ASSERT_TRUE(app.curve.add({4, 1, 0, 0, 0, 1}).ok());
  ASSERT_TRUE(app.curve.add({8, 0.6, 0, 0, 0, 1}).ok());
  EXPECT_FALSE(pace(app, 4)) << "a profile alone";
  for (int i = 0; i < 4; ++i) {
    event::Iterations said;
    said.iteration = 5 * i;
    said.iterations = 5;
    said.processes = 4;
    said.elapsed = said.cpu = from_s(10);
    app.add_iterations(said);
  }
  const auto shown = pace(app, 4);
  ASSERT_TRUE(shown);
  EXPECT_DOUBLE_EQ(shown->iterations, nominal_period_s / 2);
  EXPECT_DOUBLE_EQ(shown->compute.value, nominal_period_s);
  EXPECT_EQ(shown->io.value, 0);
  EXPECT_DOUBLE_EQ(pace(app, 8)->compute.value, 0.6 * nominal_period_s);
  EXPECT_TRUE(next_phases(app, at(100), Duration{-1}, 1).empty());
  report(app, 100, 1);
  EXPECT_TRUE(pace(app, 4));
  EXPECT_TRUE(next_phases(app, at(102), Duration{-1}, 1).empty()) << "one phase is no period";
}

TEST_F(Prediction, SaysWhetherThereIsAPeriod) {
  Application& regular = application(64);
  EXPECT_EQ(fit(regular), Fit::learning);
  report(regular, 100, 1);
  report(regular, 150, 1);
  EXPECT_EQ(fit(regular), Fit::learning);
  report(regular, 200, 1);
  EXPECT_EQ(fit(regular), Fit::regular);
  resized(regular, 80);
  report(regular, 240, 1);
  EXPECT_EQ(fit(regular), Fit::learning) << "at the new size";

  std::mt19937_64 random{7};
  std::exponential_distribution<double> gap{0.02};
  Application& irregular = application(64);
  double now = 100;
  for (int i = 0; i < 60; ++i) {
    report(irregular, now += 1 + gap(random), 1);
    if (i >= 20) {
      EXPECT_EQ(name_of(fit(irregular)), "irregular") << i;
    }
  }

  Application& reads_back = application(64);
  for (int i = 0; i < 30; ++i) {
    report(reads_back, 100 + 100 * i, 5);
    report(reads_back, 110 + 100 * i, 1);
    EXPECT_NE(fit(reads_back), Fit::irregular) << i;
  }
  EXPECT_EQ(fit(reads_back), Fit::regular);
}

TEST_F(Prediction, ScalesEachPhaseOfACycleToAnotherSize) {
  Application& app = application(64);
  ASSERT_TRUE(app.curve.add({64, 1, 0, 5, 0, 1}).ok());
  ASSERT_TRUE(app.curve.add({128, 0.5, 0, 5, 0, 1}).ok());
  for (int i = 0; i < 20; ++i) {
    report(app, 100 + 100 * i, 5);
    report(app, 115 + 100 * i, 1);
  }
  resized(app, 128);
  const auto next = next_phases(app, at(2016), Duration{-1}, 3);
  EXPECT_EQ(next[0].start, at(2016 + 42));
  EXPECT_EQ(next[1].start, at(2016 + 42 + 5 + 5));
  EXPECT_EQ(next[2].start, at(2016 + 42 + 5 + 5 + 1 + 42));
}

// The expected conflicts come from a comparison of every pair of phases.
TEST_F(Prediction, FindsWhatALoopOverAllPhasesFinds) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    cluster = Cluster{};
    std::mt19937_64 random{seed};
    const auto draw = [&](double low, double high) {
      return std::uniform_real_distribution<double>{low, high}(random);
    };
    std::vector<Application*> apps;
    for (int i = 0; i < 6; ++i) {
      apps.push_back(&application(64, i % 3 ? "fs" : "scratch"));
      const double period = draw(5, 400);
      phases(*apps.back(), draw(990 - period, 990), period, draw(0.1, period / 3));
    }
    const Duration uncertainty = from_s(draw(0, 2));
    for (const Application* subject : apps) {
      const PredictedPhase mine = next_phases(*subject, at(1000), uncertainty, 1)[0];
      const Time mine_ends = mine.start + mine.duration + uncertainty;
      std::vector<std::pair<Time, const Application*>> expected;
      for (const Application* other : apps) {
        if (other == subject || other->target != subject->target) continue;
        for (const PredictedPhase& theirs : next_phases(*other, at(1000), uncertainty, 200)) {
          const Time start = std::max(mine.start, theirs.start);
          if (start >= std::min(mine_ends, theirs.start + theirs.duration + uncertainty)) continue;
          expected.emplace_back(start, other);
          break;
        }
      }
      const auto by_time = [](const auto& a, const auto& b) { return a.first < b.first; };
      std::stable_sort(expected.begin(), expected.end(), by_time);
      std::vector<std::pair<Time, const Application*>> found;
      for (const Conflict& c : conflicts(cluster, *subject, at(1000), uncertainty))
        found.emplace_back(c.start, c.other);
      ASSERT_EQ(found, expected) << "seed " << seed;
    }
  }
}

TEST_F(Prediction, BearsAnyTimes) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    cluster = Cluster{};
    std::mt19937_64 random{seed};
    std::vector<Application*> apps;
    for (int i = 0; i < 4; ++i) {
      apps.push_back(&application(1 + static_cast<std::int64_t>(random() % 64)));
      for (int j = 0; j < 5; ++j) {
        event::IoPhase phase;
        phase.end = time_from_ns(static_cast<std::int64_t>(random() >> (1 + random() % 50)));
        phase.start = phase.end - Duration{static_cast<std::int64_t>(random() >> (1 + random() % 62))};
        phase.io = phase.end - phase.start;
        phase.iteration = static_cast<std::int64_t>(random() % 1000);
        apps.back()->add_phase(phase, phase.end);
      }
    }
    for (const Application* app : apps) {
      for (const Conflict& c : conflicts(cluster, *app, at(1000), seed % 2 ? Duration{-1} : from_s(2))) {
        EXPECT_GT(c.overlap, Duration{});
      }
    }
  }
}

}  // namespace
}  // namespace hocket::model
