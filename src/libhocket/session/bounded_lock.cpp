#include "session/bounded_lock.hpp"

#include <ctime>

#include "base/clock.hpp"

namespace hocket::runtime {

// Polls, because a timed lock of libc depends on the clock of the day, which may be set.
bool BoundedLock::wait() {
  constexpr timespec between_attempts{0, 50'000};
  const Time until = node_now() + longest_wait;
  while (!mutex_.try_lock()) {
    if (node_now() >= until) return false;
    nanosleep(&between_attempts, nullptr);
  }
  return true;
}

}  // namespace hocket::runtime
