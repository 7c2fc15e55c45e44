// To come: decides nothing yet.
#include "policy/core_policy.hpp"

namespace hocket::policy {
namespace {

CoreDecision decide(const CoreView&, const event::Event&, AppId) { return {}; }

}  // namespace

constexpr CorePolicy fair{"fair", "free cores in equal parts", CoreKind::sharing, decide};

}  // namespace hocket::policy
