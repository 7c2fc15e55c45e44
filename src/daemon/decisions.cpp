#include "daemon/decisions.hpp"

#include <algorithm>
#include <variant>

namespace hocket::daemon {

void Decisions::add(const event::Body& command) {
  if (const auto* decision = std::get_if<event::Decision>(&command)) {
    kept_.push_back({*decision, {}});
    if (kept_.size() > most) kept_.pop_front();
  } else if (const auto* outcome = std::get_if<event::Outcome>(&command)) {
    const auto decided =
        std::ranges::lower_bound(kept_, outcome->decision, {}, [](const Kept& kept) { return kept.decision.number; });
    if (decided == kept_.end() || decided->decision.number != outcome->decision) return;
    if (decided->outcomes.size() < most_outcomes) decided->outcomes.push_back(*outcome);
  }
}

std::vector<event::Body> Decisions::answer(const event::Explain& asked) const {
  std::vector<const Kept*> chosen;
  for (auto kept = kept_.rbegin(); kept != kept_.rend(); ++kept) {
    if (asked.count > 0 && static_cast<std::int64_t>(chosen.size()) >= asked.count) break;
    if (asked.application.empty() || kept->decision.decided_for == asked.application) chosen.push_back(&*kept);
  }
  std::vector<event::Body> answers;
  for (auto kept = chosen.rbegin(); kept != chosen.rend(); ++kept) {
    answers.emplace_back((*kept)->decision);
    answers.insert(answers.end(), (*kept)->outcomes.begin(), (*kept)->outcomes.end());
  }
  return answers;
}

}  // namespace hocket::daemon
