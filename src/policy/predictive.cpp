// To come: decides nothing yet.
#include "policy/core_policy.hpp"

namespace hocket::policy {
namespace {

CoreDecision decide(const CoreView&, const event::Event&, AppId) { return {}; }

}  // namespace

constexpr CorePolicy predictive{"predictive", "the allocation with the most predicted progress, waits for I/O included",
                                CoreKind::sharing, decide};

}  // namespace hocket::policy
