#include "policy/expected_wait.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "policy/contenders.hpp"
#include "policy/plan.hpp"

namespace hocket::policy {
namespace {

constexpr double longest_s = 1e9;
// The assumptions about an application that is unknown, or that has done no I/O yet.
constexpr std::string_view usual_operation = "MPI_File_write_at_all";

// Returns the relative standard deviation of the I/O time of an application's phases. One that has shown fewer than two
// may be wrong by as much as its estimate.
double spread_of(const model::Application& application) {
  const model::MeanSpread io = application.history.duration();
  if (application.history.phases() < 2 || io.mean <= Duration{}) return 1;
  return std::min(1.0, to_s(io.spread) / to_s(io.mean));
}

bool is_built_in(const Policy& policy) {
  const auto all = policies();
  return std::find(all.begin(), all.end(), &policy) != all.end();
}

// Plays the queue of one target until the asker is served. Used for one call.
class QueuePlay {
 public:
  QueuePlay(const View& view, const Policy& policy, const model::Application* asker, std::int64_t bytes);
  WaitEstimate run();

 private:
  void ask_for_newcomer(const model::Application* asker, std::int64_t bytes);
  AccessDecision decide() const;
  bool is_served(const AccessDecision& decision) const;
  bool is_delayed(const AccessDecision& decision) const;
  const model::Application* application_of(const Grant& grant) const;
  // Adds seconds to the wait, and how far they may be off.
  void add(double wait_s, double spread_s) {
    estimate_.wait_s += wait_s;
    variance_s2_ += spread_s * spread_s;
  }
  void serve(const std::vector<const model::Application*>& together);
  void serve_holders(const AccessDecision& decision);
  void serve_next(const AccessDecision& decision);

