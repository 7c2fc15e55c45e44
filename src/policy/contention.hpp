// How long applications wait for each other where a target belongs to one at a time, first come, first served: an
// approximate mean-value analysis of a closed queue with one server for each target and one customer for each
// application (Reiser and Lavenberg's arrival theorem with Schweitzer's approximation).
//
//   cycle_i = compute_i + wait_i + io_i
//   wait_i  = Σ over the others on its target: P(it is in I/O) io_j/2 + P(it waits) io_j
//             P(in I/O) = io_j / cycle_j, P(waits) = wait_j / cycle_j
//
// With B the same sum over all on the target, each wait is the solution of a quadratic equation in B, and B that of one
// equation, which is convex: Newton's method finds it.
//
// A phase takes about the same time each time: of the one that is under way, half is left on average. That phases meet
// by chance is assumed: applications of periods that hardly vary fall into step, and then wait less or more than this.
// Measured against a simulation of the same queue (contention_test.cpp): cycles within 1 % with periods that vary.
//
// Pure, not thread-safe.
#pragma once

#include <cstddef>
#include <vector>

namespace hocket::policy {

class Contention {
 public:
  struct Job {
    double compute_s = 0;
    double io_s = 0;
    double worth = 0;        // of a cycle: what `rate` counts
    std::size_t target = 0;  // number, from 0
  };

  Contention(std::vector<Job> jobs, std::size_t targets);

  std::size_t size() const { return jobs_.size(); }
  const Job& job(std::size_t i) const { return jobs_[i]; }
  double wait_s(std::size_t i) const { return wait_s_[i]; }
  double cycle_s(std::size_t i) const { return jobs_[i].compute_s + jobs_[i].io_s + wait_s_[i]; }
  // Worth in a second, of all jobs. Costs the number of jobs.
  double rate() const;

  // The job takes other times from the next `settle` on.
  void change(std::size_t i, double compute_s, double io_s);
  // The waits of all that is on the targets of changed jobs. Costs the jobs there, a few times.
  void settle();
  // By how much `rate` would change if the job took other times; first order in the waits of the others. Costs nothing.
  // Precondition: settled.
  double gain(std::size_t i, double compute_s, double io_s) const;

 private:
  // Of a target: sums over its jobs.
  struct Load {
    double backlog_s = 0;   // what somebody who comes finds before him
    double rate_per_s = 0;  // d rate / d wait, negated
    double feedback = 0;    // d backlog / d wait: waits make queues, which make waits
    bool changed = true;
  };
  void solve(std::size_t target);
  void sum_up(std::size_t target);

  std::vector<Job> jobs_;
  std::vector<double> wait_s_;
  std::vector<std::vector<std::size_t>> on_target_;
  std::vector<Load> loads_;
};

}  // namespace hocket::policy
