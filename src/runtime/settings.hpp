// What the environment asks of libhocket (ARCHITECTURE.md, "Environment of a job").
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/time.hpp"

namespace hocket::runtime {

// What counts as floating-point operations.
enum class FlopEvents {
  hardware,    // what the processor counts, where it can be read
  none,        // nothing: the counters are left to others
  task_clock,  // nanoseconds of computing time, which every Linux counts: a stand-in, for tests
};

// Who does collective accesses of files.
enum class Io { mpi, hocket };

struct Settings {
  std::string socket;  // path of hocketd's socket; "": there is nobody to ask
  std::string job;
  std::string name;
  bool coordinate = true;
  Duration answer = from_s(5);
  Duration max_wait = from_s(600);
  Duration phase_gap = from_s(0.1);
  FlopEvents flop_events = FlopEvents::hardware;
  Io io = Io::mpi;
  bool posix = true;  // what the program reads and writes itself is seen

  // Whether hocketd is told of the application; and whether there are control points at all. The same in all ranks of a
  // world: the environment is the launcher's.
  bool reports() const { return !socket.empty(); }
  bool coordinates() const { return coordinate && reports(); }
};

// `get` is getenv or a stand-in for it; `complain` gets one line for each value that is not understood, whose default
// then holds.
Settings read_settings(const std::function<const char*(const char*)>& get,
                       const std::function<void(std::string_view)>& complain);

}  // namespace hocket::runtime
