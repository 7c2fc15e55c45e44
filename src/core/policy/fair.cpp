// Fair shares the free cores in equal parts, however well applications scale (CLARISSE+FlexMPI, section 4.3.2). It is
// the baseline, and works without any knowledge of the applications.
// One core after the other goes to the application that was given the fewest beyond its initial size. So the parts
// become equal even if some applications have more already.
#include "policy/sharing.hpp"

namespace hocket::policy {
namespace {

CoreDecision decide(const CoreView& view, const event::Event& event, AppId subject) {
  const auto pool = find_pool(view, event, subject, false);
  if (!pool) return {};
  const auto reason = [&](const Sharer&, std::int64_t) {
    return event::EqualPart{shared_cores(*pool), static_cast<std::int64_t>(pool->sharers.size())};
  };
  return decide_greedily(view, *pool, equal_part, reason);
}

}  // namespace

double equal_part(const Sharer& sharer, std::int64_t from, std::int64_t) {
  return 1 / (1 + static_cast<double>(from - sharer.original));
}

constexpr CorePolicy fair{"fair", "shares the free cores out in equal parts", CoreKind::sharing, decide};

}  // namespace hocket::policy
