// Ends calls of Python that take too long: a timer's signal, to which a handler of Python's answers with an exception.
#pragma once

#include "base/time.hpp"

namespace hocket::pypolicy {

// Once, in the thread that will call. False: an exception is set.
bool prepare_time_limits();

// From here to its end; afterwards nothing of it is left. The exception repeats until it is not caught any more.
class TimeLimit {
 public:
  explicit TimeLimit(Duration limit);
  ~TimeLimit();
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;
};

}  // namespace hocket::pypolicy