  const View& view_;
  const Policy& policy_;
  const bool calls_policy_;
  model::Target target_;       // a copy, which the play changes
  model::Application nobody_;  // stands for an asker that the model does not know
  AppId asker_;
  WaitEstimate estimate_;
  double variance_s2_ = 0;
  bool all_known_ = true;
};

QueuePlay::QueuePlay(const View& view, const Policy& policy, const model::Application* asker, std::int64_t bytes)
    : view_(view), policy_(policy), calls_policy_(is_built_in(policy)), target_(view.target) {
  asker_ = asker == nullptr ? AppId{} : asker->id;
  target_.holders.remove_if([&](const model::Holder& one) { return !one.parts.meets(view.parts); });
  target_.waiting.remove_if([&](const model::Request& one) { return !one.parts.meets(view.parts); });
  const auto is_of_asker = [&](const model::Request& one) { return one.of == asker; };
  if (std::none_of(target_.waiting.begin(), target_.waiting.end(), is_of_asker)) ask_for_newcomer(asker, bytes);
}

// Adds the request that the asker would send now to the end of the queue.
void QueuePlay::ask_for_newcomer(const model::Application* asker, std::int64_t bytes) {
  model::Request request;
  request.target = &target_;
  request.bytes = bytes;
  request.since = view_.now;
  request.application = asker_;
  const auto last = asker == nullptr ? std::nullopt : asker->accesses.present_phase();
  if (last) {
    const auto phase = asker->accesses.phase(*last);
    request.kind = phase ? phase->next : *last;
    request.of = asker;
  } else {
    if (asker != nullptr) nobody_.processes = asker->computing_processes();
    nobody_.id = asker_;
    nobody_.arrived = view_.now;
    model::demand(nobody_, event::StartIo{{}, target_.name, {}, {}, bytes}, view_.now);
    request.kind = nobody_.accesses.asked(std::string{usual_operation}, target_.record, bytes, true, view_.now);
    request.of = &nobody_;
  }
  target_.waiting.push_back(request);
}

AccessDecision QueuePlay::decide() const {
  if (calls_policy_) {
    const Time now = view_.now + from_s(std::min(estimate_.wait_s, longest_s));
    return policy_.decide({view_.cluster, target_, now, view_.settings}, {});
  }
  if (!target_.holders.empty()) return {};
  return {.grants = {{target_.waiting.front().member, target_.waiting.front().id}}};
}

const model::Application* QueuePlay::application_of(const Grant& grant) const {
  const auto same = [&](const model::Request& one) { return one.member == grant.member && one.id == grant.request; };
  const auto found = std::find_if(target_.waiting.begin(), target_.waiting.end(), same);
  return found == target_.waiting.end() ? nullptr : found->of;
}

bool QueuePlay::is_served(const AccessDecision& decision) const {
  return std::any_of(decision.grants.begin(), decision.grants.end(), [&](const Grant& grant) {
    const model::Application* one = application_of(grant);
    return one != nullptr && one->id == asker_;
  });
}

bool QueuePlay::is_delayed(const AccessDecision& decision) const {
  return decision.again > view_.now &&
         std::any_of(decision.choices.begin(), decision.choices.end(),
                     [&](const Choice& one) { return one.application == asker_ && one.action == "delay"; });
}

// Adds the time for which these applications use the target together.
void QueuePlay::serve(const std::vector<const model::Application*>& together) {
  std::vector<PhaseJob> jobs;
  for (const model::Application* one : together) {
    model::Work work = model::work_of(*one, view_.target);
    // An application about which nothing is known is expected to need as long again as its phase has lasted.
    if (!work.known && one->demand.since != Time{})
      work.left_s = std::max(work.left_s, to_s(view_.now - one->demand.since));
    // A phase that has lasted longer than usual may end at any time; only the spread of whole phases is known.
    const double spread = spread_of(*one);
    add(0, spread < 1 ? spread * work.alone_s : work.left_s);
    all_known_ &= work.known;
    jobs.push_back({1, work.alone_s, work.left_s, 0,
                    model::slowness_of(*one, view_.target, view_.settings.interference),
                    model::demanded_by(*one, view_.target), 0});
  }
  double last_s = 0;
  for (const ExpectedPhase& phase : expect_together(jobs)) last_s = std::max(last_s, phase.end_s);
  add(last_s, 0);
  estimate_.ahead += static_cast<std::int64_t>(together.size());
}

// The target becomes free: its holders end, or stop for others.
void QueuePlay::serve_holders(const AccessDecision& decision) {
  std::vector<const model::Application*> ending;
  double longest_stop_s = 0;
  for (const model::Holder& holder : target_.holders) {
    const AppId id = holder.application->id;
    const auto& stopping = decision.interruptions;
    if (holder.pausing || std::find(stopping.begin(), stopping.end(), id) != stopping.end())
      longest_stop_s =
          std::max(longest_stop_s,
                   model::announced_stop_s(*holder.application, view_.target).value_or(holder.application->io.stop_s));
    else
      ending.push_back(holder.application);
  }
  if (!ending.empty()) serve(ending);
  if (ending.empty()) add(longest_stop_s, longest_stop_s);
  target_.holders.clear();
}

void QueuePlay::serve_next(const AccessDecision& decision) {
  std::vector<const model::Application*> next;
  for (const Grant& grant : decision.grants) {
    const model::Application* one = application_of(grant);
    if (one != nullptr && std::find(next.begin(), next.end(), one) == next.end()) next.push_back(one);
  }
  if (next.empty()) next.push_back(target_.waiting.front().of);
  serve(next);
  target_.waiting.remove_if(
      [&](const model::Request& one) { return std::find(next.begin(), next.end(), one.of) != next.end(); });
}

WaitEstimate QueuePlay::run() {
  const auto is_asker = [&](const model::Request& one) { return one.application == asker_; };
  while (true) {
    const AccessDecision decision = decide();
    if (is_served(decision)) break;
    if (!target_.holders.empty()) {
      if (is_delayed(decision)) {
        estimate_.wait_s = to_s(decision.again - view_.now);
        break;
      }
      serve_holders(decision);
    } else {
      if (decision.grants.empty() && is_asker(target_.waiting.front())) break;
      serve_next(decision);
    }
  }
  estimate_.wait_s = std::min(estimate_.wait_s, longest_s);
  estimate_.uncertainty_s = std::min(std::sqrt(variance_s2_), longest_s);
  if (!all_known_) estimate_.uncertainty_s.reset();
  return estimate_;
}

}  // namespace

WaitEstimate expected_wait(const View& view, const Policy& policy, const model::Application* asker,
                           std::int64_t bytes) {
  const auto is_asker = [&](const model::Holder& one) { return one.application == asker; };
  if (std::ranges::any_of(view.holders(), is_asker)) return {};
  return QueuePlay{view, policy, asker, bytes}.run();
}

}  // namespace hocket::policy
