// Groups the I/O operations of one process into I/O phases: operations that are less than a gap apart form one phase.
// The phases become IO_PHASE events.
//
// Pure: times are parameters. Not thread-safe: the caller holds a lock.
#pragma once

#include <optional>
#include <string_view>

#include "event/event.hpp"
#include "mpi_shim/spent.hpp"
#include "session/busy.hpp"

namespace hocket::runtime {

// The running sums of a process at one moment.
struct TimeSums {
  Duration io{};
  Duration comm{};
  Duration wait{};  // time waited for grants
};

// The progress of a malleable program at its last control point.
struct IterationProgress {
  std::int64_t iteration = -1;     // iterations done; -1: no control point yet
  std::int64_t processes = 0;      // number of computing processes from then on
  std::int64_t control_every = 0;  // iterations since the previous control point; 0: unknown
  std::int64_t composition = 0;    // number of changes of the set of computing processes
};

// An I/O operation that has ended.
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
  // `start` is the time from which the computing time before the first phase counts.
  PhaseTracker(Duration gap, Time start) : gap_(gap), previous_end_(start) {}

  // Begins an operation; its wait for a grant is part of it. Returns the phase that was over by then, if any.
  // Afterwards `began` is true if the operation is the first of a phase.
  std::optional<event::IoPhase> begin(Time start);
  bool began() const { return began_; }
  // Returns true if an operation that begins then continues the open phase. `begin` and `end` then allocate nothing.
  bool continues(Time start) const { return open_ && start <= deadline(); }

  // Ends an operation that `begin` was called for. `sums` are the process's, this operation included.
  void end(const Operation& operation, const TimeSums& sums);

  // Ends so many operations of which nothing is known but that they have ended.
  void ended_unknown(std::int64_t operations) { running_ -= operations; }

  // Adds time outside of data accesses (a file was opened, closed or the like), which took `io` up to `end`. The time
  // belongs to the open phase, unless that phase was over before. In that case the function returns the phase.
  std::optional<event::IoPhase> extend(Time end, Duration io, const TimeSums& sums);

  // Sets the progress at a control point. It does not affect a phase that ended before, even one reported later.
  void control_point(const IterationProgress& progress) { progress_ = progress; }

  const IterationProgress& progress() const { return progress_; }

  // Sets the floating-point operations that all processes have counted from their starts to that of the open phase. If
  // the previous phase has a count too, of the same processes, IO_PHASE reports the difference.
  void counted(double operations);

  // Sets the time that all processes of a file have spent up to an access of the phase. The file with most ranks wins.
  void told(const SpentTotals& all);

  // Returns the phase that is over because no operation has come for longer than the gap.
  std::optional<event::IoPhase> due(Time now);

  // Ends the open phase, because no operation can follow: the last file is closed, or the program ends. Returns
  // nothing while an operation is under way.
  std::optional<event::IoPhase> finish();

  // Returns the time after which `due` returns a phase; Time::max() if none is open or an operation is under way.
  Time deadline() const;

 private:
  void add(Time end, Duration io, const TimeSums& sums);

  Duration gap_;
  std::optional<event::IoPhase> open_;
  BusyIntervals io_, waits_;  // times in I/O, and times waiting for grants, in the open phase
  bool began_ = false;
  std::int64_t running_ = 0;  // operations between begin and end
  std::int64_t next_index_ = 0;
  IterationProgress progress_;
  // Floating-point operations, and which processes counted them (IterationProgress::composition).
  struct FlopCount {
    double operations = 0;
    std::int64_t composition = 0;
  };
  std::optional<FlopCount> count_;           // at the start of the open phase
  std::optional<FlopCount> previous_count_;  // at the start of the previous phase
  TimeSums sums_{};                          // at the end of the last operation
  TimeSums previous_sums_{};                 // at the end of the previous phase
  Time previous_end_;
};

}  // namespace hocket::runtime
