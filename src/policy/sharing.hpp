// What the policies that share out cores have in common: who takes part, one core after the other to whoever it is
// worth most to, and when it is time for it.
//
// Speedup is what CLARISSE+FlexMPI means by it (section 4.2): the time of the computation, communication included, of
// one process over that of p processes, S(p) = T(1)/T(p). Where nobody has measured one process, the work below the
// smallest measured size is taken as divided evenly (model/speedup_curve.hpp), so that S(p) = p at that size.
//
// Who takes part: malleable applications that no resize is under way of and that no temporary expansion has. None gets
// fewer processes than it was started with. Nothing is shared out
//   - while an application shrinks: its cores are about to be free, and then all of them are shared out at once;
//   - while more than a tenth of the malleable applications are new and not known yet: what would be given now would be
//     taken back when they are. They are waited for during two of the longest I/O periods known, ten reconfigurations
//     at least.
//
// Pure, not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/prediction.hpp"
#include "policy/core_policy.hpp"

namespace hocket::policy {

struct Sharer {
  const model::Application* application = nullptr;
  std::int64_t original = 0;  // processes that it was started with
  std::int64_t present = 0;
};

// Processes of each sharer, in the order of the sharers.
using Sizes = std::vector<std::int64_t>;

struct Pool {
  std::vector<Sharer> sharers;  // in order of arrival
  std::int64_t free = 0;        // cores
};

// Nothing where it is not the time to share out, or where there is nobody to share with. `known`: only applications
// whose times can be predicted take part.
std::optional<Pool> find_pool(const CoreView& view, const event::Event& event, AppId subject, bool known);

Sizes present_sizes(const Pool& pool);
Sizes original_sizes(const Pool& pool);
// Free, and those that sharers have beyond their original size.
std::int64_t shared_cores(const Pool& pool);

// What it is worth to the sharer to become `to` instead of `from` processes, for each core.
using Worth = std::function<double(const Sharer&, std::int64_t from, std::int64_t to)>;

// Algorithms 5 and 6: the sizes after `cores` have gone, one after the other, to whoever the next one is worth most to;
// the first to arrive among equals. Those that are worth nothing to anybody are left. Of very many cores, several go at
// a time: at most 4096 times.
Sizes share_greedily(const Pool& pool, Sizes sizes, std::int64_t cores, const Worth& worth);

// The decision of a greedy policy: free cores go out from the present sizes on. Where an application that has none yet
// would get some if all were shared out anew, those that have more than their part are brought back to it first.
// `reason` says of a sharer why it becomes `to` processes.
using Reason = std::function<std::string(const Sharer&, std::int64_t to)>;
CoreDecision decide_greedily(const CoreView& view, const Pool& pool, const Worth& worth, const Reason& reason);

// The changes that lead to these sizes, those that shrink first; those that grow only as far as cores are free now: the
// policy is asked again when the others have shrunk. Fewer where the bound on slowdowns asks for it (workload.hpp).
CoreDecision changes_to(const CoreView& view, const Pool& pool, const Sizes& wanted, const Reason& reason);

// S(to) - S(from), for each core: Algorithm 5.
double marginal_speedup(const Sharer& sharer, std::int64_t from, std::int64_t to);
// The balance of marginal speedup and I/O ratio: Algorithm 6; io_aware.cpp has the formula.
double io_balance(const Sharer& sharer, std::int64_t from, std::int64_t to);
// The more, the fewer it has been given beyond the size that it was started with.
double equal_part(const Sharer& sharer, std::int64_t from, std::int64_t to);

// The number with two decimals, or as many as it needs where it is small.
std::string number(double value);

}  // namespace hocket::policy
