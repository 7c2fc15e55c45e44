// Helpers for the tests of this folder: times in seconds.
#pragma once

#include "base/time.hpp"

namespace hocket::model::testing {

inline Time at(double s) { return Time{} + from_s(s); }

// The same, for tests whose runs begin at 1 s instead of at Time{}.
inline Time after_1_s(double s) { return at(1) + from_s(s); }

}  // namespace hocket::model::testing
