// One simulated application: how far it is, how long what it does next takes, and what is wanted of it.
//
// A program computes iterations, in periods of `iterations_per_phase`. A period has I/O phases: by default one after
// its last iteration. A phase consists of operations. The program comes to a control point after each
// `control_every`-th iteration, once the I/O phases of that iteration are done. All random values are drawn by the
// number of the period, phase or gap (random.hpp), so that they are the same under each policy.
//
// Not thread-safe. It knows no other application and no coordinator: simulation.hpp moves it on.
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

enum class State {
  not_started,
  computing,
  waiting,  // for a grant
  io,
  paused,   // in the middle of it, for another application
  between,  // computing before a phase or between two of its operations
  stopped,  // at a control point
  ended,
};

// A RECONFIGURE that was not carried out yet, as libhocket keeps it: the last one only.
struct Wanted {
  event::Reconfigure command;
  std::int64_t first_look = 0;  // the control point at which the program sees it
  std::int64_t act_at = 0;      // the one at which it is carried out, or refused
};

// How a reconfiguration that has begun will end.
struct Resize {
  event::Reconfigure command;
  Time start{};
  std::int64_t started = 0;  // new processes
  bool succeeds = false;
};

class Application {
 public:
  // Both must outlive it.
  Application(const ApplicationSpec& spec, const std::vector<TargetSpec>& targets, std::uint64_t seed);

  // Begins the period that follows the iterations done. Precondition: is_period_over(), and some are left.
  void begin_period();
  bool is_period_over() const { return iteration_ == period_end_; }
  // Whether the next I/O phase comes before any further iteration.
  bool is_phase_due() const { return next_phase_ < phases_.size() && phase_at_ == iteration_; }
  bool is_done() const { return iteration_ == spec_.iterations; }
  bool dies_at(std::int64_t iteration) const { return iteration == death_; }

  // Computing from `now` on, up to iteration next_stop().
  void compute(Time now);
  // What comes first: the control point of what is wanted, its death, the next I/O phase, the end of the period.
  std::int64_t next_stop() const;
  Time time_of(std::int64_t iteration) const;
  // Precondition: state == computing. Sums up what was done until then.
  void compute_until(Time now, std::int64_t iteration);
  std::int64_t iterations_done(Time now) const;

  void want(Time now, const event::Reconfigure& command);
  bool is_wanted_now() const;
  // Why the program refuses what is wanted now; "" where it does not.
  std::string refusal() const;
  event::Reconfigure drop_wanted();
  Resize take_wanted(Time now);
  // How long it stands still.
  Duration cost(const Resize& resize, const ReconfigurationCost& cost) const;
  void resized(Time now, const Resize& resize);

  // The next phase, or the present one, and its present operation. Precondition: there is one.
  const PhaseSpec& phase() const { return phases_[next_phase_]; }
  std::int64_t operation() const { return operation_; }
  double operation_bytes() const { return phase_bytes_ / static_cast<double>(phase().operations); }
  // What is announced of the phase's bytes before the present operation; 0: nothing.
  std::int64_t announced() const;
  // Where in its operation it can stop, so many bytes of it done: after so many bytes, the operation's if nowhere
  // sooner.
  double stop_after(double done) const;
  // The round of the present file that ended there; -1: none did.
  std::int64_t round_at(double done) const;
  // The most that the phase can use at the application's size, bytes per second.
  double bandwidth() const { return most_bandwidth(processes_, phase()); }
  // The present operation has ended; the next one is now the present one, perhaps of the next phase.
  void operation_done(Duration io);
  // Draws the computing time before the present operation; 0: none.
  Duration gap();
  void gap_done(Duration gap);

  const ApplicationSpec& spec() const { return spec_; }
  std::int64_t iteration() const { return iteration_; }
  std::int64_t processes() const { return processes_; }
  double process_seconds() const { return process_seconds_; }  // in computing
  // The last control point that it has passed.
  std::int64_t last_control_point() const;
  bool is_at_control_point() const { return iteration_ % spec_.control_every == 0; }
  void pass_control_point() { passed_ = iteration_; }
  // As the profile is said to tell: exact, or wrong.
  std::vector<event::Profile> profile() const;

  State state = State::not_started;
  ApplicationResult result;

 private:
  std::int64_t control_point_from(std::int64_t iteration) const;
  double most_bandwidth(std::int64_t processes, const PhaseSpec& phase) const;
  void set_processes(std::int64_t processes);
  // The next phase of the period from this one on that takes place.
  void look_for_phase(std::size_t from);

  const ApplicationSpec& spec_;
  const std::vector<TargetSpec>& targets_;
  std::vector<PhaseSpec> phases_;  // of a period
  Random random_;
  std::int64_t processes_ = 0;
  double iteration_s_ = 0;        // at its size, without jitter
  double first_iteration_s_ = 0;  // at its first one
  double announced_factor_ = 1;

  std::int64_t iteration_ = 0;  // done, at the beginning of the present stretch of computing
  Time since_{};                // when that began
  std::uint64_t periods_ = 0;
  std::int64_t period_start_ = 0;
  std::int64_t period_end_ = 0;
  std::int64_t passed_ = 0;     // the iteration at which it last stood at a control point
  double pace_ = 1;             // of the computing time, as its period changes for good
  double factor_ = 1;           // of the present period's computing time
  std::size_t next_phase_ = 0;  // of phases_; their number: none is left in the period
  std::int64_t phase_at_ = 0;   // the iteration after which it comes
  double phase_bytes_ = 0;
  std::int64_t operation_ = 0;
  std::uint64_t gaps_ = 0;
  std::int64_t death_ = -1;  // iteration
  std::optional<Wanted> wanted_;
  std::uint64_t resizes_ = 0;
  double process_seconds_ = 0;
};

}  // namespace hocket::sim
