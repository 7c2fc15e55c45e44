#include "policy/rehearsal.hpp"

#include <gtest/gtest.h>

namespace hocket::policy {
namespace {

TEST(Rehearsal, OneAloneNeverWaits) {
  const double rate = rehearse({{{8, 2, 30, 0}, 0}}, 1, 100);
  EXPECT_NEAR(rate, 3, 0.03);  // a worth of 30 every 10 s
}

TEST(Rehearsal, ThoseOnDifferentTargetsDoNotMeet) {
  const double rate = rehearse({{{8, 2, 10, 0}, 0}, {{8, 2, 10, 1}, 0}}, 2, 100);
  EXPECT_NEAR(rate, 2, 0.02);
}

TEST(Rehearsal, ASaturatedTargetGivesWhatItCan) {
  const std::vector<Rehearsed> jobs(10, {{8, 2, 1, 0}, 0.05});  // 10 times 2 s take longer than 10 s
  EXPECT_NEAR(rehearse(jobs, 1, 100), 0.5, 0.01);
}

// Equal periods that do not vary fall into step. After the first overlap no job waits, though mean values say so.
TEST(Rehearsal, SeesApplicationsFallIntoStep) {
  const std::vector<ContentionModel::CyclicJob> jobs(2, {8, 2, 10, 0});
  const ContentionModel by_chance{jobs, 1};
  EXPECT_LT(by_chance.rate(), 1.97);
  EXPECT_NEAR(rehearse({{jobs[0], 0}, {jobs[1], 0}}, 1, 200), 2, 0.02);
}

TEST(Rehearsal, AgreesWithMeanValuesWherePeriodsVary) {
  const std::vector<ContentionModel::CyclicJob> jobs{
      {77.7, 2.9, 5, 0}, {42.6, 5.2, 7, 0}, {24.7, 1.6, 2, 0}, {63.3, 7.8, 9, 0}};
  std::vector<Rehearsed> rehearsed;
  for (const ContentionModel::CyclicJob& job : jobs) rehearsed.push_back({job, 0.3});
  EXPECT_NEAR(rehearse(rehearsed, 1, 400) / ContentionModel(jobs, 1).rate(), 1, 0.01);
}

// The model reports no computing time between two phases in immediate succession.
TEST(Rehearsal, EndsAlsoWhereAJobHardlyComputes) {
  const double rate = rehearse({{{80, 20, 100, 0}, 0}, {{1e-9, 1e-9, 1, 1}, 0}}, 2, 50);
  EXPECT_NEAR(rate, 1 + 1 / 2.0, 0.05);
}

TEST(Rehearsal, IsTheSameEachTime) {
  const std::vector<Rehearsed> jobs{{{8, 2, 1, 0}, 0.1}, {{5, 1, 1, 0}, 0.2}};
  EXPECT_EQ(rehearse(jobs, 1, 30), rehearse(jobs, 1, 30));
}

}  // namespace
}  // namespace hocket::policy
