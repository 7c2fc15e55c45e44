// A simulated run: applications that compute and do I/O phases, targets that they share, and the real coordinator.
//
// An event queue with at most one entry for each application, each target and the coordinator. What happens between two
// I/O phases is no event unless it matters: a control point is one only if a RECONFIGURE is to be looked at there.
// Messages take no time. Deterministic: the same scenario gives the same report (but wall_s) and trace, bit for bit.
//
// Simplified against a real run: an I/O phase is one operation, of several files perhaps; libhocket's helper thread and
// its bounded wait are there (RENEW_IO, HOCKET_MAX_WAIT_S), lost connections are not; a pause comes at the end of the
// file or round under way, as the scenario says; RECONFIGURE is obeyed as libhocket does in `merge` and `blocking`, the
// application standing still for the stated cost.
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

  // To be called once. Leaves `policy`, `wall_s` to be filled in.
  Report run();

 private:
  using Number = std::uint32_t;  // of an application, in the order of the scenario
  static constexpr auto no_transfer = static_cast<SharedBandwidth::Transfer>(-1);
  struct Member {
    Controller::Member self;
    AppId app;
    event::IoPhase phase;  // of the present or the last phase
    RequestId request;
    bool coordinated = false;   // holds a grant for the operation under way
    double share = 1;           // of the target, as the last grant said
    double rest = 0;            // bytes of the phase that are not in the present transfer
    bool pausing = false;       // it stops when the present transfer ends
    bool pauses_now = false;    // or does not go on with it
    Time waiting_since{};       // while waiting or paused
    Time io_start{};            // of the present transfer
    Duration io_before{};       // in the phase's earlier ones
    Time phase_end{};           // of the last one
    double compute_before = 0;  // s of computing, at the end of the last phase
    SharedBandwidth::Transfer transfer = no_transfer;
    Resize resize;
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

  void start_phase(Number i);
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
  void end_phase(Number i);
  void tell_phase(Number i);

  void send(const Controller::Member& from, event::Body body);
  void obey(const coordinator::Command& command);
  void set_tick();
  void set_target_event(Number target);
  void cut_off();
  Report report() const;

  Number number_of_target(Number target) const { return static_cast<Number>(applications_.size()) + target; }
  Number number_of_tick() const { return number_of_target(static_cast<Number>(targets_.size())); }

  const Scenario& scenario_;
  std::unique_ptr<Controller> controller_;
  Time now_ = start;
  IndexedHeap<Time> queue_;  // applications, then targets, then the coordinator's TICK
  std::vector<Application> applications_;
  std::vector<Member> members_;  // as applications_
  std::vector<SharedBandwidth> targets_;
  std::vector<std::vector<Number>> users_;  // by target and transfer
  std::vector<double> bytes_;               // by target
  std::vector<SharedBandwidth::Transfer> ended_;
  Controller::Member daemon_;
  Duration renewal_{};  // a third of a lease
  std::int64_t decisions_ = 0;
  std::int64_t events_ = 0;
};

}  // namespace hocket::sim
