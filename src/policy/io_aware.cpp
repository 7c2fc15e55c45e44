// To come: decides nothing yet.
#include "policy/core_policy.hpp"

namespace hocket::policy {
namespace {

CoreDecision decide(const CoreView&, const event::Event&, AppId) { return {}; }

}  // namespace

constexpr CorePolicy io_aware{"io-aware", "free cores to great marginal speedup and little I/O", CoreKind::sharing,
                              decide};

}  // namespace hocket::policy
