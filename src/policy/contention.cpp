#include "policy/contention.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hocket::policy {
namespace {

constexpr int rounds_at_change = 3;
constexpr int most_rounds = 200;
constexpr double exact = 1e-7;         // of the backlog, from one round to the next
constexpr double most_feedback = 0.9;  // beyond it the first order says nothing

// Of one job of that cycle, to somebody who comes to its target.
double backlog(double io_s, double wait_s, double cycle_s) {
  return cycle_s > 0 ? (io_s / 2 + wait_s) * io_s / cycle_s : 0;
}

}  // namespace

Contention::Contention(std::vector<Job> jobs, std::size_t targets)
    : jobs_{std::move(jobs)}, wait_s_(jobs_.size()), on_target_(targets), loads_(targets) {
  for (std::size_t i = 0; i < jobs_.size(); ++i) on_target_[jobs_[i].target].push_back(i);
  settle();
}

double Contention::backlog_s(std::size_t i) const { return backlog(jobs_[i].io_s, wait_s_[i], cycle_s(i)); }

double Contention::rate() const {
  double sum = 0;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    if (cycle_s(i) > 0) sum += jobs_[i].worth / cycle_s(i);
  }
  return sum;
}

void Contention::sum_up(std::size_t target) {
  Load load;
  for (const std::size_t i : on_target_[target]) {
    const double cycle = cycle_s(i);
    if (!(cycle > 0)) continue;
    load.backlog_s += backlog_s(i);
    load.rate_per_s += jobs_[i].worth / (cycle * cycle);
    load.feedback += jobs_[i].io_s * (jobs_[i].compute_s + jobs_[i].io_s / 2) / (cycle * cycle);
  }
  load.feedback = std::min(load.feedback, most_feedback);
  loads_[target] = load;
}

void Contention::iterate(std::size_t target, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    const double before = loads_[target].backlog_s;
    // Halfway: with many jobs the full step swings about the solution.
    for (const std::size_t i : on_target_[target]) wait_s_[i] = (wait_s_[i] + std::max(0.0, before - backlog_s(i))) / 2;
    sum_up(target);
    if (std::abs(loads_[target].backlog_s - before) <= exact * before) return;
  }
}

void Contention::settle() {
  for (std::size_t target = 0; target < loads_.size(); ++target) {
    sum_up(target);
    iterate(target, most_rounds);
  }
}

void Contention::change(std::size_t i, double compute_s, double io_s) {
  jobs_[i].compute_s = compute_s;
  jobs_[i].io_s = io_s;
  sum_up(jobs_[i].target);
  iterate(jobs_[i].target, rounds_at_change);
}

double Contention::gain(std::size_t i, double compute_s, double io_s) const {
  const Job& job = jobs_[i];
  const Load& load = loads_[job.target];
  const double before = cycle_s(i);
  const double after = compute_s + io_s + wait_s_[i];  // it waits for the others, who do not change by it at first
  if (!(before > 0) || !(after > 0)) return 0;
  const double of_others = load.rate_per_s - job.worth / (before * before);
  const double more_backlog_s = (backlog(io_s, wait_s_[i], after) - backlog_s(i)) / (1 - load.feedback);
  return job.worth * (1 / after - 1 / before) - more_backlog_s * of_others;
}

}  // namespace hocket::policy
