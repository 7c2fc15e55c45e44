#include "daemon/decisions.hpp"

#include <algorithm>
#include <variant>

namespace hocket::daemon {
namespace {

bool is_wait(const event::Decision& decision) { return decision.action == "wait"; }

}  // namespace

void Decisions::add(const event::Body& command) {
  if (const auto* decision = std::get_if<event::Decision>(&command)) {
    kept_.push_back({*decision, {}});
    waits_ += is_wait(kept_.back().decision);
    if (waits_ <= most_waits && kept_.size() <= most) return;
    // Too many waits evict the oldest wait only. So waits never displace the rarer decisions about cores.
    const auto oldest =
        std::ranges::find_if(kept_, [&](const Kept& kept) { return waits_ <= most_waits || is_wait(kept.decision); });
    waits_ -= is_wait(oldest->decision);
    kept_.erase(oldest);
  } else if (const auto* outcome = std::get_if<event::Outcome>(&command)) {
    const auto decided =
        std::ranges::lower_bound(kept_, outcome->decision, {}, [](const Kept& kept) { return kept.decision.number; });
    if (decided == kept_.end() || decided->decision.number != outcome->decision) return;
    if (decided->outcomes.size() < most_outcomes) decided->outcomes.push_back(*outcome);
  }
}

std::vector<event::Body> Decisions::answer(const event::Explain& asked) const {
  // The newest decisions are chosen first, because `count` limits from that end; the answer turns them round.
  std::vector<const Kept*> chosen;
  for (auto kept = kept_.rbegin(); kept != kept_.rend(); ++kept) {
    if (asked.count > 0 && static_cast<std::int64_t>(chosen.size()) >= asked.count) break;
    if (asked.application.empty() || kept->decision.decided_for == asked.application) chosen.push_back(&*kept);
  }
  // Each decision precedes its outcomes, and the oldest comes first.
  std::vector<event::Body> answers;
  for (auto kept = chosen.rbegin(); kept != chosen.rend(); ++kept) {
    answers.emplace_back((*kept)->decision);
    answers.insert(answers.end(), (*kept)->outcomes.begin(), (*kept)->outcomes.end());
  }
  return answers;
}

}  // namespace hocket::daemon
