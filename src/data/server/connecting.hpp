// Intervals at which threads of the server try to reach the daemon.
#pragma once

#include "base/time.hpp"

namespace hocket::server {

inline constexpr Duration connect_limit = std::chrono::milliseconds{200};  // of an attempt
inline constexpr Duration connect_again = std::chrono::seconds{1};         // from one attempt to the next

}  // namespace hocket::server
