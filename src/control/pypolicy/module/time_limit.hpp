// Limits the duration of a call into Python: a timer sends a signal, and its Python handler raises an exception.
#pragma once

#include "base/time.hpp"

namespace hocket::pypolicy {

// Prepares the limits. Call it once, in the thread that will call Python. False: an exception is set.
bool prepare_time_limits();

// Limits the calls during its lifetime; no timer is left afterwards. The exception is raised again and again until no
// code of the policy catches it. Limits do not nest.
class TimeLimit {
 public:
  explicit TimeLimit(Duration limit);
  ~TimeLimit();
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;
};

}  // namespace hocket::pypolicy
