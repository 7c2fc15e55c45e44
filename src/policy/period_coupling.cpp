// To come: decides nothing yet.
#include "policy/core_policy.hpp"

namespace hocket::policy {
namespace {

CoreDecision decide(const CoreView&, const event::Event&, AppId) { return {}; }

}  // namespace

constexpr CorePolicy period_coupling{"period-coupling",
                                     "brings I/O periods to multiples of each other, then shifts phases",
                                     CoreKind::interference, decide};

}  // namespace hocket::policy
