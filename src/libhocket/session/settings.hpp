// The settings of libhocket, read from the environment (docs/design/environment.md). Pure.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/time.hpp"

namespace hocket::runtime {

// The source of the floating-point operations (HOCKET_FLOP_COUNTERS).
enum class FlopEvents {
  hardware,    // the processor's counters, if they can be read
  none,        // no counting: the counters are free for other tools
  task_clock,  // nanoseconds of computing time, which every Linux counts: a stand-in for tests
};

// The library that does collective accesses of files (HOCKET_IO).
enum class Io { mpi, hocket };

struct MemberSettings {
  std::string socket;  // HOCKET_SOCKET: path of hocketd's socket; "": no hocketd
  std::string job;     // HOCKET_JOB: unique name of the run
  std::string name;    // HOCKET_NAME: name of the application
  bool coordinate = true;
  Duration answer = from_s(5);       // time limit for any message from hocketd while a request waits
  Duration max_wait = from_s(600);   // time limit of a wait for a grant
  Duration phase_gap = from_s(0.1);  // operations that are less than this apart form one I/O phase
  FlopEvents flop_events = FlopEvents::hardware;
  Io io = Io::mpi;
  bool posix = true;    // POSIX I/O of the program itself is watched
  std::string capture;  // HOCKET_CAPTURE: directory for the log of each rank's calls; "": none

  // True if the application is reported to hocketd. As the launcher sets the environment, all ranks of a world agree.
  bool reports() const { return !socket.empty(); }
  // True if collective accesses are control points. All ranks of a world agree.
  bool coordinates() const { return coordinate && reports(); }
};

// Reads the settings. `get` is getenv or a stand-in for it. `complain` gets one line for each invalid value; its
// default then holds.
MemberSettings read_settings(const std::function<const char*(const char*)>& get,
                             const std::function<void(std::string_view)>& complain);

}  // namespace hocket::runtime
