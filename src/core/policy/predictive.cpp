// Predictive takes the core allocation with the most of the operator's objective under the model, waits included.
// The paper has no such policy. Its I/O-aware sharing gives the cores to applications that do little I/O, even if they
// gain little from them. This policy predicts the objective of each allocation and takes the best that it finds:
//
//   objective flops       Σ FLOP of a period / (T_compute(p) + T_io(p) + T_wait)
//   objective iterations  the same with progress in place of FLOP; an application alone at its original size makes 1 a
//                         second. It is also used if the FLOP of one malleable application are not known.
//
// T_compute and T_io come from the speedup curves (model/prediction.hpp), T_wait from contention.hpp. They cover all
// applications, those that cannot be resized too, with each target used by one at a time. If the access policy lets
// applications overlap, I/O is slower instead of later, which is about the same for the objective.
//
// The search starts from each of four allocations: the present one, fair, speedup, io-aware. (Of many applications it
// starts from the best of these.) It exchanges cores, first many at a time, then fewer, and ends when moving one core
// gains nothing. Of few applications it plays the starts and the results through (rehearsal.hpp), because phases that
// fall into step wait otherwise than on average. It takes the best, so by the model it is never worse than the other
// policies. It changes nothing if the whole gain is below `least_gain`, and undoes changes that gain almost nothing.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "policy/rehearsal.hpp"
#include "policy/sharing.hpp"
#include "policy/workload.hpp"

namespace hocket::policy {
namespace {

constexpr std::int64_t first_chunks = 2;    // per application: sets the size of the first exchanges
constexpr int most_exchanges = 64;          // of one chunk size, plus one for each application
constexpr double least_step = 1e-6;         // least gain of an exchange, as part of the objective
constexpr double worth_keeping = 0.1;       // least gain of a single change, as part of `least_gain`
constexpr std::size_t most_rehearsed = 16;  // applications
constexpr int rehearsed_periods = 50;       // of the slowest application

// A local search over allocations. It holds the present allocation of the search and the waits under it.
class AllocationSearch {
 public:
  AllocationSearch(const Pool& pool, Workload workload, double most_slowdown)
      : pool_{pool},
        bound_{workload, most_slowdown},
        queue_{std::move(workload.queue)},
        spreads_{std::move(workload.spreads)},
        targets_{workload.targets},
        sizes_{present_sizes(pool)},
        free_{pool.free} {}

  const Sizes& sizes() const { return sizes_; }
  // True if no application becomes slower than most_slowdown allows.
  bool is_allowed() const { return bound_.holds(queue_); }
  bool rehearses() const { return queue_.size() <= most_rehearsed; }
  // Returns the objective of the sizes. Few applications are played through; many are predicted by mean values.
  double outcome() const {
    if (!rehearses()) return queue_.rate();
    std::vector<Rehearsed> jobs;
    for (std::size_t i = 0; i < queue_.size(); ++i) jobs.push_back({queue_.job(i), spreads_[i]});
    return rehearse(jobs, targets_, rehearsed_periods);
  }

