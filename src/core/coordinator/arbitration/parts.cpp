#include "coordinator/arbitration/parts.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/arbitration/access.hpp"
#include "coordinator/arbitration/places.hpp"
#include "event/part_names.hpp"

namespace hocket::coordinator {
namespace {

using model::Application;
using model::Holder;
using model::Member;
using model::PartSet;
using model::Request;
using model::Target;

void add_once(std::vector<PartSet>& sets, const PartSet& parts) {
  if (std::find(sets.begin(), sets.end(), parts) == sets.end()) sets.push_back(parts);
}

const Request* request_of(const Target& target, const policy::Grant& grant) {
  const auto same = [&](const Request& one) { return one.member == grant.member && one.id == grant.request; };
  const auto found = std::find_if(target.waiting.begin(), target.waiting.end(), same);
  return found == target.waiting.end() ? nullptr : &*found;
}

}  // namespace

Result<PartSet> parts_named(Target& target, std::string_view names) {
  if (names.empty()) return PartSet{};
  const auto parsed = event::part_names_of(names);
  if (!parsed) return parsed.error();
  const auto parts = target.part_numbers.set_of(parsed.value());
  if (parts) return *parts;
  return Error{"more than " + std::to_string(model::PartNumbers::most_names) + " different parts were named"};
}

PartSet parts_with(const Application& application, const Target& target, PartSet parts) {
  if (const auto holder = find_holder(application, target)) parts.add((*holder)->parts);
  return parts;
}

PartSet reach_of(const Target& target, const PartSet& parts) {
  PartSet reach = parts;
  if (Ledger::of(target).parted == 0) return reach;
  for (bool grows = true; std::exchange(grows, false);) {
    for (const Request& request : target.waiting) {
      if (reach.covers(request.parts) || !reach.meets(request.parts)) continue;
      reach.add(request.parts);
      grows = true;
    }
  }
  return reach;
}

bool keep_own(policy::AccessDecision& decision, const policy::View& view) {
  const Target& target = view.target;
  if (Ledger::of(target).parted == 0) return false;
  const auto is_own = [&](const Request& request) { return request.parts == view.parts; };
  const auto has_own = [&](AppId app) {
    return std::any_of(target.waiting.begin(), target.waiting.end(),
                       [&](const Request& one) { return one.application == app && is_own(one); });
  };
  std::vector<policy::Grant> own;
  for (const policy::Grant& grant : decision.grants) {
    const Request* request = request_of(target, grant);
    if (request == nullptr) continue;
    // A request of another contest that has waited for too long is not overtaken: it may wait for a holder that this
    // view lacks.
    if (!is_own(*request) && view.now - request->since >= view.settings.longest_wait) break;
    if (is_own(*request)) own.push_back(grant);
  }
  const bool prefers_others = own.empty() && !decision.grants.empty();
  decision.grants = std::move(own);
  std::erase_if(decision.choices, [&](const policy::Choice& choice) { return !has_own(choice.application); });
  const bool interrupts =
      std::any_of(target.waiting.begin(), target.waiting.end(), is_own) &&
      (decision.choices.empty() || std::any_of(decision.choices.begin(), decision.choices.end(),
                                               [](const policy::Choice& one) { return one.action == "interrupt"; }));
  if (!interrupts) decision.interruptions.clear();
  std::erase_if(decision.shares, [&](const policy::BandwidthShare& share) {
    return !has_own(share.application) &&
           std::none_of(target.holders.begin(), target.holders.end(), [&](const Holder& holder) {
             return holder.application->id == share.application && holder.parts == view.parts;
           });
  });
  return prefers_others;
}

PartSet AccessController::parts_of(const Moment& moment, const Application& application, Target& target,
                                   const event::StartIo& start) {
  const auto parts =
      start.parts_error.empty() ? parts_named(target, start.parts) : Result<PartSet>(Error{start.parts_error});
  if (parts) return parts.value();
  event::Decision record = decision_on(application, target.name, "whole");
  record.reason =
      event::PartsIgnored{target.name, start.file.substr(0, longest_shown), start.parts.substr(0, longest_shown),
                          parts.error().text.substr(0, longest_shown)};
  const auto published = std::pair{start.file, start.parts};
  if (std::exchange(ignored_[application.id], published) != published)
    moment.commands.push_back({{}, std::move(record)});
  return {};
}

std::vector<PartSet> AccessController::contests_of(const Target& target) const {
  std::vector<PartSet> contests;
  if (Ledger::of(target).parted == 0) return {PartSet{}};
  for (const Request& request : target.waiting) add_once(contests, request.parts);
  const auto shares = [](const policy::Policy* policy) { return policy->shares; };
  if (!std::ranges::any_of(policies_.at(target), shares)) return contests;
  for (const Holder& holder : target.holders) add_once(contests, holder.parts);
  return contests;
}

// If a decision has ended an idle hold, other contests may concern what has become free: all are asked again.
std::vector<AccessController::ContestDecision> AccessController::ask_contests(const Moment& moment, Target& target) {
  std::vector<ContestDecision> decisions;
  for (bool again = true; std::exchange(again, false);) {
    decisions.clear();
    const std::vector<model::PartSet> contests = contests_of(target);
    for (const model::PartSet& parts : contests) {
      if (awaits_return(target, parts)) continue;
      for (const policy::Policy* policy : policies_.at(target)) {
        decisions.push_back(ask_policy(moment, target, parts, *policy));
        again |= decisions.back().freed && contests.size() > 1;
      }
    }
  }
  return decisions;
}

void AccessController::grant_further(const Moment& moment, const Target& target) {
  if (Ledger::of(target).parted == 0) return;
  for (const Holder* holder : asking_holders(target)) {
    if (holder->pausing) continue;
    each_request(*holder->application, target, model::RequestState::queued,
                 [&](const Member& member, Ledger::RequestPlace request) {
                   PartSet parts = holder->parts;
                   parts.add(request->parts);
                   const bool yields = is_turn_over(target, parts, moment.now);
                   if (!yields && extends(*holder, *request)) grant(moment, member, request);
                 });
  }
}

void AccessController::grant_preferred(const Moment& moment, const Target& target, const PartSet& parts) {
  const PartSet reach = reach_of(target, parts);
  const auto has = [&](const Holder& one) { return one.parts.meets(reach); };
  const auto is_own = [&](const Request& one) { return one.parts == parts; };
  const auto first = std::find_if(target.waiting.begin(), target.waiting.end(), is_own);
  if (first == target.waiting.end() || std::any_of(target.holders.begin(), target.holders.end(), has)) return;
  Member& member = *cluster_.find(first->member);
  apply(moment, member, *find(member, first->id), RequestInput::grant);
}

}  // namespace hocket::coordinator
