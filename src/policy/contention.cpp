#include "policy/contention.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hocket::policy {
namespace {

constexpr int most_steps = 50;         // of Newton's method; it needs five or so
constexpr double exact = 1e-8;         // of the backlog, from one step to the next
constexpr double most_feedback = 0.9;  // beyond it the first order says nothing

// Of one job of that cycle, to somebody who comes to its target.
double backlog(double io_s, double wait_s, double cycle_s) {
  return cycle_s > 0 ? (io_s / 2 + wait_s) * io_s / cycle_s : 0;
}

// What a job waits where the backlog of all, itself included, is `all_s`, and by how much more where it is more: of
// wait = all - backlog(wait), the positive solution.
struct Wait {
  double wait_s;
  double slope;
};
Wait wait_for(const Contention::Job& job, double all_s) {
  const double here = all_s + job.compute_s;
  const double root = std::sqrt(here * here + (4 * job.compute_s + 2 * job.io_s) * job.io_s);
  const double slope = root > 0 ? (1 + here / root) / 2 : 1;
  return {(all_s - job.compute_s - 2 * job.io_s + root) / 2, slope};
}

}  // namespace

Contention::Contention(std::vector<Job> jobs, std::size_t targets)
    : jobs_{std::move(jobs)}, wait_s_(jobs_.size()), on_target_(targets), loads_(targets) {
  for (std::size_t i = 0; i < jobs_.size(); ++i) on_target_[jobs_[i].target].push_back(i);
  settle();
}

double Contention::rate() const {
  double sum = 0;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    if (cycle_s(i) > 0) sum += jobs_[i].worth / cycle_s(i);
  }
  return sum;
}

void Contention::sum_up(std::size_t target) {
  Load load;
  load.changed = false;
  for (const std::size_t i : on_target_[target]) {
    const double cycle = cycle_s(i);
    if (!(cycle > 0)) continue;
    load.backlog_s += backlog(jobs_[i].io_s, wait_s_[i], cycle);
    load.rate_per_s += jobs_[i].worth / (cycle * cycle);
    load.feedback += jobs_[i].io_s * (jobs_[i].compute_s + jobs_[i].io_s / 2) / (cycle * cycle);
  }
  load.feedback = std::min(load.feedback, most_feedback);
  loads_[target] = load;
}

void Contention::solve(std::size_t target) {
  const std::vector<std::size_t>& jobs = on_target_[target];
  if (jobs.size() == 1) {
    wait_s_[jobs.front()] = 0;
    return;
  }
  double most_s = 0;  // no backlog is more than the I/O of all
  for (const std::size_t i : jobs) most_s += jobs_[i].io_s;
  double all_s = std::min(loads_[target].backlog_s, most_s);  // near it where little has changed
  for (int step = 0; step < most_steps; ++step) {
    double excess_s = -static_cast<double>(jobs.size() - 1) * all_s;  // each waits for all but itself
    double slope = -static_cast<double>(jobs.size() - 1);
    for (const std::size_t i : jobs) {
      const Wait wait = wait_for(jobs_[i], all_s);
      wait_s_[i] = std::max(0.0, wait.wait_s);
      excess_s += wait.wait_s;
      slope += wait.slope;
    }
    if (std::abs(excess_s) <= exact * all_s * slope) return;
    all_s = slope > 0 ? std::clamp(all_s - excess_s / slope, 0.0, most_s) : most_s;  // convex: right from above
  }
}

void Contention::settle() {
  for (std::size_t target = 0; target < loads_.size(); ++target) {
    if (!loads_[target].changed) continue;
    solve(target);
    sum_up(target);
  }
}

void Contention::change(std::size_t i, double compute_s, double io_s) {
  jobs_[i].compute_s = compute_s;
  jobs_[i].io_s = io_s;
  loads_[jobs_[i].target].changed = true;
}

double Contention::gain(std::size_t i, double compute_s, double io_s) const {
  const Job& job = jobs_[i];
  const Load& load = loads_[job.target];
  const double before = cycle_s(i);
  const double after = compute_s + io_s + wait_s_[i];  // it waits for the others, who do not change by it at first
  if (!(before > 0) || !(after > 0)) return 0;
  const double of_others = load.rate_per_s - job.worth / (before * before);
  const double more_backlog_s =
      (backlog(io_s, wait_s_[i], after) - backlog(job.io_s, wait_s_[i], before)) / (1 - load.feedback);
  return job.worth * (1 / after - 1 / before) - more_backlog_s * of_others;
}

}  // namespace hocket::policy
