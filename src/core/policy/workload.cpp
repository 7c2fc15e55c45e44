#include "policy/workload.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace hocket::policy {
namespace {

constexpr double rounding = 1e-9;
// Part of the bound that sizes may use up. The rest covers what the means of the model leave out.
constexpr double part_of_bound = 0.5;
constexpr std::int64_t parts_tried[] = {1, 2, 4, 8, 16, 32, 64};  // divisors of the growth: all of it, a half, …

// Returns the initial size, which is the present one if no policy has changed it.
std::int64_t started_with(const model::Application& application) {
  const model::Expansion& expansion = application.expansion;
  const bool changed = expansion.decision != 0 && expansion.original > 0;
  return changed ? expansion.original : application.computing_processes();
}

}  // namespace

Weights::Weights(const CoreView& view) : flops_{view.settings.objective == Objective::flops} {
  for (const auto& [id, application] : view.cluster.applications()) {
    if (application.malleability.malleable && !(application.flop_per_iteration > 0)) flops_ = false;
  }
}

Workload workload_of(const CoreView& view, const Pool& pool, const Weights& weights) {
  std::vector<ContentionModel::CyclicJob> jobs;
  std::vector<ContentionModel::CyclicJob> started;
  std::vector<double> spreads;
  std::map<std::string, std::size_t> targets;
  const auto add = [&](const model::Application& application, std::int64_t original) {
    const auto pace = model::pace(application, application.computing_processes());
    if (!pace) return Workload::unknown;
    const auto first = model::pace(application, original);
    const model::PeriodEstimate& before = first ? *first : *pace;
    const std::size_t target = targets.emplace(application.target, targets.size()).first->second;
    const double worth = weights.of(application, before);
    jobs.push_back({pace->compute.value, pace->io.value, worth, target});
    started.push_back({before.compute.value, before.io.value, worth, target});
    const model::MeanSpread period = application.history.period();
    spreads.push_back(period.mean > Duration{} ? to_s(period.spread) / to_s(period.mean) : 0);
    return jobs.size() - 1;
  };
  std::vector<std::size_t> sharers;
  for (const Sharer& sharer : pool.sharers) sharers.push_back(add(*sharer.application, sharer.original));
  auto sharer = pool.sharers.begin();  // both lists are in order of arrival
  for (const auto& [id, application] : view.cluster.applications()) {
    if (sharer != pool.sharers.end() && sharer->application == &application) {
      ++sharer;
    } else if (application.computing_processes() > 0) {
      add(application, started_with(application));
    }
  }
  return {ContentionModel{std::move(jobs), targets.size()}, ContentionModel{std::move(started), targets.size()},
          std::move(spreads), std::move(sharers), targets.size()};
}

SlowdownBound::SlowdownBound(const Workload& workload, double most_slowdown) {
  if (!(most_slowdown > 0)) return;
  for (std::size_t i = 0; i < workload.queue.size(); ++i) {
    const double allowed_s = workload.started.cycle_s(i) * (1 + part_of_bound * most_slowdown);
    longest_s_.push_back(std::max(allowed_s, workload.queue.cycle_s(i)) * (1 + rounding));
  }
}

bool SlowdownBound::holds(const ContentionModel& queue) const {
  for (std::size_t i = 0; i < longest_s_.size(); ++i) {
    if (queue.cycle_s(i) > longest_s_[i]) return false;
  }
  return true;
}

Sizes within_bound(const CoreView& view, const Pool& pool, const Sizes& sizes) {
  if (!(view.most_slowdown > 0)) return sizes;
  const Workload workload = workload_of(view, pool, Weights{view});
  const SlowdownBound bound{workload, view.most_slowdown};
  for (const std::int64_t part : parts_tried) {
    Sizes tried = sizes;
    ContentionModel queue = workload.queue;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::int64_t present = pool.sharers[i].present;
      if (sizes[i] > present) tried[i] = present + (sizes[i] - present) / part;
      const auto pace = model::pace(*pool.sharers[i].application, tried[i]);
      if (pace && workload.sharers[i] != Workload::unknown) {
        queue.change(workload.sharers[i], pace->compute.value, pace->io.value);
      } else {
        tried[i] = std::min(tried[i], present);  // its effect on others is not known
      }
    }
    queue.settle();
    if (bound.holds(queue)) return tried;
  }
  Sizes smaller = sizes;
  for (std::size_t i = 0; i < sizes.size(); ++i) smaller[i] = std::min(smaller[i], pool.sharers[i].present);
  return smaller;
}

}  // namespace hocket::policy
