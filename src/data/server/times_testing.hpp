// Times for the tests of this folder that have no real clock.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/time.hpp"

namespace hocket::server::testing {

constexpr Time at(std::int64_t ms) { return Time{} + std::chrono::milliseconds{ms}; }

}  // namespace hocket::server::testing
