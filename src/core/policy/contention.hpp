// This model predicts how long applications wait for each other if a target belongs to one at a time, first come, first
// served. It is an approximate mean-value analysis of a closed queue, with one server for each target and one customer
// for each application (Reiser and Lavenberg's arrival theorem with Schweitzer's approximation). `predictive` and the
// bound on slowdowns (workload.hpp) use it.
//
//   cycle_i = compute_i + wait_i + io_i
//   wait_i  = Σ over the others on its target: P(it is in I/O) io_j/2 + P(it waits) io_j
//             P(in I/O) = io_j / cycle_j, P(waits) = wait_j / cycle_j
//
// Let B be the same sum over all applications on the target. Then each wait solves a quadratic equation in B, and B
// solves one convex equation, which Newton's method finds.
//
// The model makes two assumptions. A phase takes about the same time each time, so half of the phase under way is left
// on average. Phases meet by chance: applications whose periods hardly vary fall into step, and then wait less or more
// than predicted. If periods vary, cycles agree within 1 % with a simulation of the same queue (contention_test.cpp).
// Pure, not thread-safe.
#pragma once

#include <cstddef>
#include <vector>

namespace hocket::policy {

// The waits of all jobs. Times are mean seconds of one cycle: computing, waiting, I/O.
class ContentionModel {
 public:
  struct CyclicJob {
    double compute_s = 0;
    double io_s = 0;
    double worth = 0;        // that one cycle adds to `rate`, e.g. FLOP
    std::size_t target = 0;  // index, from 0
  };

  ContentionModel(std::vector<CyclicJob> jobs, std::size_t targets);

  std::size_t size() const { return jobs_.size(); }
  const CyclicJob& job(std::size_t i) const { return jobs_[i]; }
  double wait_s(std::size_t i) const { return wait_s_[i]; }
  double cycle_s(std::size_t i) const { return jobs_[i].compute_s + jobs_[i].io_s + wait_s_[i]; }
  // Returns the worth per second of all jobs. The cost is linear in the number of jobs.
  double rate() const;

  // Changes the times of a job. Waits follow at the next `settle`.
  void change(std::size_t i, double compute_s, double io_s);
  // Recomputes all waits on the targets of changed jobs, in a few passes over the jobs there.
  void settle();
  // Returns by how much `rate` would change if the job took these times. Waits of the other jobs are extrapolated to
  // first order. Takes constant time. Precondition: settled.
  double gain(std::size_t i, double compute_s, double io_s) const;

 private:
  // Sums over the jobs of one target.
  struct TargetLoad {
    double backlog_s = 0;   // seconds of work that a newcomer finds before it
    double rate_per_s = 0;  // -d rate / d wait
    double feedback = 0;    // d backlog / d wait: waits lengthen queues, and queues waits
    bool changed = true;
  };
  void solve(std::size_t target);
  void sum_up(std::size_t target);

  std::vector<CyclicJob> jobs_;
  std::vector<double> wait_s_;
  std::vector<std::vector<std::size_t>> on_target_;
  std::vector<TargetLoad> loads_;
};

}  // namespace hocket::policy
