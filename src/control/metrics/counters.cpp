#include "metrics/counters.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <variant>

namespace hocket::metrics {
namespace {

// A request that is granted at once has waited for exactly 0 s, so the first bound counts those.
constexpr std::array wait_bounds{0.0, 0.001, 0.01, 0.1, 1.0, 10.0, 60.0, 600.0};

// The name of the event's struct. It lives for ever, unlike a name that a tool chose for USER.
std::string_view name_of(const event::Body& body) {
  return std::visit([](const auto& e) { return std::decay_t<decltype(e)>::name; }, body);
}

// Returns the quantity as one of the constants, which live for ever; "" for another one.
std::string_view known(const std::string& quantity) {
  for (const auto one : {event::quantity::phase_start, event::quantity::period, event::quantity::cores}) {
    if (one == quantity) return one;
  }
  return {};
}

}  // namespace

const std::span<const double> Counts::wait_bounds_s{wait_bounds};

void EventCounters::count(const event::Event& event) {
  ++counts_.events[name_of(event.body)];
  const MemberId member = event.origin.member;
  if (const auto* start = std::get_if<event::StartIo>(&event.body)) {
    counts_.targets[start->target];  // the target's counters appear before they count anything
    if (start->delegation) count(member, {start->request, {}, start->target});  // it is granted already
  } else if (const auto* finish = std::get_if<event::FinishIo>(&event.body)) {
    forget(member, finish->request);
  } else if (const auto* paused = std::get_if<event::PausedIo>(&event.body)) {
    forget(member, paused->request);
  } else if (const auto* phase = std::get_if<event::IoPhase>(&event.body)) {
    count(*phase, event.time);
  } else if (std::holds_alternative<event::Bye>(event.body) || std::holds_alternative<event::Lost>(event.body)) {
    granted_.erase(member);
  }
}

void EventCounters::count_command(MemberId to, const event::Body& command) {
  if (const auto* grant = std::get_if<event::GrantIo>(&command)) {
    count(to, *grant);
  } else if (const auto* expired = std::get_if<event::LeaseExpired>(&command)) {
    ++counts_.lease_ends;
    forget(to, expired->request);
  } else if (const auto* decision = std::get_if<event::Decision>(&command)) {
    count(*decision);
  } else if (const auto* outcome = std::get_if<event::Outcome>(&command)) {
    if (const auto quantity = known(outcome->quantity); !quantity.empty()) ++counts_.outcomes[{quantity, outcome->met}];
  } else if (std::holds_alternative<event::PauseIo>(command)) {
    ++counts_.pauses;
  } else if (std::holds_alternative<event::Refused>(command)) {
    ++counts_.refused;
  }
}

// A member may report anything, but a phase took no longer than from its start to its end, and has ended.
void EventCounters::count(const event::IoPhase& phase, Time now) {
  const Time end = std::clamp(phase.end, Time{}, std::max(now, Time{}));
  const Duration length = end - std::clamp(phase.start, Time{}, end);
  TargetCounts& target = counts_.targets[phase.target];
  const Duration io = std::clamp(phase.io, Duration{}, length);
  target.io_s += to_s(io);
  target.wait_s += to_s(std::clamp(phase.wait, Duration{}, length - io));
}

void EventCounters::count(const event::Decision& decision) {
  ++counts_.decisions[decision.action];
  const auto* estimate = std::get_if<event::SlowdownEstimate>(&decision.reason);
  if (estimate == nullptr || !std::isfinite(estimate->late_s)) return;
  ++counts_.estimates;
  (estimate->late_s < 0 ? counts_.saved_s : counts_.lost_s) += std::abs(estimate->late_s);
}

void EventCounters::count(MemberId to, const event::GrantIo& grant) {
  if (!granted_[to].insert(grant.request).second) return;
  ++counts_.targets[grant.target].grants;
  counts_.grant_waits.add(std::max(grant.waited, Duration{}));
}

void EventCounters::forget(MemberId member, RequestId request) {
  const auto found = granted_.find(member);
  if (found == granted_.end()) return;
  found->second.erase(request);
  if (found->second.empty()) granted_.erase(found);
}

}  // namespace hocket::metrics
