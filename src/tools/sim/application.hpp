// One simulated application: its progress, the duration of its next step, and the pending reconfiguration.
//
// A program computes iterations in periods of `iterations_per_phase`. A period has I/O phases; by default there is
// one, after the last iteration. A phase consists of operations. After each `control_every`-th iteration the program
// reaches a control point, once the I/O phases of that iteration are done. The number of the period, phase or gap
// selects each random value (random.hpp), so the values are the same under every policy.
//
// Not thread-safe. An application knows neither other applications nor the coordinator: simulation.hpp drives it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "event/event.hpp"
#include "sim/random.hpp"
#include "sim/report.hpp"
#include "sim/scenario.hpp"
#include "sim/shared_bandwidth.hpp"

namespace hocket::sim {

// The activity of an application. Exactly one holds at a time, and it decides what the application's next event
// means.
enum class ApplicationState {
  not_started,
  asking,  // has asked for cores, and has not started
  computing,
  waiting,  // waits for a grant
  io,
  paused,   // preempted in the middle of an operation
  between,  // computing before a phase, or between two of its operations
  stopped,  // at a control point
  ended,
};

// A pending RECONFIGURE. Like libhocket, the application keeps the last one only.
struct Wanted {
  event::Reconfigure command;
  std::int64_t first_look = 0;  // control point at which the program first sees it
  std::int64_t act_at = 0;      // control point at which it is carried out or refused
};

// A reconfiguration that has begun. Its outcome is drawn at the beginning and takes effect at the end.
struct SimulatedResize {
  event::Reconfigure command;
  Time start{};
  std::int64_t started = 0;  // number of new processes
  bool succeeds = false;
};

// The state machine of one application, without the clock: callers pass the time and schedule the events.
class SimulatedApplication {
 public:
  // Both references must outlive the object.
  SimulatedApplication(const ApplicationSpec& spec, const std::vector<TargetSpec>& targets, std::uint64_t seed);

  // Begins the period after the completed iterations. Precondition: is_period_over(), and iterations are left.
  void begin_period();
  bool is_period_over() const { return iteration_ == period_end_; }
  // True if the next I/O phase comes before any further iteration.
  bool is_phase_due() const { return next_phase_ < phases_.size() && phase_at_ == iteration_; }
  bool is_done() const { return iteration_ == spec_.iterations; }
  bool dies_at(std::int64_t iteration) const { return iteration == death_; }

  // Starts to compute at `now`, up to iteration next_stop().
  void compute(Time now);
  // Returns the first iteration that interrupts computing: a pending reconfiguration's control point, the death, the
  // next I/O phase, or the end of the period.
  std::int64_t next_stop() const;
  // Returns when the iteration ends if computing is not interrupted.
  Time time_of(std::int64_t iteration) const;
  // Adds the computing up to `iteration` to the result. Precondition: state == computing.
  void compute_until(Time now, std::int64_t iteration);
  // Returns how many iterations are complete at `now`.
  std::int64_t iterations_done(Time now) const;

  // Stores a RECONFIGURE; it replaces a pending one. The program acts on it at the control point `act_at`.
  void want(Time now, const event::Reconfigure& command);
  bool is_wanted_now() const;
  // Returns why the program refuses the pending reconfiguration, or "" if it accepts. Precondition: is_wanted_now().
  std::string refusal() const;
  // Discard or begin the pending reconfiguration. Both count it, so the next one draws other random values.
  event::Reconfigure drop_wanted();
  SimulatedResize take_wanted(Time now);
  // Returns how long the reconfiguration stops the application.
  Duration cost(const SimulatedResize& resize, const ReconfigurationCost& cost) const;
  // Ends the reconfiguration: the new size holds from now on if it succeeded.
  void resized(Time now, const SimulatedResize& resize);

