#include "policy/rehearsal.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <queue>
#include <utility>

#include "base/splitmix.hpp"

namespace hocket::policy {
namespace {

constexpr int starts = 4;               // plays, with different first phases of the applications
constexpr double most_shortened = 0.9;  // of a computing time, by its variation
// A job computes at least for this part of the longest period between two phases. Otherwise phases in immediate
// succession would make the rehearsal endless.
constexpr double least_computing = 0.02;

// Returns the n-th pseudo-random number in [0, 1), the same in every allocation.
double uniform(std::uint64_t n) { return static_cast<double>(splitmix(n * splitmix_step) >> 11U) * 0x1p-53; }

// Returns an approximately normal number with mean 0 and standard deviation 1. It sums six uniform numbers; the usual
// twelve (Irwin and Hall) are not needed.
double variation(std::uint64_t n) {
  double sum = 0;
  for (std::uint64_t i = 0; i < 6; ++i) sum += uniform(6 * n + i);
  return (sum - 3) * std::sqrt(2.0);
}

double compute_s(const Rehearsed& rehearsed, std::uint64_t job, std::uint64_t period, double least_s) {
  const double factor = 1 + rehearsed.spread * variation(job << 32U | period);
  return std::max(least_s, rehearsed.job.compute_s * std::max(1 - most_shortened, factor));
}

// Plays until `until_s` and returns the worth per second. The first play begins all jobs with computing; the others
// begin each somewhere in it.
double rehearse_once(const std::vector<Rehearsed>& jobs, std::size_t targets, double until_s, double least_s,
                     std::uint64_t start) {
  using Ask = std::pair<double, std::size_t>;  // when the job asks for its target, and which job
  std::priority_queue<Ask, std::vector<Ask>, std::greater<>> asks;
  std::vector<std::uint64_t> periods(jobs.size(), start << 24U);
  std::vector<double> free_at(targets, 0);
  const auto number = [](std::size_t i) { return static_cast<std::uint64_t>(i); };
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const double first = start == 0 ? 1 : uniform(number(i) << 32U | start);
    asks.emplace(first * compute_s(jobs[i], number(i), periods[i], least_s), i);
  }
  double worth = 0;
  while (asks.top().first < until_s) {
    const auto [at, i] = asks.top();
    asks.pop();
    const ContentionModel::CyclicJob& job = jobs[i].job;
    double& free = free_at[job.target];
    free = std::max(free, at) + job.io_s;
    worth += job.worth;
    asks.emplace(free + compute_s(jobs[i], number(i), ++periods[i], least_s), i);
  }
  // The period under way counts by the part that has passed. Otherwise an allocation could win by where the end falls.
  for (; !asks.empty(); asks.pop()) {
    const auto [at, i] = asks.top();
    const double period_s = jobs[i].job.compute_s + jobs[i].job.io_s;
    worth += jobs[i].job.worth * std::clamp(1 - (at - until_s) / period_s, 0.0, 1.0);
  }
  return worth / until_s;
}

}  // namespace

double rehearse(const std::vector<Rehearsed>& jobs, std::size_t targets, int periods) {
  if (jobs.empty()) return 0;
  double longest_s = 0;
  for (const Rehearsed& one : jobs) longest_s = std::max(longest_s, one.job.compute_s + one.job.io_s);
  double rate = 0;
  for (std::uint64_t start = 0; start < starts; ++start)
    rate += rehearse_once(jobs, targets, periods * longest_s, least_computing * longest_s, start);
  return rate / starts;
}

}  // namespace hocket::policy
