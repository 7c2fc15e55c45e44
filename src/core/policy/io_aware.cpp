// I/O-aware gives one core after the other to the application with the best balance of marginal speedup and predicted
// I/O ratio (CLARISSE+FlexMPI, Algorithm 6). The paper gives no formula for the balance; this is ours:
//
//   balance(p) = (S(p + 1) - S(p)) / IOR(p + 1)²        IOR(p) = T_io(p) / P_io(p), at least 1 %
//
// S is the speedup against one process (sharing.hpp), IOR the I/O ratio at the size that is being evaluated (Eq. 3).
//
// The square has a reason. Under exclusive access, another application that comes to the target finds this one there
// with probability IOR. It then waits for half of its I/O time, which is IOR/2 of its period. The cost to the others is
// the product. The paper's results agree (Fig. 17): with the times of Table 2 the square gives them at all four sizes,
// while IOR to the first power gives cores to A2 and A4 too early (sharing_test.cpp checks both).
//
// The least I/O ratio is 1 %. Below that an application delays no other, and only its speedup should count.
// The policy reduces waiting for the target. It does not maximise FLOPS: if I/O limits the applications, it gives up
// more computing than it saves waiting (docs/policies.md has the figures; predictive.cpp weighs both).
#include <algorithm>

#include "policy/sharing.hpp"

namespace hocket::policy {
namespace {

constexpr double least_io_ratio = 0.01;

double io_ratio(const model::Application& application, std::int64_t processes) {
  const auto pace = model::pace(application, processes);
  return std::max(pace ? pace->io_ratio() : 0, least_io_ratio);
}

CoreDecision decide(const CoreView& view, const event::Event& event, AppId subject) {
  const auto pool = find_pool(view, event, subject, true);
  if (!pool) return {};
  const auto reason = [](const Sharer& sharer, std::int64_t to) {
    const auto& application = *sharer.application;
    const auto next = [&](std::int64_t at) { return marginal_speedup(sharer, at, at + 1); };
    return event::IoBalance{next(sharer.present), next(to), io_ratio(application, sharer.present),
                            io_ratio(application, to)};
  };
  return decide_greedily(view, *pool, io_balance, reason);
}

}  // namespace

double io_balance(const Sharer& sharer, std::int64_t from, std::int64_t to) {
  const double ratio = io_ratio(*sharer.application, to);
  return marginal_speedup(sharer, from, to) / (ratio * ratio);
}

constexpr CorePolicy io_aware{"io-aware", "gives free cores to applications that scale and do little I/O",
                              CoreKind::sharing, decide};

}  // namespace hocket::policy
