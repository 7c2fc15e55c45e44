// Set-10 groups applications into sets by the order of magnitude of their I/O period (Boito, Pallez, Teylo and Vidal:
// IO-SETS, 2023). One application of each set has the target at a time, first come, first served. The sets share its
// bandwidth by priority: ten times as much for periods a tenth as long.
#include <algorithm>
#include <cmath>
#include <map>

#include "policy/contenders.hpp"

namespace hocket::policy {
namespace {

// Periods are clamped to a range from a microsecond to years. Sets beyond it say nothing.
constexpr double least_period_s = 1e-6;
constexpr double most_period_s = 1e9;

// Returns the mean time from start to start of the application's I/O phases on the target. Until that is known, it
// is the time from the application's arrival to the phase, but at least the time of the phase alone. So an application
// that begins by reading a large input has no short period.
double period_s(const model::Application& application, const model::Target& target) {
  if (const Duration mean = application.history.period().mean; mean > Duration{}) {
    const auto& cycle = application.history.present().cycle;
    const auto here = std::ranges::count(cycle, target.name, &model::CyclePhase::target);
    return to_s(mean) / static_cast<double>(std::max<std::ptrdiff_t>(1, here));
  }
  return std::max(to_s(application.demand.since - application.arrived), model::work_of(application, target).alone_s);
}

// Returns the number of the set: the decimal logarithm of the period in seconds, rounded.
int set_of(const model::Application& application, const model::Target& target) {
  const double period = std::clamp(period_s(application, target), least_period_s, most_period_s);
  return static_cast<int>(std::lround(std::log10(period)));
}

AccessDecision decide(const View& view, const event::Event&) {
  const Contenders all = contenders(view);
  AccessDecision decision;
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
    // A set has several holders only if they had the target before this policy came into force.
    const double part = std::pow(10.0, -set) / weights / static_cast<double>(applications.size());
    for (const model::Application* application : applications) decision.shares.push_back({application->id, part});
  }
  return decision;
}

}  // namespace

constexpr Policy set_10{"set-10", "sets by the order of magnitude of the period, one application of each at a time",
                        decide, true};

}  // namespace hocket::policy
