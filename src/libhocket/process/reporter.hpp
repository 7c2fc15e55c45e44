// The connection of this process to hocketd, and the I/O phases and iterations that are reported through it.
//
// A process has at most one reporter: rank 0 of a world from MPI_Init on, another process from the first time that it
// sends a request or an event. It is never destroyed. Thread-safe; may throw std::bad_alloc unless noexcept.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/function_ref.hpp"
#include "process/hot.hpp"
#include "session/bursts.hpp"
#include "session/iterations.hpp"
#include "session/phases.hpp"
#include "session/session.hpp"
#include "session/settings.hpp"

namespace hocket::runtime {

// The processes for which an operation requests a grant in this process. A larger value includes the smaller ones.
enum class AsksFor { nobody, itself, all_of_file };

class Reporter {
 public:
  // Returns the reporter of this process, or nullptr if it has none. Async-signal-safe.
  static Reporter* find() noexcept;
  // Returns the reporter of this process, and creates it at the first call. `speaks`: a new one reports every phase,
  // for all processes; otherwise it reports phases in which it had requests of its own.
  static Reporter& get(bool speaks = true);
  // Returns the reporter of an operation that requests a grant for these processes, or nullptr if it is not reported.
  static Reporter* of(AsksFor asks_for) { return asks_for == AsksFor::nobody ? find() : &get(); }

  Session& session() { return session_; }
  Bursts& bursts() { return bursts_; }

  // Begins an I/O operation as part of an I/O phase. The caller must call `operation_ends`.
  void operation_begins(Time start, AsksFor asks_for) noexcept;
  void operation_ends(const Operation& operation) noexcept;
  // Begins an operation that continues the open I/O phase. Otherwise returns false: then call `operation_begins` from a
  // thread that may block. These two allocate nothing, and may run in a signal handler (session/bounded_lock.hpp).
  bool operation_begins_at_once(Time start, AsksFor asks_for) noexcept;
  // Ends an operation. If another thread holds the lock for long, the phase does not count its time and bytes.
  void operation_ends_at_once(const Operation& operation) noexcept;
  // Adds time outside of data accesses, up to `end`, to the open phase (file_touched).
  void extend_phase(Time end, Duration io) noexcept;
  // Ends the I/O phase, because the last file of this process is closed. It continues in a step of the application, and
  // if more of a prepared phase is to come.
  void files_closed() noexcept;
  // Ends the I/O phase, because the application has completed what it prepared, or the program ends.
  void end_phase() noexcept;
  // Reports the phase that is over by `now`, if there is one.
  void report_due(Time now);
  // Records a control point of a malleable program. `leads` is true in rank 0 of the computing processes. Another
  // process no longer reports phases without requests of its own: each one that joined later is rank 0 of its world.
  void control_point(const IterationProgress& progress, bool leads) noexcept;

  // True if an operation that begins now continues the open phase.
  bool in_phase(Time now) noexcept;
  // True if the latest operation is the first of its phase.
  bool phase_began() noexcept;
  // Sets the floating-point operations that all computing processes have counted up to the begin of the open phase, if
  // all of them, of `processes`, have counted. `world`: the processes of a program without control points.
  void flop_counted(double operations, std::int64_t processes, std::int64_t world) noexcept;
  // Sets the time that all processes of a file have spent, in the open phase.
  void spent_by_all(const SpentTotals& all) noexcept;

 private:
  explicit Reporter(bool speaks);
  void report(std::optional<event::IoPhase> over);
  PhaseTracker& phases();

  Session session_;
  Bursts bursts_;
  std::mutex mutex_;     // guards the members below
  PhaseTracker phases_;  // used through `phases`
  IterationMeter iterations_;
  bool speaks_;                                  // reports every phase, for all processes
  AsksFor asked_ = AsksFor::nobody;              // the largest of the open phase's operations
  std::atomic<std::int64_t> ended_unknown_ = 0;  // operations that have ended without the lock; `phases` adds them
};

// Reports the I/O phase that is over by `now`. It is called with each time that is read anyway.
inline void report_phase_due(Time now) noexcept {
  if (to_ns(now) > hot.phase_deadline.load(std::memory_order_relaxed)) [[unlikely]]
    Reporter::find()->report_due(now);
}

// Counts time in which a file was opened, closed or the like. The time may lie outside of phases.
void file_touched(Time end, Duration io) noexcept;
// Returns the connection through which this process sends and receives events of malleability, or nullptr if the
// application is not reported. The first call creates the connection's object.
Session* connection();
// Returns the bursts through which independent accesses send requests. Returns nullptr if they need none: another
// request of this process or a step of the application covers them, or there is no coordination. An application that
// was told not to coordinate still needs them where `is_held` says that the operator holds the target.
Bursts* independent_bursts(FunctionRef<bool(const HeldTargets&)> is_held) noexcept;
// Returns what the operator holds, for an application that was told not to coordinate. The first call in a process
// connects to hocketd and waits for its answer, within the time limit.
const HeldTargets& held_targets();
// Sets a function that wakes a sleeping thread when PAUSE_IO comes. The thread that receives PAUSE_IO calls it.
void on_pause(void (*hook)()) noexcept;
// Prints what the program has called or announced wrongly, and sends it to hocketd, so that `hocket explain` shows it.
// Before MPI_Init and after MPI_Finalize it is only printed.
void wrong_information(const std::string& error);
// Warns once for the whole application that hocketd is missing: in rank 0 of its first world. That rank also reports
// missing grants of the other ranks, at the end.
void warn_of_missing_hocketd(std::string_view why);

}  // namespace hocket::runtime
