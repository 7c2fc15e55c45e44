#include "emulator/batches.hpp"

#include <gtest/gtest.h>

namespace hocket::emulator {
namespace {

struct Outcome {
  double spent_s = 0;
  int decisions = 0;
};

// Does a stage whose repetitions take `each_s`.
Outcome stage(Batches& batches, double length_s, double each_s) {
  Outcome outcome;
  batches.begin(length_s);
  while (const std::int64_t count = batches.next(outcome.spent_s)) {
    outcome.spent_s += each_s * static_cast<double>(count);
    outcome.decisions++;
  }
  return outcome;
}

TEST(Batches, LastAsLongAsTheStage) {
  Batches batches;
  for (const double each_s : {1e-6, 3e-5, 7e-4}) {
    const Outcome outcome = stage(batches, 0.01, each_s);
    EXPECT_NEAR(outcome.spent_s, 0.01, 2 * each_s);
    EXPECT_LE(outcome.decisions, 20);
  }
}

TEST(Batches, MakeUpForRepetitionsThatDoNotFit) {
  Batches batches;
  double sum_s = 0;
  for (int time = 0; time < 100; time++) sum_s += stage(batches, 0.01, 0.004).spent_s;
  EXPECT_NEAR(sum_s, 1, 0.004);
}

TEST(Batches, AMessageLongerThanItsTimeIsSentOnceAtMost) {
  Batches batches;
  double sum_s = 0;
  for (int time = 0; time < 100; time++) {
    const Outcome outcome = stage(batches, 0.01, 0.025);
    EXPECT_LE(outcome.decisions, 1);
    sum_s += outcome.spent_s;
  }
  EXPECT_NEAR(sum_s, 1, 0.026);
}

TEST(Batches, MakeUpForWhatFollowsTheLastRepetition) {
  Batches batches;
  double sum_s = 0;
  for (int time = 0; time < 100; time++) {
    const double spent_s = stage(batches, 0.01, 0.001).spent_s + 0.002;
    batches.end(spent_s);
    sum_s += spent_s;
  }
  EXPECT_NEAR(sum_s, 1, 0.004);
}

TEST(Batches, FollowAMessageThatBecomesSlower) {
  Batches batches;
  stage(batches, 0.01, 1e-6);
  EXPECT_NEAR(stage(batches, 0.01, 1e-3).spent_s, 0.01, 1e-3);
}

}  // namespace
}  // namespace hocket::emulator
