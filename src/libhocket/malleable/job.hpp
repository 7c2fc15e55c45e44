// One process of a malleable application: its control points, and its part in a reconfiguration. The steps are those of
// docs/design/malleability.md.
//
// Functions are collective as include/hocket/malleable.h states. Not thread-safe: the thread that calls MPI calls them.
// If MPI fails in the middle of a reconfiguration, the job ends, because the ranks cannot agree on anything any more.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "event/event.hpp"
#include "malleable/arrays.hpp"
#include "malleable/door.hpp"
#include "malleable/methods.hpp"
#include "malleable/spawn.hpp"
#include "malleable/watch.hpp"
#include "malleable/worlds.hpp"
#include "redistribute/balance.hpp"

namespace hocket::runtime {

// Result of a control point.
enum class ControlPointResult { go_on, resized, leave };

// Result of next(); the values are those of malleable.h.
enum class LoopStep { end = 0, iterate = 1, resized = 2 };

// Result of a change of the registered arrays; the same in all processes.
struct ArrayChange {
  enum ChangeOutcome { done, no_memory, wrong } outcome = done;
  std::string what;  // what is wrong
};

// A reconfiguration in progress. It is the same in all source ranks, except for `record` and what belongs to it, which
// rank 0 fills.
struct OngoingReconfiguration {
  std::int64_t targets = 0;  // processes afterwards
  Methods methods;
  std::string places;                   // places of new processes, as text; "": anywhere
  std::vector<std::string> nodes;       // of new processes; empty: anywhere
  std::vector<std::int64_t> cores;      // of new processes, -1: any
  std::string leave;                    // nodes to be left first, as RECONFIGURE names them; "": any
  std::int64_t woken = 0;               // sleeping processes to use again
  std::int64_t started = 0;             // new processes to start
  std::unique_ptr<ProcessStart> start;  // nullptr: nothing to start, or strategy join
  std::vector<MPI_Comm> met;            // communicator of each batch, where this process communicates with it
  std::vector<ProcessInfo> processes;   // of the merged communicator, while data move in the background
  std::int64_t processes_asked = 0;     // join, in rank 0: number of the request to hocketd
  std::string port;                     // join, in rank 0
  std::optional<Door> door;             // join, in rank 0
  std::int64_t asked_on = 0;            // join, in rank 0: connection to hocketd of that request
  std::int64_t wanted_on = 0;           // in rank 0: connection to hocketd on which the resize was requested
  bool wanted_here = false;             // in rank 0: the program itself requested it
  bool ready = false;                   // join, in rank 0: the processes may be accepted
  std::string failure;                  // why processes could not be started here; "": no failure

  MPI_Comm all;  // the merged communicator, or `ours_` if no process joins
  int rank = 0;  // in `all`
  redistribute::Roles roles;
  Departure departure;
  std::vector<double> speeds;              // speed of each source rank
  std::vector<double> weights;             // speed of each destination rank
  bool same_arrays = true;                 // the new processes registered the same arrays
  bool in_background = false;              // constant data move, or have moved, while the sources compute
  std::unique_ptr<Redistribution> moving;  // their transfer in progress
  Time moving_since{};
  std::uint64_t check = 0;  // hash of the constant data; 0: not checked

  Time began{};  // start of the reconfiguration
  Time mark{};   // start of the current lap
  std::vector<ProcessInfo> sleepers_before;
  event::Reconfiguration record;
  Duration lap();  // time since the last lap, or since the control point began
};

// Most bytes of a text about nodes in an event: hocketd takes no longer ones.
constexpr std::size_t longest_nodes = 8192;

// Returns the only core on which this process may run; -1 if there are several.
std::int64_t own_core();

// The last resize that was completed.
struct LastResize {
  std::int64_t number = 0;  // resizes completed so far in the life of the application
  event::Reconfiguration record;
  Duration total{};  // from its begin until the destination ranks continued
  Methods methods;
};

// The state machine of one process. Ranks are those of the computing processes; rank 0 decides, and alone communicates
// with hocketd. A reconfiguration may take several control points: change_ holds it meanwhile.
class MalleableJob {
 public:
  // Returns true if a resize started this process.
  static bool is_joining();
  // Makes the job of the processes of `comm`; a process that joins passes its MPI_COMM_WORLD. Collective. Returns
  // nullptr if MPI failed.
  static std::unique_ptr<MalleableJob> create(MPI_Comm comm);
  ~MalleableJob();
  MalleableJob(const MalleableJob&) = delete;
  MalleableJob& operator=(const MalleableJob&) = delete;

