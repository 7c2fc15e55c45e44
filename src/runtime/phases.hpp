// Groups the I/O operations of one process into I/O phases: operations less than a gap apart are one phase.
//
// Pure: times come in. Not thread-safe: the caller holds a lock.
#pragma once

#include <optional>
#include <string_view>

#include "event/event.hpp"
#include "runtime/busy.hpp"
#include "runtime/spent.hpp"

namespace hocket::runtime {

// Running sums of a process at one moment.
struct Sums {
  Duration io{};
  Duration comm{};
  Duration wait{};  // for grants
};

// How far a malleable program is, at its last control point.
struct Progress {
  std::int64_t iteration = -1;     // iterations done; -1: there was none yet
  std::int64_t processes = 0;      // that compute from then on
  std::int64_t control_every = 0;  // iterations since the control point before; 0: not known
  std::int64_t composition = 0;    // how often those that compute have become others
};

// One I/O operation that has ended.
struct Operation {
  Time end{};
  Duration io{};
  Duration wait{};
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;
  std::string_view target;
};

class PhaseTracker {
 public:
  // `start`: since when the time before the first phase is counted.
  PhaseTracker(Duration gap, Time start) : gap_(gap), previous_end_(start) {}

  // An operation begins (its wait for a grant included). Gives the phase that was over by then.
  // After it, `began` tells whether the operation is the first of a phase.
  std::optional<event::IoPhase> begin(Time start);
  bool began() const { return began_; }

  // An operation that `begin` was called for has ended; `sums` are those of the process, this operation included.
  void end(const Operation& operation, const Sums& sums);

  // A file was opened, closed or the like, in `io` up to `end`. It belongs to the open phase unless that was over when
  // this began; then gives that phase.
  std::optional<event::IoPhase> extend(Time end, Duration io, const Sums& sums);

  // A control point. A phase that ended before it is none of its business, though it may be reported later.
  void control_point(const Progress& progress) { progress_ = progress; }

  const Progress& progress() const { return progress_; }

  // `operations` is what all processes have counted from their starts to that of the open phase. Phases that follow
  // each other with it, and with the same processes, say what was counted between them.
  void counted(double operations);

  // What all processes of a file have spent up to an access of the open phase.
  void told(const SpentByAll& all);

  // The phase that is over because nothing has happened for longer than the gap.
  std::optional<event::IoPhase> due(Time now);

  // The phase that is over because nothing can follow: the last file is closed, or the program ends.
  std::optional<event::IoPhase> finish();

  // From when on `due` gives a phase; Time::max() while no phase is open or an operation runs.
  Time deadline() const;

 private:
  void add(Time end, Duration io, const Sums& sums);

  Duration gap_;
  std::optional<event::IoPhase> open_;
  BusyIntervals io_, waits_;  // of the open phase
  bool began_ = false;
  std::int64_t running_ = 0;  // operations between begin and end
  std::int64_t next_index_ = 0;
  Progress progress_;
  // What was counted, and by which processes.
  struct Count {
    double operations = 0;
    std::int64_t composition = 0;
  };
  std::optional<Count> count_;           // of the open phase
  std::optional<Count> previous_count_;  // of the one before
  Sums sums_{};                          // at the end of the last operation
  Sums previous_sums_{};                 // at the end of the previous phase
  Time previous_end_;
};

}  // namespace hocket::runtime
