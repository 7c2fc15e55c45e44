// The course of opening a data set: attempts to join a version at the server that is its home, until one succeeds or
// a time limit ends. Pure; the callers make the attempts, one process for itself or the ranks of a file together.
#pragma once

#include "base/time.hpp"

namespace hocket::io_client {

// Time limit of one join request. A client that waits longer repeats the request, and looks at the map in between:
// the server may have gone, or the data set's home may have changed.
inline constexpr Duration join_slice = std::chrono::seconds{2};
// Longest time without any server: they come back, or hocketd notices their end.
inline constexpr Duration most_absence = std::chrono::seconds{5};
// Pause before an attempt that failed at once is repeated.
inline constexpr Duration join_pause = std::chrono::milliseconds{100};

// The next step of the caller: another attempt now, or after join_pause, or an end.
enum class JoinStep { again, pause, joined, late, no_server, failed };

// Decides after each attempt. Times are those of one clock.
class JoinAttempts {
 public:
  // `limit` is the time limit for the version to become available.
  JoinAttempts(Time start, Duration limit) : deadline_(start + limit) {}

  // Returns the time limit of an attempt that begins now. It is at least 1 ms, so that a late opening is tried once.
  Duration slice(Time now) const;
  // Takes the errno of an attempt that has ended now: 0, or that of the server (ServerLink::join); ENXIO if no server
  // is known or can be reached, ECONNRESET if it was lost. ESHUTDOWN: the server is drained; another one is the home,
  // or becomes it.
  JoinStep after(int error, Time now);

 private:
  Time deadline_;
  // Time limit for a server to appear; max: it was there at the last attempt. It counts from when the server was found
  // absent, not from when it was last there, because noticing that a server hangs may take long.
  Time absent_until_ = Time::max();
};

}  // namespace hocket::io_client
