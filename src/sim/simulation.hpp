// A simulated run: applications that compute and do I/O phases, targets that they share, and the real coordinator.
//
// An event queue with at most one entry for each application, each target, the coordinator and the monitor of each
// application, which reports I/O phases as libhocket does. What happens between two I/O phases is no event unless it
// matters: a control point is one only if a RECONFIGURE is to be looked at there.
// Messages take no time. Deterministic: the same scenario gives the same report (but wall_s) and trace, bit for bit.
//
// Simplified against a real run: an application is one member, and each of its operations has a grant of its own;
// libhocket's helper thread and its bounded wait are there (RENEW_IO, HOCKET_MAX_WAIT_S), lost connections are not; a
// pause comes at the end of the file or round under way, as the scenario says; RECONFIGURE is obeyed as libhocket does
// in `merge` and `blocking`, the application standing still for the stated cost. What the page cache serves is a
// transfer to a target that nobody slows down, the last one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/application.hpp"
#include "sim/controller.hpp"
#include "sim/indexed_heap.hpp"
#include "sim/report.hpp"
#include "sim/scenario.hpp"
#include "sim/shared_bandwidth.hpp"

namespace hocket::sim {

class Simulation {
 public:
  // All simulated times are after this one: time 0 means "none" to the coordinator.
  static constexpr Time start = time_from_ns(1'000'000'000);

  // `scenario` must outlive it. Without a controller nobody waits and nobody is resized: that is fast.
  Simulation(const Scenario& scenario, std::unique_ptr<Controller> controller);

  // To be called once; ends early when `stop` becomes true. Leaves `policy`, `wall_s` to be filled in.
  Report run(const bool& stop = never);

 private:
  using Number = std::uint32_t;  // of an application, in the order of the scenario
  static constexpr bool never = false;
  static constexpr auto no_transfer = static_cast<SharedBandwidth::Transfer>(-1);
  struct Member {
    Controller::Member self;
    AppId app;
    event::IoPhase phase;     // the one that is open, or the next one
    bool phase_open = false;  // it has begun, and was not reported yet
    RequestId request;
    bool coordinated = false;   // holds a grant for the operation under way
    double share = 1;           // of the target, as the last grant said
    double rest = 0;            // bytes of the operation that are not in the present transfer
    bool pausing = false;       // it stops when the present transfer ends
    bool pauses_now = false;    // or does not go on with it
    Time since{};               // waiting, paused or between operations
    Time io_start{};            // of the present transfer
    Duration io_before{};       // in the operation's earlier ones
    Duration gap{};             // of the present stretch of computing between two operations
    double compute_s = 0;       // of computing, at the end of the last operation
    double compute_before = 0;  // at the end of the last phase
    Number target = 0;          // of the present operation
    SharedBandwidth::Transfer transfer = no_transfer;
    Resize resize;
  };

  // An operation that has ended.
  struct Done {
    Duration io{};
    std::int64_t bytes = 0;  // of a process
    bool last = false;       // of its phase
  };

  void happen(Number number);
  void application_event(Number i);
  void target_event(Number target);
  void begin(Number i);
  void go_on(Number i);
  void schedule(Number i);
  void end(Number i);
  void die(Number i);

  void control_point(Number i);
  void tell_given_up(Number i, const Resize& resize, const std::string& reason);
  void end_resize(Number i);

  void approach_operation(Number i);
  void start_operation(Number i);
  void open_phase(Number i);
  void wait(Number i);
  void give_up_waiting(Number i);
  void transfer(Number i);
  void start_transfer(Number i, double bytes);
  double bytes_done(Number i);
  void renew(Number i);
  void obey(Number i, const event::GrantIo& grant);
  void obey(Number i, const event::PauseIo& pause);
  void pause(Number i);
  double weight_of(Number i) const;
  void end_operation(Number i);
  void add_to_phase(Number i, Duration io);
  void tell_operation(Number i, const Done& done);
  void tell_phase(Number i);

  void send(const Controller::Member& from, event::Body body);
  void obey(const coordinator::Command& command);
  void set_tick();
  void set_target_event(Number target);
  void cut_off();
  Report report() const;

  Number number_of_target(Number target) const { return static_cast<Number>(applications_.size()) + target; }
  Number number_of_tick() const { return number_of_target(static_cast<Number>(targets_.size())); }
  Number number_of_monitor(Number i) const { return number_of_tick() + 1 + i; }

  const Scenario& scenario_;
  std::unique_ptr<Controller> controller_;
  Time now_ = start;
  IndexedHeap<Time> queue_;  // applications, then targets, then the coordinator's TICK, then the monitors
  std::vector<Application> applications_;
  std::vector<Member> members_;             // as applications_
  std::vector<SharedBandwidth> targets_;    // as in the scenario, then the page cache
  std::vector<std::vector<Number>> users_;  // by target and transfer
  std::vector<double> bytes_;               // by target
  std::vector<SharedBandwidth::Transfer> ended_;
  Controller::Member daemon_;
  Duration renewal_{};  // a third of a lease
  std::int64_t decisions_ = 0;
  std::int64_t events_ = 0;
};

}  // namespace hocket::sim
