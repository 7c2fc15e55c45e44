// Dynamic interferes, waits, interrupts or delays, whichever minimises the operator's metric (CALCioM, sections III-A,
// 4, and IV-D). It handles any number of applications: each time the set of contenders changes, it decides anew from
// what each of them has left to do.
#include <algorithm>

#include "policy/search.hpp"

namespace hocket::policy {
namespace {

PhaseJob job_of(const View& view, const Contender& contender) {
  const model::Application& application = *contender.application;
  const model::Work work = model::work_of(application, view.target);
  const auto processes = static_cast<double>(std::max<std::int64_t>(1, application.computing_processes()));
  return {processes,
          work.alone_s,
          work.left_s,
          to_s(view.now - application.demand.since),
          model::slowness_of(application, view.target, view.settings.interference),
          model::demanded_by(application, view.target),
          model::announced_stop_s(application, view.target).value_or(application.io.stop_s)};
}

AccessDecision decide(const View& view, const event::Event&) {
  const Contenders all = contenders(view);
  if (all.waiting.empty() || all.pausing) return {};
  Contest contest;
  for (const auto* list : {&all.holders, &all.waiting}) {
    for (const Contender& contender : *list) {
      contest.contenders.push_back(&contender);
      contest.jobs.push_back(job_of(view, contender));
    }
  }
  contest.holders = all.holders.size();
  contest.interruptible = contest.holders == 1 && may_be_interrupted(view, *all.holders.front().application);
  return Search{view, contest}.decide();
}

}  // namespace

constexpr Policy dynamic{"dynamic", "interfere, wait, preempt or delay, whichever minimises the metric", decide};

}  // namespace hocket::policy
