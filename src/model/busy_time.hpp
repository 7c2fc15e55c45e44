// How long an application was in I/O, and how long it waited, by what its members report.
//
// I/O time is the time during which at least one of its processes is in I/O. Waited is the time during which at least
// one waits for a grant and none is in I/O. So two members that wait side by side wait once, and who waits while
// another of the application writes does not wait.
//
// Members report intervals and how much of each was I/O, or waiting (IO_PHASE). Where intervals of several members that
// are only partly busy overlap, they are taken to be busy independently of each other; of one member alone, and of
// wholly busy intervals, the times are exact.
//
// Pure, not thread-safe. Memory is bounded: of the distant past only the sums are exact, and a report that comes so
// late is weighed against averages.
#pragma once

#include <cstddef>
#include <vector>

#include "base/time.hpp"
#include "event/event.hpp"

namespace hocket::model {

class BusyTime {
 public:
  static constexpr std::size_t most_steps = 256;

  // What a member did in an interval: shares of its length, together at most 1.
  struct Part {
    Time start{};
    Time end{};
    double io = 0;
    double wait = 0;
  };
  // Those of one member, which do not overlap each other, nor what it reported before.
  void add(const std::vector<Part>& parts);

  struct Times {
    Duration io{};
    Duration wait{};
  };
  Times all() const { return times_of(io_ns_, wait_ns_); }
  Times between(Time start, Time end) const;

 private:
  // From `start` to the start of the next step: the probability that no member is in I/O, and that none waits either.
  struct Step {
    Time start{};
    double no_io = 1;
    double idle = 1;
  };
  std::size_t split(Time at);
  void count(const Step& step, Time end, double sign);
  void coarsen();
  static Times times_of(double io_ns, double wait_ns);

  std::vector<Step> steps_;  // in order of time; the last one is idle
  double io_ns_ = 0;
  double wait_ns_ = 0;
};

// Of a report, within [start, end]: by its intervals, or, where it has none that can be, by its sums.
std::vector<BusyTime::Part> parts_of(const event::IoPhase& phase, Time start, Time end);

}  // namespace hocket::model