  // True if a resize started this process.
  bool joined() const { return joined_; }
  // True after the first call of begin() that did not fail.
  bool begun() const { return begun_; }
  // True if this process shall leave; it has no arrays and no communicator any more.
  bool has_left() const { return left_; }
  // Returns the program's communicator; before begin() that of create().
  MPI_Comm comm() const;
  // Returns the number of iterations done, which is the iteration to continue with.
  std::int64_t iteration() const { return iteration_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  Arrays& arrays() { return arrays_; }
  const Arrays& arrays() const { return arrays_; }

  // Takes part in the first distribution, or joins the others. Returns an error if the program filled a matrix wrongly;
  // then nothing has begun. `first` is the first iteration; a process that joins receives its iteration instead.
  // Collective.
  Result<ControlPointResult> begin(std::int64_t first);
  // Ends the iteration under way, if there is one, with a control point, and begins the next one below `last`.
  // Collective.
  LoopStep next(std::int64_t last);
  // Register an array, change the length of one and drop one; after begin() collective, and such a change ends a
  // transfer in the background first. A process that joined claims what it has got already, which is local.
  ArrayChange add_array(const Arrays::Spec& spec);
  ArrayChange set_length(int array, std::int64_t length);
  ArrayChange drop_array(int array);
  // Requests a new distribution by speed at the next control point, and leaves such requests to the program from now
  // on. `busy_s` <= 0: the time measured outside of MPI. Collective.
  void balance(double busy_s);
  // Declares the floating-point operations of one iteration of all processes; rank 0 sends them at the next control
  // point.
  void declare_flop(double per_iteration);
  // Requests a resize with these methods (parse_methods). Rank 0 sends it to hocketd, if there is one. All ranks call
  // it.
  void request(std::int64_t processes, const std::string& methods);
  // Makes the next call of next() wait until a pending resize has ended, for `limit` at most.
  void wait(Duration limit) { wait_ = limit; }
  const LastResize& last_resize() const { return last_resize_; }
  const Methods& methods() const { return settings_.methods; }
  // Ends the job; the last call. Collective over the computing processes, local in one that has left.
  void end();

 private:
  // Rank 0's decision at a control point, broadcast as it is.
  struct ControlPointDecision {
    enum Action : std::int64_t { none, start, unite, cancel, look };
    std::int64_t kind = none;
    std::int64_t by_speed = 0;  // with start: weighted arrays are shared out by the speeds measured until now
  };
  MalleableJob() = default;

  // Implemented in job.cpp: the start, and control points.
  Result<ControlPointResult> begin_as_first();
  ControlPointResult point();
  ControlPointDecision decide();
  ControlPointDecision decide_about_start();
  ControlPointDecision decide_about_resize();
  void take_commands();
  void take_command(const event::Body& command, Time now);
  bool is_start_due();
  void withdraw(RequestId request);
  void refuse_wanted(const std::string& reason);
  void drop_request(const std::string& reason);
  ControlPointResult follow(ControlPointDecision decision);
  ControlPointResult start_reconfiguration(bool by_speed);
  Methods methods_wanted() const;
  void brief_sources();
  void begin_record(RequestId request, Time asked);
  void announce();
  void tell_progress();
  // Sends the record to hocketd; false if there is none.
  static bool tell_record(event::Reconfiguration record, std::int64_t wanted_on);
  void give_up(const std::string& reason);
  void limit_change();
  void part_at_the_end();

  // Implemented in job_wait.cpp: control points that wait for a pending resize.
  ControlPointDecision await_decision(Time until);
  void tell_too_late() const;
  ControlPointResult finish_pending(Duration limit);
  ControlPointResult finish_at_end();

  // Implemented in job_balance.cpp: computing times, and a new distribution by speed without a resize.
  static Duration time_elsewhere();
  double busy_since_control_point_s() const;
  void note_busy_time();
  void measure_anew(bool resized);
  bool balances_itself() const;
  std::vector<redistribute::ProcessTime> times_of_all(double busy_s, double error_s);
  std::vector<double> told_speeds();
  std::vector<double> speeds_now();
  double cost_of_move_s(const std::vector<double>& weights) const;
  ControlPointResult look_at_balance();

  // Implemented in job_spawn.cpp: new and sleeping processes enter the merged communicator.
  ControlPointResult start_growth();
  void place_new_processes();
  std::string text_of_change() const;
  ControlPointResult ask_for_processes();
  Status ask_hocketd();
  ControlPointResult unite();
  void accept_all();
  bool agree_that_started(std::string& failure);
  static void dismiss(std::vector<MPI_Comm>& met);
  void give_up_starting(const std::string& reason);
  ControlPointResult bring_in();
  void tell_remaining(MPI_Comm all, std::int64_t remaining, std::int64_t next_leader);
  int leader_of_sleeper(const ProcessInfo& sleeper) const;
  int leader_of_batch(std::size_t batch) const;
  MPI_Comm bring_in_sleepers(MPI_Comm all);
  MPI_Comm bring_in_batches(MPI_Comm all);
  Result<Met> meet_spawner();
  ControlPointResult join_others();
  ControlPointResult come_in(MPI_Comm all);
  void release_sleepers(const std::vector<ProcessInfo>& before, const std::vector<ProcessInfo>& after);
  ControlPointResult sleep();

  // Implemented in job_arrays.cpp: changes of the registered arrays while the application computes.
  ArrayChange agree(std::uint64_t change, const Status& possible);
  ArrayChange agree_on_memory(bool room);
  void end_background_move();
  Status check_owners(const Arrays::Spec& spec) const;

  // Implemented in job_move.cpp: data and processes move from the merged communicator to the destination ranks.
  void choose_targets();
  ControlPointResult shrink();
  ControlPointResult share_out_anew(const std::vector<double>& weights);
  bool is_source() const;
  void brief_all();
  std::string why_not_movable();
  void plan_move();
  void order_targets();
  void share_out();
  ControlPointResult move();
  ControlPointResult part_again(const std::string& reason);
  void count_bytes();
  void move_blocking(bool constant);
  void start_moving();
  ControlPointResult follow_moving();
  void finish_moving();
  ControlPointResult complete(bool commit);
  ControlPointResult resume();
  static void note_unfinished(bool unfinished);
  MPI_Comm communicator_of_targets();
  void go_to_targets(MPI_Comm targets);
  void leave_sources();
  void renew_programs_communicator();
  std::vector<ProcessInfo> gather_processes(MPI_Comm comm) const;
  void open_connections();
  void watch_others();
  void watch_all();
  void watch(const std::vector<ProcessInfo>& processes, const std::function<bool(std::size_t)>& matters);
  void put_record(Blob& blob) const;
  void take_record(Blob& blob);
  std::string places_left() const;
  // Completes the record of a reconfiguration that is done; with `reports`, sends it. `left`: places_left().
  void finish_record(bool reports, std::string left);

  ResizeSettings settings_;
  Arrays arrays_;
  Watch watch_;
  bool joined_ = false;
  bool begun_ = false;
  bool left_ = false;
  bool starting_up_ = false;  // inside begin(), while the application becomes as large as requested
  // The application to join (strategy *join*); the port is "" in a process that does not join in this way.
  int join_pid_ = 0;
  std::string join_port_;
  std::string join_door_;
  RequestId join_request_;

  MPI_Comm given_;     // the caller's, from create()
  MPI_Comm world_;     // duplicate of it, in which sleeping processes are woken
  MPI_Comm ours_;      // computing processes; for control messages
  MPI_Comm programs_;  // computing processes; the program's
  int rank_ = -1;      // -1: this process does not compute (yet, or any more)
  int size_ = 0;
  ProcessInfo info_;
  std::vector<ProcessInfo> processes_;  // computing processes, by rank
  std::vector<ProcessInfo> sleepers_;
  std::vector<double> weights_;  // speed of each rank
  double busy_s_ = 0;            // computing time of this process, for balance()
  bool balance_ = false;
  bool balanced_by_program_ = false;  // it calls balance(): hocket does not decide besides
  redistribute::BusyWindow window_;   // since the last look at the balance
  redistribute::BusyWindow earlier_;  // since the last distribution, before the window
  bool settles_ = true;               // the iteration under way prepares for new ranges: it is not measured
  std::int64_t iteration_ = 0;        // iterations done
  bool iterating_ = false;            // inside an iteration of the program's loop
  std::int64_t control_point_ = -1;   // iterations done at this process's last control point; -1: none yet
  std::int64_t control_every_ = 0;    // iterations between the last two control points
  std::int64_t composition_ = 0;  // times that the set of computing processes has changed, as far as this process knows
  double flop_per_iteration_ = 0;  // of all processes together, as declared
  std::int64_t scheduled_ = -1;    // iteration of the last schedule entry that has begun
  Time point_since_{};             // end of the last control point
  Duration elsewhere_since_{};     // time in MPI and I/O until then
  std::int64_t last_ = 0;          // iterations that the program wants, as far as it knows
  Duration wait_{};                // time limit of a wait for a pending resize in the next control point; 0: none
  LastResize last_resize_;

  std::optional<OngoingReconfiguration> change_;
  // State of rank 0.
  std::optional<event::Reconfigure> wanted_;  // requested, not begun
  std::int64_t wanted_on_ = 0;                // connection to hocketd on which RECONFIGURE came
  bool wanted_late_ = false;                  // it was accepted at an earlier control point, and waits
  bool wanted_here_ = false;                  // the program itself requested it
  std::string wanted_methods_;                // its methods, as parse_methods() accepts them
  std::string requested_methods_;             // of the program's request
  std::int64_t requested_ = 0;        // processes that the program requested from hocketd, not answered; 0: none
  std::int64_t requested_on_ = 0;     // connection to hocketd of that request
  Time asked_{};                      // when it was requested
  Time looked_{};                     // last attempt to reach a lost hocketd
  std::int64_t announced_ = -1;       // connection to hocketd on which MALLEABLE was sent last
  std::int64_t processes_asked_ = 0;  // number of the last request for processes
  redistribute::Rebalancing rebalancing_;
  redistribute::MoveCost move_cost_;
};

}  // namespace hocket::runtime
