// One simulated application: how far it is, how long what it does next takes, and what is wanted of it.
//
// A program computes iterations, does an I/O phase in each `iterations_per_phase`-th of them, and comes to a control
// point after each `control_every`-th, the I/O phase of that iteration done. All random values are drawn by the number
// of the period or phase (random.hpp), so that they are the same under each policy.
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
  Application(const ApplicationSpec& spec, const TargetSpec& target, std::uint64_t seed);

  // Begins the period that follows the iterations done. Precondition: is_period_over(), and some are left.
  void begin_period();
  // The iteration in which the present period's phase is; the last one, where the program ends before.
  std::int64_t period_end() const { return period_end_; }
  bool is_period_over() const { return iteration_ == period_end_; }
  bool has_phase() const { return has_phase_; }
  bool is_done() const { return iteration_ == spec_.iterations; }
  bool dies_at(std::int64_t iteration) const { return iteration == death_; }

  // Computing from `now` on, up to iteration next_stop().
  void compute(Time now);
  // What comes first: the control point of what is wanted, its death, the end of the period.
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

  double phase_bytes() const { return phase_bytes_; }
  // Where in its phase it can stop, so many bytes of it done: after so many bytes, the phase's where nowhere sooner.
  double stop_after(double done) const;
  // The round of the present file that ended there; -1: none did.
  std::int64_t round_at(double done) const;
  double bandwidth() const { return bandwidth_; }  // the most that it can use at its size, bytes per second
  void phase_done(Duration io);

  const ApplicationSpec& spec() const { return spec_; }
  std::int64_t iteration() const { return iteration_; }
  std::int64_t processes() const { return processes_; }
  double process_seconds() const { return process_seconds_; }  // in computing
  // The last control point before the present iteration's body.
  std::int64_t last_control_point() const { return (iteration_ - 1) / spec_.control_every * spec_.control_every; }
  bool is_at_control_point() const { return iteration_ % spec_.control_every == 0; }
  // As the profile is said to tell: exact, or wrong.
  std::vector<event::Profile> profile() const;

  State state = State::not_started;
  ApplicationResult result;

 private:
  std::int64_t control_point_from(std::int64_t iteration) const;
  double most_bandwidth(std::int64_t processes) const;
  void set_processes(std::int64_t processes);

  const ApplicationSpec& spec_;
  const TargetSpec& target_;
  Random random_;
  std::int64_t processes_ = 0;
  double iteration_s_ = 0;        // at its size, without jitter
  double first_iteration_s_ = 0;  // at its first one
  double bandwidth_ = 0;
  double first_bandwidth_ = 0;

  std::int64_t iteration_ = 0;  // done, at the beginning of the present stretch of computing
  Time since_{};                // when that began
  std::uint64_t periods_ = 0;
  std::int64_t period_end_ = 0;
  double pace_ = 1;    // of the computing time, as its period changes for good
  double factor_ = 1;  // of the present period's computing time
  double phase_bytes_ = 0;
  bool has_phase_ = false;
  std::int64_t death_ = -1;  // iteration
  std::optional<Wanted> wanted_;
  std::uint64_t resizes_ = 0;
  double process_seconds_ = 0;
};

}  // namespace hocket::sim
