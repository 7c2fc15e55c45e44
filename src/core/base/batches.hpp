// The delays of events that members send in batches while a target is delegated to them (docs/design/delegation.md).
// Both ends of the protocol use them. Pure.
#pragma once

#include "base/time.hpp"

namespace hocket {

// A member sends what it has collected at the latest so long after it happened, and at the latest when it is so many
// events.
inline constexpr Duration longest_batch = std::chrono::milliseconds{200};
inline constexpr std::size_t most_in_batch = 256;
// The controller assumes that it knows everything that has happened so long ago. It is more than `longest_batch`,
// because a thread may start late, and messages take time.
inline constexpr Duration all_known_after = std::chrono::milliseconds{500};

}  // namespace hocket
