#include "policy/sharing.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <queue>
#include <utility>

#include "policy/workload.hpp"

namespace hocket::policy {
namespace {

constexpr std::int64_t most_turns = 4096;  // steps of the greedy distribution: bounds its cost
constexpr std::int64_t tenth = 10;
constexpr std::int64_t least_patience = 10;  // least wait for a new application, in reconfigurations
constexpr double longest_s = 1e6;            // longest period that counts for such a wait
// Least part of its time that an application must save by a core. Less is a rounding error, or next to nothing.
constexpr double least_saved = 1e-6;
constexpr std::int64_t resizes_a_doubling = 2;  // resizes per doubling of the observed phases

// True if the application is connected, and neither a resize nor a temporary expansion is under way.
bool may_change(const model::Application& application) {
  return application.malleability.commanding && application.malleability.resizing_to == 0 &&
         !application.expansion.is_temporary();
}

bool shrinks(const model::Application& application) {
  const auto& malleability = application.malleability;
  return malleability.resizing_to != 0 && malleability.resizing_to < malleability.processes;
}

std::optional<model::PeriodEstimate> present_pace(const model::Application& application) {
  return model::pace(application, application.computing_processes());
}

bool is_power(std::int64_t of_two) { return (of_two & (of_two - 1)) == 0; }

// True if the event says something new about an application. Each further phase adds less, so only the first, second,
// fourth, … one counts, of all and of those at the present size. Between them the allocation stays as it is.
bool is_news(const event::Event& event, const model::Application* subject) {
  if (std::holds_alternative<event::Profile>(event.body)) return subject && subject->malleability.malleable;
  if (std::holds_alternative<event::IoPhase>(event.body)) {
    if (subject == nullptr) return true;
    const auto periods = static_cast<std::int64_t>(subject->history.present().periods);
    return is_power(subject->history.phases()) || (periods > 1 && is_power(periods));
  }
  if (std::holds_alternative<event::Iterations>(event.body)) return subject && subject->lives_by_iterations();
  return true;
}

// Returns the number of new applications whose times are not known yet, but soon will be.
std::int64_t count_awaited(const CoreView& view, double longest_period_s) {
  const Duration patience =
      std::max(from_s(2 * std::min(longest_period_s, longest_s)),
               least_patience * std::clamp(view.settings.reconfiguration, Duration{}, from_s(60)));
  std::int64_t awaited = 0;
  for (const auto& [id, application] : view.cluster.applications()) {
    if (!application.malleability.malleable || !view.has(application)) continue;
    if (application.history.phases() > 1 || present_pace(application)) continue;
    if (view.now - application.since < patience) ++awaited;
  }
  return awaited;
}

// True if the difference of sizes is large enough to stop an application for it.
bool worth_it(const CoreView& view, std::int64_t present, std::int64_t size) {
  return static_cast<double>(std::abs(size - present)) >= view.settings.least_gain * static_cast<double>(present);
}

// True if `size` is at least a tenth, and one process, below `wanted`. Smaller differences justify no shrinking.
bool far_below(std::int64_t size, std::int64_t wanted) {
  return wanted - size >= std::max<std::int64_t>(1, size / tenth);
}

// True if the sharer's size may be outdated: it was never changed, or its speedup curve is still being learnt from this
// run. There is ever less news, so the number of resizes for it grows only with the logarithm of the phases.
bool may_be_denied(const Sharer& sharer) {
  const model::Application& application = *sharer.application;
  if (application.expansion.decision == 0) return true;
  const auto steps =
      static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(application.history.phases())));
  return application.curve_is_seen && application.malleability.reconfigurations < resizes_a_doubling * steps;
}

// True if a sharer would get clearly more cores from sharing all anew than from the free ones.
bool somebody_is_denied(const Pool& pool, const Sizes& from_free, const Sizes& anew) {
  for (std::size_t i = 0; i < pool.sharers.size(); ++i) {
    if (may_be_denied(pool.sharers[i]) && far_below(from_free[i], anew[i])) return true;
  }
  return false;
}

// Returns the sizes after sharers with clearly more than their part were reduced to it.
Sizes after_shrinking(const Pool& pool, const Sizes& anew) {
  Sizes sizes = present_sizes(pool);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (far_below(anew[i], sizes[i])) sizes[i] = anew[i];
  }
  return sizes;
}

// Notes in the reason of a sharing policy that most_slowdown has bounded the sizes.
void mark_bounded(event::Reason& reason) {
  std::visit(
      []([[maybe_unused]] auto& one) {
        if constexpr (requires { one.bounded; }) one.bounded = true;
      },
      reason);
}

std::int64_t sum(const Sizes& sizes) { return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}); }

}  // namespace

