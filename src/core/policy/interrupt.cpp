// Interrupt preempts the holder for each application that comes, whatever their sizes (CALCioM, section III-A, 2;
// Figs. 9 and 10). With more than two applications the latest runs first, and preempted ones resume in reverse order.
#include <algorithm>

#include "policy/contenders.hpp"

namespace hocket::policy {
namespace {

// True if the application has had no grant yet in this I/O phase: it is a newcomer, and was not preempted. What its I/O
// servers store for it is no newcomer, because nobody waits for that.
bool is_new(const Contender& one) { return !one.application->demand.granted && !one.request->write_back; }

// Returns the contender to serve next: one that has waited too long, else the latest newcomer, else the one that was
// preempted last. Precondition: at least one waits.
const Contender& next_of(const std::vector<Contender>& waiting) {
  const auto overdue = std::find_if(waiting.begin(), waiting.end(), [](const Contender& one) { return one.overdue; });
  if (overdue != waiting.end()) return *overdue;
  const auto newest = std::find_if(waiting.rbegin(), waiting.rend(), is_new);
  if (newest != waiting.rend()) return *newest;
  return *std::max_element(waiting.begin(), waiting.end(),
                           [](const Contender& a, const Contender& b) { return a.request->since < b.request->since; });
}

AccessDecision decide(const View& view, const event::Event&) {
  const Contenders all = contenders(view);
  if (all.waiting.empty() || all.pausing) return {};
  const Contender& next = next_of(all.waiting);
  if (all.holders.empty()) return {.grants = {grant_of(next)}};
  const auto may_be = [&](const Contender& one) { return may_be_interrupted(view, *one.application); };
  const bool interrupts = is_new(next) && std::all_of(all.holders.begin(), all.holders.end(), may_be);
  AccessDecision decision;
  for (const Contender& holder : all.holders) {
    if (interrupts) decision.interruptions.push_back(holder.application->id);
  }
  decision.choices = {{next.application->id, all.holders.front().application->id, interrupts ? "interrupt" : "wait"}};
  return decision;
}

}  // namespace

constexpr Policy interrupt{"interrupt", "a newcomer preempts the holder of the target", decide};

}  // namespace hocket::policy
