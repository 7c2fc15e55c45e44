#include "policy/contention.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hocket::policy {
namespace {

constexpr int most_steps = 50;         // of Newton's method, which needs about five
constexpr double exact = 1e-8;         // relative change of the backlog at which Newton's method ends
constexpr double most_feedback = 0.9;  // beyond it the first-order estimate says nothing

// Returns the seconds of work that a newcomer finds of one job: half of its I/O if it is in I/O, all if it waits.
double backlog(double io_s, double wait_s, double cycle_s) {
  return cycle_s > 0 ? (io_s / 2 + wait_s) * io_s / cycle_s : 0;
}

// Returns the wait of a job if the backlog of all jobs, itself included, is `all_s`, and the wait's derivative by that
// backlog. The wait is the positive solution of wait = all - backlog(wait).
struct Wait {
  double wait_s;
  double slope;
};
Wait wait_for(const ContentionModel::CyclicJob& job, double all_s) {
  const double here = all_s + job.compute_s;
  const double root = std::sqrt(here * here + (4 * job.compute_s + 2 * job.io_s) * job.io_s);
  const double slope = root > 0 ? (1 + here / root) / 2 : 1;
  return {(all_s - job.compute_s - 2 * job.io_s + root) / 2, slope};
}

}  // namespace

ContentionModel::ContentionModel(std::vector<CyclicJob> jobs, std::size_t targets)
    : jobs_{std::move(jobs)}, wait_s_(jobs_.size()), on_target_(targets), loads_(targets) {
  for (std::size_t i = 0; i < jobs_.size(); ++i) on_target_[jobs_[i].target].push_back(i);
  settle();
}

double ContentionModel::rate() const {
  double sum = 0;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    if (cycle_s(i) > 0) sum += jobs_[i].worth / cycle_s(i);
  }
  return sum;
}

void ContentionModel::sum_up(std::size_t target) {
  TargetLoad load;
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

void ContentionModel::solve(std::size_t target) {
  const std::vector<std::size_t>& jobs = on_target_[target];
  if (jobs.size() == 1) {
    wait_s_[jobs.front()] = 0;
    return;
  }
  double most_s = 0;  // no backlog exceeds the I/O of all jobs
  for (const std::size_t i : jobs) most_s += jobs_[i].io_s;
  double all_s = std::min(loads_[target].backlog_s, most_s);  // the last solution is near if little has changed
  for (int step = 0; step < most_steps; ++step) {
    double excess_s = -static_cast<double>(jobs.size() - 1) * all_s;  // each job waits for all but itself
    double slope = -static_cast<double>(jobs.size() - 1);
    for (const std::size_t i : jobs) {
      const Wait wait = wait_for(jobs_[i], all_s);
      wait_s_[i] = std::max(0.0, wait.wait_s);
      excess_s += wait.wait_s;
      slope += wait.slope;
    }
    if (std::abs(excess_s) <= exact * all_s * slope) return;
    all_s = slope > 0 ? std::clamp(all_s - excess_s / slope, 0.0, most_s) : most_s;  // convex: converges from above
  }
}

void ContentionModel::settle() {
  for (std::size_t target = 0; target < loads_.size(); ++target) {
    if (!loads_[target].changed) continue;
    solve(target);
    sum_up(target);
  }
}

void ContentionModel::change(std::size_t i, double compute_s, double io_s) {
  jobs_[i].compute_s = compute_s;
  jobs_[i].io_s = io_s;
  loads_[jobs_[i].target].changed = true;
}

double ContentionModel::gain(std::size_t i, double compute_s, double io_s) const {
  const CyclicJob& job = jobs_[i];
  const TargetLoad& load = loads_[job.target];
  const double before = cycle_s(i);
  const double after = compute_s + io_s + wait_s_[i];  // to first order its own wait stays
  if (!(before > 0) || !(after > 0)) return 0;
  // The job's backlog grows the queue, and by `feedback` the queue grows itself: a geometric series.
  const double of_others = load.rate_per_s - job.worth / (before * before);
  const double more_backlog_s =
      (backlog(io_s, wait_s_[i], after) - backlog(job.io_s, wait_s_[i], before)) / (1 - load.feedback);
  return job.worth * (1 / after - 1 / before) - more_backlog_s * of_others;
}

}  // namespace hocket::policy
