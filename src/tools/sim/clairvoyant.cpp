#include "sim/clairvoyant.hpp"

#include <bit>
#include <utility>

namespace hocket::sim {
namespace {

constexpr Duration for_ever = std::chrono::hours{24 * 365};  // lease: no request needs to be renewed

// Returns subset number `index` of the set, in the order of binary numbers. `number_of` is its inverse.
std::uint32_t subset(std::uint32_t of, std::uint32_t index) {
  std::uint32_t chosen = 0;
  for (; of != 0; of &= of - 1, index >>= 1U) {
    if ((index & 1U) != 0) chosen |= of & -of;
  }
  return chosen;
}

std::uint32_t number_of(std::uint32_t chosen, std::uint32_t of) {
  std::uint32_t index = 0;
  for (std::uint32_t bit = 1; of != 0; of &= of - 1, bit <<= 1U) {
    if ((chosen & of & -of) != 0) index |= bit;
  }
  return index;
}

std::uint32_t bit(std::size_t i) { return 1U << i; }

}  // namespace

Clairvoyant::Clairvoyant(const Scenario& scenario, const Choices& choices, Rule rule, Made& made)
    : Controller(coordinator::CoordinatorSettings{}),
      scenario_(scenario),
      list_(choices),
      rule_(rule),
      made_(made),
      requests_(scenario.applications.size()),
      last_(scenario.targets.size(), -1) {}

const std::vector<coordinator::Command>& Clairvoyant::send(Time, const MemberIdentity& from, event::Body body) {
  commands_.clear();
  // The daemon's own events have no member, and need no answer.
  if (!from.id) return commands_;
  const std::size_t i = from.id.value - 1;
  if (std::holds_alternative<event::Hello>(body)) {
    commands_.push_back({from.id, event::Welcome{AppId{from.id.value}, {}, {}, for_ever}});
  } else if (const auto* wanted = std::get_if<event::AskCores>(&body)) {
    commands_.push_back({from.id, event::CoresFor{wanted->job, false, 0, {}}});  // nobody is ever resized
  } else if (const auto* asked = std::get_if<event::StartIo>(&body)) {
    start(i, *asked);
  } else if (std::holds_alternative<event::FinishIo>(body)) {
    holding_ &= ~bit(i);
    stopping_ &= ~bit(i);
    waiting_ &= ~bit(i);
    if (!requests_[i].cached) decide(requests_[i].target);
  } else if (std::holds_alternative<event::PausedIo>(body)) {
    holding_ &= ~bit(i);
    stopping_ &= ~bit(i);
    waiting_ |= bit(i);
    decide(requests_[i].target);
  } else if (std::holds_alternative<event::Bye>(body) || std::holds_alternative<event::Lost>(body)) {
    ended_ |= bit(i);
    // A choice that kept a target idle for this application would otherwise never be revised.
    for (std::size_t target = 0; target < last_.size(); ++target) decide(target);
  }
  return commands_;
}

void Clairvoyant::start(std::size_t i, const event::StartIo& asked) {
  const PhaseSpec& phase = applications_[i].phase();
  requests_[i] = {asked.request, phase.target_index, phase.cached, arrivals_++};
  if (phase.cached) {
    commands_.push_back({MemberId{i + 1}, event::GrantIo{asked.request, {}, asked.target}});
    return;
  }
  waiting_ |= bit(i);
  decide(phase.target_index);
}

void Clairvoyant::decide(std::size_t target) {
  const Mask waiting = on(target, waiting_);
  if (waiting == 0) return;
  // Holders that already have a PAUSE_IO are not stopped twice.
  Mask stoppable = 0;
  for (Mask rest = on(target, holding_ & ~stopping_); rest != 0; rest &= rest - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(rest));
    if (can_stop(i)) stoppable |= bit(i);
  }
  const Mask grants = Mask{1} << static_cast<unsigned>(std::popcount(waiting));
  const Mask stops = (Mask{1} << static_cast<unsigned>(std::popcount(stoppable))) - 1;
  // If every application waits or has ended, one must be granted: no further event would ever come.
  const Mask all = (Mask{1} << static_cast<unsigned>(requests_.size())) - 1;
  const bool stuck = (waiting_ | ended_) == all;

