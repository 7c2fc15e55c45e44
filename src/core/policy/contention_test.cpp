#include "policy/contention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <random>

namespace hocket::policy {
namespace {

// Simulates the same queue and returns the mean cycles in seconds. `jitter` is the relative standard deviation of the
// computing times.
std::vector<double> simulated_cycles(const std::vector<ContentionModel::CyclicJob>& jobs, double jitter,
                                     double until_s) {
  std::mt19937_64 random{7};
  std::normal_distribution<double> normal{1, jitter};
  using Arrival = std::pair<double, std::size_t>;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals;
  const auto compute = [&](std::size_t i) { return jobs[i].compute_s * std::max(0.1, normal(random)); };
  for (std::size_t i = 0; i < jobs.size(); ++i) arrivals.emplace(compute(i), i);
  std::vector<double> free(1 + std::max_element(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) {
                                 return a.target < b.target;
                               })->target);
  std::vector<double> cycles(jobs.size());
  std::vector<double> last(jobs.size());
  for (; arrivals.top().first < until_s; arrivals.pop()) {
    const auto [now, i] = arrivals.top();
    double& target_free = free[jobs[i].target];
    target_free = std::max(now, target_free) + jobs[i].io_s;
    cycles[i] += 1;
    last[i] = target_free;
    arrivals.emplace(target_free + compute(i), i);
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) cycles[i] = last[i] / cycles[i];
  return cycles;
}

void expect_like_simulation(const std::vector<ContentionModel::CyclicJob>& jobs, double jitter, double within) {
  const ContentionModel contention{jobs, 2};
  const auto simulated = simulated_cycles(jobs, jitter, 2e5);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    EXPECT_NEAR(contention.cycle_s(i) / simulated[i], 1, within) << "job " << i << " of " << jobs.size();
  }
}

TEST(Contention, NobodyWaitsAlone) {
  const ContentionModel contention{{{10, 2, 24, 0}, {5, 1, 6, 1}}, 2};
  EXPECT_EQ(contention.wait_s(0), 0);
  EXPECT_EQ(contention.wait_s(1), 0);
  EXPECT_DOUBLE_EQ(contention.rate(), 3);
}

TEST(Contention, CyclesAreThoseOfTheQueue) {
  expect_like_simulation({{77.7, 2.9, 0, 0}, {42.6, 5.2, 0, 0}, {24.7, 1.6, 0, 0}, {63.3, 7.8, 0, 0}}, 0.2, 0.01);
  expect_like_simulation({{6, 0.7, 0, 0}, {6.4, 1.3, 0, 0}, {7, 0.4, 0, 1}, {4, 0.4, 0, 0}, {7, 2, 0, 1}}, 0.2, 0.02);
}

TEST(Contention, ASaturatedTargetIsSharedByAll) {
  const std::vector<ContentionModel::CyclicJob> jobs(30, {20, 2, 0, 0});  // 30 times 2 s take longer than 22 s
  const ContentionModel contention{jobs, 1};
  EXPECT_NEAR(contention.cycle_s(0), 60, 2);
}

TEST(Contention, AChangeComesOutAsIfItHadBeenSoFromTheStart) {
  std::mt19937_64 random{3};
  std::uniform_real_distribution<double> time{1, 50};
  for (int round = 0; round < 50; ++round) {
    std::vector<ContentionModel::CyclicJob> jobs;
    for (std::size_t i = 0; i < 20; ++i) jobs.push_back({time(random), time(random) / 20, time(random), i % 3});
    ContentionModel contention{jobs, 3};
    for (std::size_t i = 0; i < jobs.size(); i += 4) {
      jobs[i].compute_s /= 2;
      contention.change(i, jobs[i].compute_s, jobs[i].io_s);
    }
    contention.settle();
    EXPECT_NEAR(contention.rate() / ContentionModel(jobs, 3).rate(), 1, 1e-5);
  }
}

TEST(Contention, TheGainOfASmallChangeIsNearTheOneThatComes) {
  std::mt19937_64 random{5};
  std::uniform_real_distribution<double> time{5, 50};
  for (int round = 0; round < 50; ++round) {
    std::vector<ContentionModel::CyclicJob> jobs;
    for (std::size_t i = 0; i < 8; ++i) jobs.push_back({time(random), time(random) / 10, time(random), i % 2});
    ContentionModel contention{jobs, 2};
    const double before = contention.rate();
    const double predicted = contention.gain(3, jobs[3].compute_s * 0.95, jobs[3].io_s * 0.95);
    contention.change(3, jobs[3].compute_s * 0.95, jobs[3].io_s * 0.95);
    contention.settle();
    EXPECT_NEAR(predicted, contention.rate() - before, 0.25 * predicted + 1e-4 * before);
  }
}

}  // namespace
}  // namespace hocket::policy