std::optional<Pool> find_pool(const CoreView& view, const event::Event& event, AppId subject, bool known) {
  if (!is_news(event, subject ? view.cluster.find(subject) : nullptr)) return std::nullopt;
  Pool pool;
  pool.free = view.free();
  std::int64_t malleable = 0;
  double longest_period_s = 0;
  for (const auto& [id, application] : view.cluster.applications()) {
    if (!application.malleability.malleable || !view.has(application)) continue;
    if (shrinks(application)) return std::nullopt;
    ++malleable;
    const auto pace = present_pace(application);
    if (pace) longest_period_s = std::max(longest_period_s, pace->period_s());
    if (!may_change(application) || (known && !pace)) continue;
    const std::int64_t present = application.computing_processes();
    const auto& expansion = application.expansion;
    const std::int64_t original = expansion.decision ? std::min(expansion.original, present) : present;
    const std::int64_t most = view.settings.limit_of(application);
    if (present > 0) pool.sharers.push_back({&application, original, present, most});
  }
  if (pool.sharers.empty() || shared_cores(pool) == 0) return std::nullopt;
  if (count_awaited(view, longest_period_s) * tenth > malleable) return std::nullopt;
  return pool;
}

Sizes present_sizes(const Pool& pool) {
  Sizes sizes;
  for (const Sharer& sharer : pool.sharers) sizes.push_back(sharer.present);
  return sizes;
}

Sizes original_sizes(const Pool& pool) {
  Sizes sizes;
  for (const Sharer& sharer : pool.sharers) sizes.push_back(sharer.original);
  return sizes;
}

std::int64_t shared_cores(const Pool& pool) {
  std::int64_t cores = pool.free;
  for (const Sharer& sharer : pool.sharers) cores += sharer.present - sharer.original;
  return cores;
}

Sizes share_greedily(const Pool& pool, Sizes sizes, std::int64_t cores, const Worth& worth) {
  struct Offer {
    double worth;
    std::size_t sharer;
    bool operator<(const Offer& other) const {
      return worth != other.worth ? worth < other.worth : sharer > other.sharer;
    }
  };
  const std::int64_t at_a_time = (cores + most_turns - 1) / most_turns;
  std::priority_queue<Offer> offers;
  const auto offer = [&](std::size_t i) {
    const std::int64_t more = std::min(at_a_time, pool.sharers[i].most - sizes[i]);
    if (more <= 0) return;
    const double value = worth(pool.sharers[i], sizes[i], sizes[i] + more);
    if (value > 0) offers.push({value, i});
  };
  for (std::size_t i = 0; i < sizes.size(); ++i) offer(i);
  while (cores > 0 && !offers.empty()) {
    const std::size_t chosen = offers.top().sharer;
    offers.pop();
    const std::int64_t given = std::min({at_a_time, cores, pool.sharers[chosen].most - sizes[chosen]});
    sizes[chosen] += given;
    cores -= given;
    offer(chosen);
  }
  return sizes;
}

CoreDecision changes_to(const CoreView& view, const Pool& pool, const Sizes& wanted, const ReasonOf& reason) {
  CoreDecision decision;
  const Sizes sizes = within_bound(view, pool, wanted);
  const bool bounded = sizes != wanted;
  const auto change = [&](const Sharer& sharer, std::int64_t size) {
    CoreChange made;
    made.application = sharer.application->id;
    made.processes = size;
    const auto pace = model::pace(*sharer.application, size);
    if (pace && !pace->nominal) made.period_after = from_s(pace->period_s());
    made.reason = reason(sharer, size);
    if (bounded) mark_bounded(made.reason);
    decision.changes.push_back(std::move(made));
  };
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Sharer& sharer = pool.sharers[i];
    if (sizes[i] < sharer.present && worth_it(view, sharer.present, sizes[i])) change(sharer, sizes[i]);
  }
  if (!decision.changes.empty()) return decision;  // the others grow when these have shrunk
  std::int64_t free = pool.free;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Sharer& sharer = pool.sharers[i];
    const std::int64_t size = std::min(sizes[i], sharer.present + free);
    if (size <= sharer.present || !worth_it(view, sharer.present, size)) continue;
    free -= size - sharer.present;
    change(sharer, size);
  }
  return decision;
}

CoreDecision decide_greedily(const CoreView& view, const Pool& pool, const Worth& worth, const ReasonOf& reason) {
  const Sizes from_free = share_greedily(pool, present_sizes(pool), pool.free, worth);
  const Sizes anew = share_greedily(pool, original_sizes(pool), shared_cores(pool), worth);
  if (somebody_is_denied(pool, from_free, anew)) {
    const Sizes shrunk = after_shrinking(pool, anew);
    const std::int64_t freed = pool.free + sum(present_sizes(pool)) - sum(shrunk);
    // Shrinking is worthwhile only if the freed cores go to the sharers that were denied them.
    if (!somebody_is_denied(pool, share_greedily(pool, shrunk, freed, worth), anew)) {
      return changes_to(view, pool, shrunk, reason);
    }
  }
  return changes_to(view, pool, from_free, reason);
}

double marginal_speedup(const Sharer& sharer, std::int64_t from, std::int64_t to) {
  const auto time = [&](std::int64_t processes) {
    const auto pace = model::pace(*sharer.application, processes);
    return pace ? pace->compute.value : 0;
  };
  const double before = time(from);
  const double after = time(to);
  if (!(before > 0) || !(after > 0) || to == from) return 0;
  if (std::abs(before - after) <= least_saved * before * std::abs(static_cast<double>(to - from))) return 0;
  return time(1) * (1 / after - 1 / before) / static_cast<double>(to - from);
}

}  // namespace hocket::policy
