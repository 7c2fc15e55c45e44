// Simulates a run: applications that compute and do I/O phases, targets that they share, and the real coordinator.
//
// The event queue has at most one entry for each application, each target, the coordinator's TICK, each application's
// monitor, and the I/O servers together. The monitor reports I/O phases as libhocket does. Computing between two I/O
// phases costs no event: a control point is an event only if a RECONFIGURE is pending there. Messages take no time.
// Deterministic: the same scenario gives the same report (except wall_s) and trace, bit for bit. Not thread-safe.
//
// The simulation simplifies a real run. An application is one member, and each of its operations has its own grant.
// libhocket's helper thread and its bounded wait are simulated (RENEW_IO, HOCKET_MAX_WAIT_S); lost connections are
// not, but for an application that dies. A pause takes effect at the end of the present file or round, as the
// scenario says. The application obeys RECONFIGURE as libhocket does with `merge` and `blocking`, and is stopped for
// the stated cost. The page cache is one more target, the last one, which is too fast to slow anything down.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "sim/application.hpp"
#include "sim/controller.hpp"
#include "sim/forwarded_io.hpp"
#include "sim/indexed_heap.hpp"
#include "sim/report.hpp"
#include "sim/scenario.hpp"
#include "sim/simulated_servers.hpp"
#include "sim/striped_bandwidth.hpp"

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
  SimulationReport run(const bool& stop = never);

 private:
  using QueueNumber = std::uint32_t;  // index of an application in the scenario; also of other entries of the queue
  static constexpr bool never = false;
  static constexpr auto no_transfer = static_cast<StripedBandwidth::TransferNumber>(-1);
  // The state of an application as a member of the coordinator: its connection, its request and its transfer.
  struct SimulatedMember {
    Controller::MemberIdentity self;
    AppId app;
    event::IoPhase phase;     // the open phase, or the next one
    bool phase_open = false;  // true if it has begun and is not reported yet
    RequestId request;
    bool coordinated = false;   // true while it holds a grant for the present operation
    double share = 1;           // bandwidth share of the last grant
    double counted = 0;         // bytes of the operation that its I/O servers have counted
    double most = 0;            // largest rate of the present transfer
    double rest = 0;            // bytes of the operation that are not part of the present transfer
    bool pausing = false;       // true if it stops at the end of the present transfer
    bool pauses_now = false;    // true if it stops at once instead
    bool unstopped = false;     // true if it was asked to pause, and its operations have no place to stop
    Time since{};               // start of the present wait, pause or gap
    Time served_since{};        // since it has its present number of servers; 0: it has no map
    Time io_start{};            // start of the present transfer
    Duration io_before{};       // I/O time of the operation before the present transfer
    Duration gap{};             // length of the present computing between two operations
    double compute_s = 0;       // seconds of computing, at the end of the last operation
    double compute_before = 0;  // the same at the end of the last phase
    QueueNumber target = 0;     // target of the present operation
    StripedBandwidth::TransferNumber transfer = no_transfer;
    SimulatedResize resize;
  };

  // The result of an operation that has ended.
  struct OperationResult {
    Duration io{};
    std::int64_t bytes = 0;  // bytes of one process
    bool last = false;       // true for the last operation of its phase
  };

  // Handles the queue entry with this number.
  void happen(QueueNumber number);
  void application_event(QueueNumber i);
  void target_event(QueueNumber target);
  void arrive(QueueNumber i);
  void ask_or_begin(QueueNumber i);
  void begin(QueueNumber i);
  // Start the applications of a strict queue for which there are nodes, and take the nodes of an ended one back.
  void start_queued();
  void give_nodes_back(QueueNumber i);
  // True if the coordinator hears of its operations. Those of an application that forwards ask for no turn.
  bool tells_operations(QueueNumber i) const { return controller_ != nullptr && !forwarded_.forwards(i); }
  // Continues after an operation or a control point: with the end, the next phase, or computing.
  void go_on(QueueNumber i);
  void schedule(QueueNumber i);
  void end(QueueNumber i);
  void die(QueueNumber i);

  // Stops at the end of an iteration. A pending reconfiguration begins here or is refused.
  void control_point(QueueNumber i);
  void tell_given_up(QueueNumber i, const SimulatedResize& resize, const std::string& reason);
  void end_resize(QueueNumber i);

  // The course of an operation: gap, request, wait, transfers with pauses between them, and end.
  void approach_operation(QueueNumber i);
  void start_operation(QueueNumber i);
  void open_phase(QueueNumber i);
  void wait(QueueNumber i);
  void give_up_waiting(QueueNumber i);
  void transfer(QueueNumber i);
  void start_transfer(QueueNumber i, double bytes);
  double bytes_done(QueueNumber i);
  // Renews the lease, as the helper thread of libhocket does.
  void renew(QueueNumber i);
  void obey(QueueNumber i, const event::GrantIo& grant);
  void obey(QueueNumber i, const event::PauseIo& pause);
  void pause(QueueNumber i);
  double weight_of(QueueNumber i) const;
  void end_operation(QueueNumber i);
  void add_to_phase(QueueNumber i, Duration io);
  void tell_operation(QueueNumber i, const OperationResult& done);
  void tell_phase(QueueNumber i);

  // The I/O servers (simulation_servers.cpp): they join before the applications, take part in operations, and report.
  void join_servers();
  void begin_at_servers(QueueNumber i, bool at_control_point);
  void end_at_servers(QueueNumber i);
  void count_at_servers(QueueNumber i);
  // Gives transfers through servers the rates that their servers have now.
  void set_server_rates();
  // Lets an application that forwards use a new map at once.
  void use_map(QueueNumber i, const event::NewServerMap& map);
  void count_served(QueueNumber i);
  void servers_event();
  void report_servers();
  void set_servers_event();
  // Returns the largest rate that the application's transfer can use.
  double most_rate(QueueNumber i) const;
  // Ends the simulation after the last application, although servers would go on.
  void end_with_applications();

  // Passes an event to the coordinator and obeys the commands that it returns.
  void send(const Controller::MemberIdentity& from, event::Body body);
  void obey(const coordinator::Command& command);
  void set_tick();
  void set_target_event(QueueNumber target);
  // Accounts for the applications that have not ended when the simulation ends.
  void cut_off();
  SimulationReport report() const;

  // The order of the queue's entries: applications, targets, TICK, monitors, I/O servers. At equal times this order
  // holds.
  QueueNumber number_of_target(QueueNumber target) const {
    return static_cast<QueueNumber>(applications_.size()) + target;
  }
  QueueNumber number_of_tick() const { return number_of_target(static_cast<QueueNumber>(targets_.size())); }
  QueueNumber number_of_monitor(QueueNumber i) const { return number_of_tick() + 1 + i; }
  QueueNumber number_of_servers() const { return number_of_monitor(static_cast<QueueNumber>(applications_.size())); }

  const Scenario& scenario_;
  std::unique_ptr<Controller> controller_;
  Time now_ = start;
  IndexedHeap<Time> queue_;
  std::vector<SimulatedApplication> applications_;
  std::vector<SimulatedMember> members_;         // same order as applications_
  std::vector<StripedBandwidth> targets_;        // order of the scenario, then the page cache
  std::vector<std::vector<QueueNumber>> users_;  // application of each transfer, by target
  std::vector<double> bytes_;                    // bytes transferred, by target
  std::vector<StripedBandwidth::TransferNumber> ended_;
  SimulatedServers servers_;
  ForwardedIo forwarded_;
  std::deque<QueueNumber> waiting_for_nodes_;  // in the order in which they came
  std::int64_t free_nodes_ = 0;
  std::vector<Controller::MemberIdentity> server_members_;  // same order as the servers
  // MAP_ADOPTED that are still to be sent: applications adopt maps while they obey.
  struct Adoption {
    QueueNumber application;
    std::int64_t epoch;
  };
  std::vector<Adoption> adoptions_;
  Controller::MemberIdentity daemon_;
  Duration renewal_{};             // a third of a lease
  std::int64_t slow_servers_ = 0;  // SLOW_IO_SERVER events
  // DECISION events, and all events of the queue.
  std::int64_t decisions_ = 0;
  std::int64_t events_ = 0;
};

}  // namespace hocket::sim
