// To come: decides nothing yet.
#include "policy/core_policy.hpp"

namespace hocket::policy {
namespace {

CoreDecision decide(const CoreView&, const event::Event&, AppId) { return {}; }

}  // namespace

constexpr CorePolicy phase_shift{"phase-shift", "before two I/O phases meet, runs one application faster for a while",
                                 CoreKind::interference, decide};

}  // namespace hocket::policy
