// This part of AccessController lets several policies decide about one target, each about the applications under it.
//
// Each policy sees all holders and all waiting requests, because they all load the target. Only what it decides about
// its own applications is carried out: an application under `interfere` never waits, and one under `fcfs` waits for all
// holders. A holder is interrupted, or limited to a bandwidth share, by its own policy only.
#include <algorithm>
#include <utility>

#include "base/saturating.hpp"
#include "coordinator/arbitration/access.hpp"
#include "coordinator/arbitration/parts.hpp"
#include "coordinator/arbitration/places.hpp"

namespace hocket::coordinator {

using model::Request;
using model::Target;

policy::AccessDecision AccessController::decision_of(const Moment& moment, const Target& target,
                                                     const model::PartSet& parts, const policy::Policy& policy,
                                                     bool& prefers_others) const {
  if (policies_.are_all_alike()) {
    const policy::View view{cluster_, target, moment.now, access_settings_, parts};
    policy::AccessDecision decision = policy.decide(view, moment.event);
    prefers_others = keep_own(decision, view);
    return decision;
  }
  policy::AccessSettings settings = access_settings_;
  settings.most_slowdown = most_slowdown_of(settings_, policy);
  const policy::View view{cluster_, target, moment.now, settings, parts};
  policy::AccessDecision decision = policy.decide(view, moment.event);
  prefers_others = keep_own(decision, view);
  const auto of_another = [&](AppId app) { return &policies_.of(app, target.name) != &policy; };
  std::erase_if(decision.grants, [&](const policy::Grant& grant) {
    const model::Member* member = cluster_.find(grant.member);
    return member == nullptr || of_another(member->application->id);
  });
  std::erase_if(decision.interruptions, of_another);
  std::erase_if(decision.shares, [&](const policy::BandwidthShare& share) { return of_another(share.application); });
  std::erase_if(decision.choices, [&](const policy::Choice& choice) {
    return of_another(choice.application) || (choice.action == "interrupt" && of_another(choice.because_of));
  });
  return decision;
}

// Applications under other policies may hold the target for ever, one after the other, as they do not take turns with
// this one. So the time slice bounds the wait for them.
std::optional<Time> AccessController::beside_others_at(const Target& target, const Request& request) const {
  const policy::Policy* own = &policies_.of(request.application, target.name);
  const auto meets = [&](const model::Holder& holder) { return holder.parts.meets(request.parts); };
  const bool waits_for_its_own =
      std::any_of(target.holders.begin(), target.holders.end(), [&](const model::Holder& holder) {
        return meets(holder) && &policies_.of(holder.application->id, target.name) == own;
      });
  if (std::none_of(target.holders.begin(), target.holders.end(), meets) || waits_for_its_own) return std::nullopt;
  return saturating_sum(request.since, settings_.turn);
}

std::optional<Time> AccessController::beside_others(const Target& target) const {
  std::optional<Time> first;
  if (policies_.are_all_alike()) return first;
  for (const Request& request : target.waiting) {
    if (const auto at = beside_others_at(target, request)) first = std::min(first.value_or(*at), *at);
  }
  return first;
}

void AccessController::grant_beside_others(const Moment& moment, const Target& target) {
  if (policies_.are_all_alike()) return;
  for (auto place = target.waiting.begin(); place != target.waiting.end();) {
    const auto at = beside_others_at(target, *place);
    if (!at || *at > moment.now) {
      ++place;
      continue;
    }
    model::Member& member = *cluster_.find(place->member);
    apply(moment, member, *find(member, place->id), RequestInput::grant);
    place = target.waiting.begin();  // other requests of the application were granted with it
  }
}

event::StartIo AccessController::overruled(const Moment& moment, const model::Application& application,
                                           const event::StartIo& start) {
  event::StartIo real = start;
  real.target = start.file_system;
  real.file_system.clear();
  real.parts.clear();
  real.parts_error.clear();
  const auto published = std::pair{start.file, start.target};
  if (std::exchange(overruled_[application.id], published) == published) return real;
  event::Decision record = decision_on(application, real.target, "held");
  record.reason =
      event::TargetHeld{start.target.substr(0, longest_shown), real.target, start.file.substr(0, longest_shown)};
  moment.commands.push_back({{}, std::move(record)});
  return real;
}

void AccessController::set_target_policy(const Moment& moment, const std::string& target, const TargetPolicy& set) {
  const std::string held = policies_.held();
  if (set.policy == nullptr) {
    policies_.unset_target(target);
  } else {
    policies_.set_target(target, set);
  }
  if (policies_.held() != held) {
    for (const auto& [id, application] : cluster_.applications()) {
      for (const model::Member* member : application.members)
        moment.commands.push_back({member->id, event::HeldTargets{policies_.held()}});
    }
  }
  ask_everywhere(moment);
}

void AccessController::set_application_policy(const Moment& moment, AppId app, const policy::Policy* policy) {
  if (policy == nullptr) {
    policies_.unset_application(app);
  } else {
    policies_.set_application(app, *policy);
  }
  ask_everywhere(moment);
}

}  // namespace hocket::coordinator
