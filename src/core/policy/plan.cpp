#include "policy/plan.hpp"

#include <algorithm>
#include <limits>

namespace hocket::policy {
namespace {

// Part of its rest that a preempted job does at most before it stops. What remains keeps it in the plan.
constexpr double most_stopped = 1 - 1e-6;

ExpectedPhase ended(const PhaseJob& job, double end_s) {
  return {job.processes, job.spent_s + end_s, job.alone_s, end_s, job.flops, job.ran_s + end_s};
}

// A job that has the target, and what it has left alone.
struct Running {
  std::size_t job;
  double left_s;
};

}  // namespace

void expect(std::span<const PhaseJob> jobs, const Plan& plan, std::span<ExpectedPhase> expected) {
  std::vector<Running> running;
  std::size_t begun = 0;
  // A job cannot take longer to stop than it has left.
  const double stop_s = plan.interrupts ? std::min(jobs[0].stop_s, most_stopped * jobs[0].left_s) : 0;
  double now_s = stop_s;
  while (begun < plan.order.size() || !running.empty()) {
    // Each round either starts the next job or advances to the next end, or to the end of the delay.
    const bool held_back = begun == 1 && plan.at_once > 1 && now_s < plan.delay_s && !running.empty();
    if (begun < plan.order.size() && running.size() < plan.at_once && !held_back) {
      const std::size_t job = plan.order[begun];
      running.push_back({job, jobs[job].left_s - (job == 0 ? stop_s : 0)});
      ++begun;
      continue;
    }
    model::TargetUse use{static_cast<double>(running.size()), 0};
    for (const Running& one : running) use.demanded += jobs[one.job].demanded;
    double step_s = held_back ? plan.delay_s - now_s : std::numeric_limits<double>::infinity();
    for (const Running& one : running) {
      step_s = std::min(step_s, one.left_s * model::slowdown(jobs[one.job].slowness, use));
    }
    now_s += step_s;
    std::erase_if(running, [&](Running& one) {
      const double slower = model::slowdown(jobs[one.job].slowness, use);
      const bool ends = one.left_s * slower <= step_s;
      one.left_s -= step_s / slower;
      if (ends) expected[one.job] = ended(jobs[one.job], now_s);
      return ends;
    });
  }
}

std::vector<ExpectedPhase> expect_together(std::span<const PhaseJob> jobs) {
  Plan together;
  together.at_once = jobs.size();
  for (std::size_t i = 0; i < jobs.size(); ++i) together.order.push_back(i);
  std::vector<ExpectedPhase> expected(jobs.size());
  expect(jobs, together, expected);
  return expected;
}

}  // namespace hocket::policy
