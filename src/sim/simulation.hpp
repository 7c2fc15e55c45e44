// Simulates a run: applications that compute and do I/O phases, targets that they share, and the real coordinator.
//
// The event queue has at most one entry for each application, each target, the coordinator's TICK, and each
// application's monitor. The monitor reports I/O phases as libhocket does. Computing between two I/O phases costs no
// event: a control point is an event only if a RECONFIGURE is pending there. Messages take no time. Deterministic:
// the same scenario gives the same report (except wall_s) and trace, bit for bit. Not thread-safe.
//
// The simulation simplifies a real run. An application is one member, and each of its operations has its own grant.
// libhocket's helper thread and its bounded wait are simulated (RENEW_IO, HOCKET_MAX_WAIT_S); lost connections are
// not, but for an application that dies. A pause takes effect at the end of the present file or round, as the
// scenario says. The application obeys RECONFIGURE as libhocket does with `merge` and `blocking`, and is stopped for
// the stated cost. The page cache is one more target, the last one, which is too fast to slow anything down.
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

// One run of a scenario. Use an object for a single run.
class Simulation {
 public:
  // Offset of all simulated times, because the coordinator takes time 0 as "none".
  static constexpr Time start = time_from_ns(1'000'000'000);

  // `scenario` must outlive the object. Without a controller no application waits or is resized, which simulates
  // faster.
  Simulation(const Scenario& scenario, std::unique_ptr<Controller> controller);

  // Simulates until every application has ended, or `until_s`, or `stop` becomes true. Call it once. The caller fills
  // in the report's `policy` and `wall_s`.
  Report run(const bool& stop = never);

 private:
  using Number = std::uint32_t;  // index of an application in the scenario; also of other entries of the queue
  static constexpr bool never = false;
  static constexpr auto no_transfer = static_cast<SharedBandwidth::Transfer>(-1);
  // The state of an application as a member of the coordinator: its connection, its request and its transfer.
  struct Member {
    Controller::Member self;
    AppId app;
    event::IoPhase phase;     // the open phase, or the next one
    bool phase_open = false;  // true if it has begun and is not reported yet
    RequestId request;
    bool coordinated = false;   // true while it holds a grant for the present operation
    double share = 1;           // bandwidth share of the last grant
    double rest = 0;            // bytes of the operation that are not part of the present transfer
    bool pausing = false;       // true if it stops at the end of the present transfer
    bool pauses_now = false;    // true if it stops at once instead
    Time since{};               // start of the present wait, pause or gap
    Time io_start{};            // start of the present transfer
    Duration io_before{};       // I/O time of the operation before the present transfer
    Duration gap{};             // length of the present computing between two operations
    double compute_s = 0;       // seconds of computing, at the end of the last operation
    double compute_before = 0;  // the same at the end of the last phase
    Number target = 0;          // target of the present operation
    SharedBandwidth::Transfer transfer = no_transfer;
    Resize resize;
  };

  // The result of an operation that has ended.
  struct Done {
    Duration io{};
    std::int64_t bytes = 0;  // bytes of one process
    bool last = false;       // true for the last operation of its phase
  };

  // Handles the queue entry with this number.
  void happen(Number number);
  void application_event(Number i);
  void target_event(Number target);
  void begin(Number i);
  // Continues after an operation or a control point: with the end, the next phase, or computing.
  void go_on(Number i);
  void schedule(Number i);
  void end(Number i);
  void die(Number i);

  // Stops at the end of an iteration. A pending reconfiguration begins here or is refused.
  void control_point(Number i);
  void tell_given_up(Number i, const Resize& resize, const std::string& reason);
  void end_resize(Number i);

  // The course of an operation: gap, request, wait, transfers with pauses between them, and end.
  void approach_operation(Number i);
  void start_operation(Number i);
  void open_phase(Number i);
  void wait(Number i);
  void give_up_waiting(Number i);
  void transfer(Number i);
  void start_transfer(Number i, double bytes);
  double bytes_done(Number i);
  // Renews the lease, as the helper thread of libhocket does.
  void renew(Number i);
  void obey(Number i, const event::GrantIo& grant);
  void obey(Number i, const event::PauseIo& pause);
  void pause(Number i);
  double weight_of(Number i) const;
  void end_operation(Number i);
  void add_to_phase(Number i, Duration io);
  void tell_operation(Number i, const Done& done);
  void tell_phase(Number i);

  // Passes an event to the coordinator and obeys the commands that it returns.
  void send(const Controller::Member& from, event::Body body);
  void obey(const coordinator::Command& command);
  void set_tick();
  void set_target_event(Number target);
  // Accounts for the applications that have not ended when the simulation ends.
  void cut_off();
  Report report() const;

  // The order of the queue's entries: applications, targets, TICK, monitors. At equal times this order holds.
  Number number_of_target(Number target) const { return static_cast<Number>(applications_.size()) + target; }
  Number number_of_tick() const { return number_of_target(static_cast<Number>(targets_.size())); }
  Number number_of_monitor(Number i) const { return number_of_tick() + 1 + i; }

  const Scenario& scenario_;
  std::unique_ptr<Controller> controller_;
  Time now_ = start;
  IndexedHeap<Time> queue_;
  std::vector<Application> applications_;
  std::vector<Member> members_;             // same order as applications_
  std::vector<SharedBandwidth> targets_;    // order of the scenario, then the page cache
  std::vector<std::vector<Number>> users_;  // application of each transfer, by target
  std::vector<double> bytes_;               // bytes transferred, by target
  std::vector<SharedBandwidth::Transfer> ended_;
  Controller::Member daemon_;
  Duration renewal_{};  // a third of a lease
  // DECISION events, and all events of the queue.
  std::int64_t decisions_ = 0;
  std::int64_t events_ = 0;
};

}  // namespace hocket::sim
