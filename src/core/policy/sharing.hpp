// Declares what the sharing policies have in common: which applications take part, when cores are shared out, and the
// greedy distribution of one core after the other.
//
// Speedup is defined as in CLARISSE+FlexMPI (section 4.2). It is the time of the computation, communication included,
// on one process over that on p processes: S(p) = T(1)/T(p). If one process was not measured, the work below the
// smallest measured size is taken as divided evenly (model/speedup_curve.hpp), so that S(p) = p at that size.
//
// Malleable applications take part, unless a resize of them is under way or they have a temporary expansion. No
// application gets fewer processes than it was started with. No cores are shared out
//   - while an application shrinks: its cores are about to be free, and then all cores are shared out at once;
//   - while more than a tenth of the malleable applications are new and not known yet: cores given now would have to be
//     taken back soon. The policies wait for a new application during two of the longest known I/O periods, or for the
//     time of ten reconfigurations if that is longer.
// Pure, not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "model/prediction.hpp"
#include "policy/core_policy.hpp"

namespace hocket::policy {

// An application that takes part.
struct Sharer {
  const model::Application* application = nullptr;
  std::int64_t original = 0;                  // initial number of processes
  std::int64_t present = 0;                   // current number of processes
  std::int64_t most = model::most_processes;  // largest number that it may get
};

// A core allocation: the processes of each sharer, in the order of the sharers.
using Sizes = std::vector<std::int64_t>;

// The cores to share out and the sharers. It is valid as long as the view that it was made from.
struct Pool {
  std::vector<Sharer> sharers;  // in order of arrival
  std::int64_t free = 0;        // cores that they may still get
};

// Returns the pool; nothing if this event is no occasion to share out cores, or if there is nothing to share. With
// `known`, only applications whose times can be predicted take part.
std::optional<Pool> find_pool(const CoreView& view, const event::Event& event, AppId subject, bool known);

Sizes present_sizes(const Pool& pool);
Sizes original_sizes(const Pool& pool);
// Returns the number of cores to share: free ones, and those that sharers have beyond their original sizes.
std::int64_t shared_cores(const Pool& pool);

// Returns the worth per core if the sharer gets `to` instead of `from` processes.
using Worth = std::function<double(const Sharer&, std::int64_t from, std::int64_t to)>;

// Returns the sizes after `cores` were given out, one after the other, each to the sharer with the largest worth
// (Algorithms 5 and 6). Among equals the first to arrive gets the core. Cores that are worth nothing to all sharers are
// left. Of very many cores several go at a time, so that there are at most 4096 steps.
Sizes share_greedily(const Pool& pool, Sizes sizes, std::int64_t cores, const Worth& worth);

// Returns the decision of a greedy policy, which gives free cores to the sharers at their present sizes. If a sharer
// would get clearly more from sharing all cores anew, sharers that have more than their part shrink to it first.
// `reason` gives the numbers by which a sharer gets `to` processes.
using ReasonOf = std::function<event::Reason(const Sharer&, std::int64_t to)>;
CoreDecision decide_greedily(const CoreView& view, const Pool& pool, const Worth& worth, const ReasonOf& reason);

// Returns the changes that lead to these sizes, as far as the bound on slowdowns allows (workload.hpp). If a sharer
// shrinks, the others grow only when the policy is asked again. Growing changes use cores that are free now.
CoreDecision changes_to(const CoreView& view, const Pool& pool, const Sizes& wanted, const ReasonOf& reason);

// Returns (S(to) - S(from)) per core: Algorithm 5. Returns 0 for a gain within rounding, and if times are not known.
double marginal_speedup(const Sharer& sharer, std::int64_t from, std::int64_t to);
// Returns the balance of marginal speedup and I/O ratio: Algorithm 6, with the formula in io_aware.cpp.
double io_balance(const Sharer& sharer, std::int64_t from, std::int64_t to);
// Returns a worth that falls with the number of cores that the sharer was given beyond its original size.
double equal_part(const Sharer& sharer, std::int64_t from, std::int64_t to);

}  // namespace hocket::policy