  void go_to(const Sizes& sizes) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] != sizes_[i]) set(i, sizes[i]);
    }
    queue_.settle();
  }

  // Moves cores between applications, and to and from the free cores, until no move gains anything.
  void improve() {
    const std::int64_t chunks = first_chunks * static_cast<std::int64_t>(sizes_.size());
    for (std::int64_t chunk = std::max<std::int64_t>(1, shared_cores(pool_) / chunks);; chunk /= 2) {
      exchange(chunk);
      if (chunk == 1) return;
    }
  }

  // Returns each application to its present size if that costs less than the part `least` of the objective.
  void undo_what_gains_less_than(double least) {
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      const std::int64_t present = pool_.sharers[i].present;
      const std::int64_t size = sizes_[i];
      if (size == present || present - size > free_) continue;
      const double before = outcome();
      move(i, present);
      if (outcome() < before * (1 - least)) move(i, size);
    }
  }

 private:
  struct AllocationStep {
    std::size_t sharer = 0;
    double gain = -std::numeric_limits<double>::infinity();
  };
  // Mean times of one period at some size. `possible` is false below the original size, above the largest one, or if
  // times are not known.
  struct PeriodTimes {
    double compute_s;
    double io_s;
    bool possible;
  };

  PeriodTimes times(std::size_t i, std::int64_t size) const {
    const Sharer& sharer = pool_.sharers[i];
    if (size < sharer.original || size > sharer.most) return {0, 0, false};
    const auto pace = model::pace(*sharer.application, size);
    return pace ? PeriodTimes{pace->compute.value, pace->io.value, true} : PeriodTimes{0, 0, false};
  }

  void set(std::size_t i, std::int64_t size) {
    const PeriodTimes at = times(i, size);
    queue_.change(i, at.compute_s, at.io_s);
    free_ += sizes_[i] - size;
    sizes_[i] = size;
  }
  void move(std::size_t i, std::int64_t size) {
    set(i, size);
    queue_.settle();
  }

  // Returns the sharer, other than `but`, whose change of times gains most.
  AllocationStep best(const std::vector<PeriodTimes>& changed, std::size_t but) const {
    AllocationStep best;
    for (std::size_t i = 0; i < changed.size(); ++i) {
      if (i == but || !changed[i].possible) continue;
      const double gain = queue_.gain(i, changed[i].compute_s, changed[i].io_s);
      if (gain > best.gain) best = {i, gain};
    }
    return best;
  }

  // Exchanges `chunk` cores at a time between the two best sharers, while the objective grows. The gains are estimates,
  // so an exchange that turns out to gain nothing is taken back and ends the loop.
  void exchange(std::int64_t chunk) {
    const std::size_t count = sizes_.size();
    std::vector<PeriodTimes> more(count);
    std::vector<PeriodTimes> fewer(count);
    const auto look = [&](std::size_t i) {
      more[i] = times(i, sizes_[i] + chunk);
      fewer[i] = times(i, sizes_[i] - chunk);
    };
    for (std::size_t i = 0; i < count; ++i) look(i);
    for (std::size_t turn = 0; turn < most_exchanges + count; ++turn) {
      AllocationStep give = best(fewer, count);
      AllocationStep take = best(more, give.gain > 0 ? give.sharer : count);
      if (free_ < chunk && take.gain > 0) give = best(fewer, take.sharer);
      const bool gives = give.gain > 0 || (free_ < chunk && take.gain > 0 && give.gain + take.gain > 0);
      const bool takes = take.gain > 0 && (free_ >= chunk || gives);
      const double before = queue_.rate();
      if (gives) set(give.sharer, sizes_[give.sharer] - chunk);
      if (takes) set(take.sharer, sizes_[take.sharer] + chunk);
      if (!gives && !takes) return;
      queue_.settle();
      if (queue_.rate() < before * (1 + least_step) || !is_allowed()) {
        if (gives) set(give.sharer, sizes_[give.sharer] + chunk);
        if (takes) set(take.sharer, sizes_[take.sharer] - chunk);
        queue_.settle();
        return;
      }
      if (gives) look(give.sharer);
      if (takes) look(take.sharer);
    }
  }

  const Pool& pool_;
  SlowdownBound bound_;
  ContentionModel queue_;
  std::vector<double> spreads_;
  std::size_t targets_;
  Sizes sizes_;
  std::int64_t free_;
};

// Returns the allocations of the other sharing policies, from which the search starts beside the present one.
std::vector<Sizes> starts(const Pool& pool) {
  const std::int64_t cores = shared_cores(pool);
  return {share_greedily(pool, original_sizes(pool), cores, equal_part),
          share_greedily(pool, original_sizes(pool), cores, marginal_speedup),
          share_greedily(pool, original_sizes(pool), cores, io_balance)};
}

// Moves the search to the best allocation that it finds and returns its objective. Precondition: the search is at the
// present sizes, whose objective is `present`.
double go_to_best(const Pool& pool, AllocationSearch& search, double present) {
  std::pair<Sizes, double> best{search.sizes(), present};
  const auto consider = [&] {
    if (!search.is_allowed()) return;
    const double outcome = search.outcome();
    if (outcome > best.second) best = {search.sizes(), outcome};
  };
  const auto improve = [&] {
    search.improve();
    consider();
  };
  if (search.rehearses()) improve();
  for (const Sizes& start : starts(pool)) {
    search.go_to(start);
    consider();
    if (search.rehearses()) improve();
  }
  search.go_to(best.first);
  if (!search.rehearses()) improve();
  search.go_to(best.first);
  return best.second;
}

CoreDecision decide(const CoreView& view, const event::Event& event, AppId subject) {
  const auto pool = find_pool(view, event, subject, true);
  if (!pool) return {};
  const Weights weights{view};
  AllocationSearch search{*pool, workload_of(view, *pool, weights), view.most_slowdown};
  const double present = search.outcome();
  if (go_to_best(*pool, search, present) < present * (1 + view.settings.least_gain)) return {};
  search.undo_what_gains_less_than(view.settings.least_gain * worth_keeping);
  const double gain = search.outcome() / present - 1;
  const auto reason = [&](const Sharer& sharer, std::int64_t) {
    return event::ObjectiveGain{gain, weights.flops() ? "flops" : "iterations",
                                std::string{model::name_of(sharer.application->flop_source)}};
  };
  return changes_to(view, *pool, search.sizes(), reason);
}

}  // namespace

constexpr CorePolicy predictive{"predictive", "chooses the allocation with the most predicted FLOPS, waits included",
                                CoreKind::sharing, decide};

}  // namespace hocket::policy