  // Return the present phase, or the next one, and its present operation. Precondition: there is one.
  const PhaseSpec& phase() const { return phases_[next_phase_]; }
  std::int64_t operation() const { return operation_; }
  double operation_bytes() const { return phase_bytes_ / static_cast<double>(phase().operations); }
  // Returns the announced bytes of the phase from the present operation on; 0 announces nothing.
  std::int64_t announced() const;
  // Returns the parts of the phase that are announced with them. An application announces only parts between which it
  // can stop.
  struct Parts {
    std::int64_t files = 0;  // still to come
    std::int64_t rounds = 0;
    std::int64_t bytes_per_round = 0;
  };
  Parts announced_parts() const;
  // Returns after how many bytes the operation can stop when `done` bytes of it are transferred. Without an earlier
  // point this is the whole operation.
  double stop_after(double done) const;
  // Returns the number of the round of the present file that ends at `done` bytes, or -1 if none does.
  std::int64_t round_at(double done) const;
  // Returns the largest rate that the phase can use at the present size, in bytes per second.
  double bandwidth() const { return most_bandwidth(processes_, phase()); }
  // Ends the present operation, which took `io`. The next operation becomes the present one, perhaps in the next
  // phase.
  void operation_done(Duration io);
  // Draws the computing time before the present operation; 0: none.
  Duration gap();
  void gap_done(Duration gap);

  const ApplicationSpec& spec() const { return spec_; }
  // Returns the number of processes that do I/O.
  std::int64_t writers() const { return writers_of(processes_); }
  std::int64_t iteration() const { return iteration_; }
  std::int64_t processes() const { return processes_; }
  double process_seconds() const { return process_seconds_; }  // in computing: processes times seconds
  // Returns the last control point that the application has passed.
  std::int64_t last_control_point() const;
  bool is_at_control_point() const { return iteration_ % spec_.control_every == 0; }
  void pass_control_point() { passed_ = iteration_; }
  // Returns the points of the speedup curve as the scenario's profile reports them: exact, wrong or none.
  std::vector<event::Profile> profile() const;

  // The present activity and the results so far; the simulation writes both.
  ApplicationState state = ApplicationState::not_started;
  ApplicationResult result;

 private:
  std::int64_t control_point_from(std::int64_t iteration) const;
  double most_bandwidth(std::int64_t processes, const PhaseSpec& phase) const;
  std::int64_t writers_of(std::int64_t processes) const { return spec_.writers > 0 ? spec_.writers : processes; }
  // Returns the seconds of an operation alone on its target and its I/O servers, without injected load. A write cache
  // is empty before it.
  double alone_s(double bytes, std::int64_t processes, const PhaseSpec& phase) const;
  void set_processes(std::int64_t processes);
  // Finds the next phase of the period that takes place, beginning with phase `from`.
  void look_for_phase(std::size_t from);

  const ApplicationSpec& spec_;
  const std::vector<TargetSpec>& targets_;
  std::vector<PhaseSpec> phases_;  // phases of one period
  Random random_;
  std::int64_t processes_ = 0;
  double iteration_s_ = 0;        // seconds of an iteration at the present size, without jitter
  double first_iteration_s_ = 0;  // the same at the first size
  double announced_factor_ = 1;

  // Completed iterations at `since_`, which is when the present computing began.
  std::int64_t iteration_ = 0;
  Time since_{};
  std::uint64_t periods_ = 0;
  std::int64_t period_start_ = 0;
  std::int64_t period_end_ = 0;
  std::int64_t passed_ = 0;     // iteration of the last control point that the application passed
  double pace_ = 1;             // factor on the computing time, for permanent changes of the period
  double factor_ = 1;           // factor on the computing time of the present period
  std::size_t next_phase_ = 0;  // index in phases_; phases_.size(): none is left in the period
  std::int64_t phase_at_ = 0;   // iteration after which the phase comes
  double phase_bytes_ = 0;
  std::int64_t operation_ = 0;
  std::uint64_t gaps_ = 0;
  std::int64_t death_ = -1;  // iteration of the death; -1: none
  // The pending reconfiguration, and the number of reconfigurations so far, which selects their random values.
  std::optional<Wanted> wanted_;
  std::uint64_t resizes_ = 0;
  double process_seconds_ = 0;
};

}  // namespace hocket::sim
