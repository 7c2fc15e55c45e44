// To come: decides nothing yet.
#include "policy/core_policy.hpp"

namespace hocket::policy {
namespace {

CoreDecision decide(const CoreView&, const event::Event&, AppId) { return {}; }

}  // namespace

constexpr CorePolicy speedup{"speedup", "free cores, one at a time, to the greatest marginal speedup",
                             CoreKind::sharing, decide};

}  // namespace hocket::policy