  const std::size_t number = made_.choices.size();
  Mask choice = 0;
  // A number beyond the options belongs to another situation, so the rule decides instead.
  if (number < list_.size() && list_[number] < grants + stops) {
    choice = list_[number];
  } else {
    Mask stop = 0;
    const Mask grant = by_rule(target, stop);
    choice = stop != 0 ? grants + number_of(stop, stoppable) - 1 : number_of(grant, waiting);
  }
  if (stuck && choice == 0) choice = 1;
  made_.choices.push_back(static_cast<std::uint16_t>(choice));
  made_.options.push_back(static_cast<std::uint16_t>(grants + stops));
  carry_out(choice < grants ? subset(waiting, choice) : 0,
            choice < grants ? 0 : subset(stoppable, choice - grants + 1));
}

void Clairvoyant::carry_out(Mask grants, Mask stops) {
  for (; grants != 0; grants &= grants - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(grants));
    waiting_ &= ~bit(i);
    holding_ |= bit(i);
    last_[requests_[i].target] = static_cast<int>(i);
    commands_.push_back({MemberId{i + 1}, event::GrantIo{requests_[i].id, {}, {}}});
  }
  for (; stops != 0; stops &= stops - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(stops));
    stopping_ |= bit(i);
    commands_.push_back({MemberId{i + 1}, event::PauseIo{requests_[i].id, {}, {}}});
  }
}

// Several rules share this function because they differ only in the order and in what they do about holders.
Clairvoyant::Mask Clairvoyant::by_rule(std::size_t target, Mask& stops) const {
  using enum Rule::NextChoice;
  const Mask waiting = on(target, waiting_);
  const Mask holding = on(target, holding_);
  if (rule_.next == everybody) return waiting;
  if (rule_.next == those_with_room) {
    double rate = 0;
    for (Mask rest = holding; rest != 0; rest &= rest - 1) {
      rate += applications_[static_cast<std::size_t>(std::countr_zero(rest))].bandwidth();
    }
    Mask grants = 0;
    for (Mask rest = waiting; rest != 0;) {
      const std::size_t i = least(rest, false);
      rest &= ~bit(i);
      rate += applications_[i].bandwidth();
      const bool fits = rate <= scenario_.targets[target].most_bandwidth() * (1 + 1e-9);
      // An application that exceeds the bandwidth alone is granted when the target is free, or it would never run.
      if (fits || (holding | grants) == 0) grants |= bit(i);
    }
    return grants;
  }
  const std::size_t next = least(waiting, rule_.next != first_come);
  if (holding == 0) {
    const int last = last_[target];
    // The last holder is inside a phase if it neither waits nor computes towards the first operation of a phase.
    const bool in_phase = last >= 0 && (waiting & bit(static_cast<std::size_t>(last))) == 0 &&
                          applications_[static_cast<std::size_t>(last)].state == ApplicationState::between &&
                          applications_[static_cast<std::size_t>(last)].operation() > 0;
    return rule_.holds && in_phase ? 0 : bit(next);
  }
  if (rule_.next == shortest_interrupts && stopping_ == 0) {
    for (Mask rest = holding; rest != 0; rest &= rest - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(rest));
      if (can_stop(i) && left_s(next) < left_s(i)) stops |= bit(i);
    }
  }
  return 0;
}

// The operation under way counts whole, so the estimate is an upper bound.
double Clairvoyant::left_s(std::size_t i) const {
  const SimulatedApplication& application = applications_[i];
  const auto operations = static_cast<double>(application.phase().operations - application.operation());
  return operations * application.operation_bytes() / application.bandwidth();
}

bool Clairvoyant::can_stop(std::size_t i) const { return applications_[i].spec().grain != Grain::operation; }

Clairvoyant::Mask Clairvoyant::on(std::size_t target, Mask of) const {
  Mask found = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const bool there = requests_[i].target == target && !requests_[i].cached;
    if (there && (of & bit(i)) != 0) found |= bit(i);
  }
  return found;
}

std::size_t Clairvoyant::least(Mask of, bool by_size) const {
  auto found = static_cast<std::size_t>(std::countr_zero(of));
  for (Mask rest = of & (of - 1); rest != 0; rest &= rest - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(rest));
    const bool before = by_size ? left_s(i) < left_s(found) : requests_[i].arrival < requests_[found].arrival;
    if (before) found = i;
  }
  return found;
}

}  // namespace hocket::sim
