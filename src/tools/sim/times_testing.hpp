// Times for the tests of this folder.
#pragma once

#include "base/time.hpp"

namespace hocket::sim::testing {

inline Time at(double s) { return Time{} + from_s(s); }

}  // namespace hocket::sim::testing
