// Fair (CLARISSE+FlexMPI, section 4.3.2): the free cores in equal parts, whatever the applications make of them. The
// base line, and what there is where nothing is known of the applications.
//
// One core after the other goes to whoever has been given the fewest beyond the size that it was started with, so that
// equal parts come about too where some have more already.
#include "policy/sharing.hpp"

namespace hocket::policy {
namespace {

CoreDecision decide(const CoreView& view, const event::Event& event, AppId subject) {
  const auto pool = find_pool(view, event, subject, false);
  if (!pool) return {};
  const auto reason = [&](const Sharer& sharer, std::int64_t to) {
    return sharer.application->name + " goes from " + std::to_string(sharer.present) + " to " + std::to_string(to) +
           " processes: an equal part of the " + std::to_string(shared_cores(*pool)) + " cores that " +
           std::to_string(pool->sharers.size()) + " applications share";
  };
  return decide_greedily(view, *pool, equal_part, reason);
}

}  // namespace

double equal_part(const Sharer& sharer, std::int64_t from, std::int64_t) {
  return 1 / (1 + static_cast<double>(from - sharer.original));
}

constexpr CorePolicy fair{"fair", "shares the free cores out in equal parts", CoreKind::sharing, decide};

}  // namespace hocket::policy
