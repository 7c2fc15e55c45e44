// Speedup gives one core after the other to the application whose speedup grows most (CLARISSE+FlexMPI, Algorithm 5).
// The speedup is S(p) = T(1)/T(p), against one process (sharing.hpp) and not against the present size. So a core is
// worth about 1 to an application that scales perfectly, whatever its size, and nothing to one that does not scale.
// Cores that make no application faster are left free.
#include "policy/sharing.hpp"

namespace hocket::policy {
namespace {

CoreDecision decide(const CoreView& view, const event::Event& event, AppId subject) {
  const auto pool = find_pool(view, event, subject, true);
  if (!pool) return {};
  const auto reason = [](const Sharer& sharer, std::int64_t to) {
    const auto next = [&](std::int64_t at) { return marginal_speedup(sharer, at, at + 1); };
    return event::SpeedupGain{next(sharer.present), next(to)};
  };
  return decide_greedily(view, *pool, marginal_speedup, reason);
}

}  // namespace

constexpr CorePolicy speedup{"speedup", "gives free cores to the applications that they speed up most",
                             CoreKind::sharing, decide};

}  // namespace hocket::policy
