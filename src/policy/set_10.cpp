// Set-10: applications whose I/O phases come at periods of one order of magnitude form a set; of a set one at a time
// has the target, first come, first served, and sets share its bandwidth by priority, ten times as much for periods a
// tenth as long (Boito, Pallez, Teylo and Vidal: IO-SETS, 2023).
#include <algorithm>
#include <cmath>
#include <map>

#include "policy/contenders.hpp"

namespace hocket::policy {
namespace {

// Periods from microseconds to years: beyond, sets tell nothing.
constexpr double least_period_s = 1e-6;
constexpr double most_period_s = 1e9;

// Start to start of its I/O phases on the target, on average; of the first one, from its own start, and no less than
// the phase itself takes: who begins by reading a large input has no short period.
double period_s(const model::Application& application, const model::Target& target) {
  if (const Duration mean = application.history.period().mean; mean > Duration{}) {
    const auto& cycle = application.history.present().cycle;
    const auto here = std::ranges::count(cycle, target.name, &model::CyclePhase::target);
    return to_s(mean) / static_cast<double>(std::max<std::ptrdiff_t>(1, here));
  }
  return std::max(to_s(application.demand.since - application.arrived), model::work_of(application, target).alone_s);
}

int set_of(const model::Application& application, const model::Target& target) {
  const double period = std::clamp(period_s(application, target), least_period_s, most_period_s);
  return static_cast<int>(std::lround(std::log10(period)));
}

Decision decide(const View& view, const event::Event&) {
  const Contenders all = contenders(view);
  Decision decision;
  std::map<int, std::vector<const model::Application*>> active;  // by set
  for (const Contender& holder : all.holders)
    active[set_of(*holder.application, view.target)].push_back(holder.application);
  for (const Contender& waiting : all.waiting) {
    auto& set = active[set_of(*waiting.application, view.target)];
    if (set.empty()) {
      set.push_back(waiting.application);
      decision.grants.push_back(grant_of(waiting));
    } else {
      decision.choices.push_back({waiting.application->id, set.front()->id, "wait"});
    }
  }
  double weights = 0;
  for (const auto& [set, applications] : active) weights += std::pow(10.0, -set);
  for (const auto& [set, applications] : active) {
    // More than one: they had the target before this policy came into force.
    const double part = std::pow(10.0, -set) / weights / static_cast<double>(applications.size());
    for (const model::Application* application : applications) decision.shares.push_back({application->id, part});
  }
  return decision;
}

}  // namespace

constexpr Policy set_10{"set-10", "sets by the order of magnitude of the period, one application of each at a time",
                        decide, true};

}  // namespace hocket::policy
