// BusyTime computes how long an application was in I/O, and how long it waited, from the reports of its members.
//
// I/O time is the time during which at least one of its processes is in I/O. Waited is the time during which at least
// one waits for a grant and none is in I/O. So two members that wait at the same time wait once. A member that waits
// while another one of the application writes does not count as waiting.
//
// Members report intervals, and how much of each was I/O or waiting (IO_PHASE). If partly busy intervals of several
// members overlap, they are assumed to be independent of each other. The times are exact for one member alone, and
// for wholly busy intervals.
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

  // One member's activity in an interval: fractions of its length, together at most 1.
  struct MemberActivity {
    Time start{};
    Time end{};
    double io = 0;
    double wait = 0;
  };
  // Adds the parts of one member. They must overlap neither each other nor what that member reported before.
  void add(const std::vector<MemberActivity>& parts);

  // I/O time and waiting as defined above, rounded to nanoseconds.
  struct Times {
    Duration io{};
    Duration wait{};
  };
  Times all() const { return times_of(io_ns_, wait_ns_); }
  Times between(Time start, Time end) const;

 private:
  // The probabilities that no member is in I/O (`no_io`), and that none waits either (`idle`), from `start` to the
  // start of the next step.
  struct ActivityStep {
    Time start{};
    double no_io = 1;
    double idle = 1;
  };
  std::size_t split(Time at);
  void count(const ActivityStep& step, Time end, double sign);
  void coarsen();
  static Times times_of(double io_ns, double wait_ns);

  std::vector<ActivityStep> steps_;  // in order of time; the last one is idle
  double io_ns_ = 0;
  double wait_ns_ = 0;
};

// Returns the parts of a report within [start, end]. They come from its intervals or, if it has no valid ones, from
// its sums spread evenly.
std::vector<BusyTime::MemberActivity> parts_of(const event::IoPhase& phase, Time start, Time end);

}  // namespace hocket::model
