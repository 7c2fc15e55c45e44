// This process as a part of a malleable application: its control points, and what a reconfiguration does in it.
//
// The steps are those of ARCHITECTURE.md, "Malleability". Collective as include/hocket/malleable.h says; not
// thread-safe.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "event/event.hpp"
#include "runtime/malleable/arrays.hpp"
#include "runtime/malleable/door.hpp"
#include "runtime/malleable/methods.hpp"
#include "runtime/malleable/spawn.hpp"
#include "runtime/malleable/watch.hpp"
#include "runtime/malleable/worlds.hpp"

namespace hocket::runtime {

// What a control point tells the program; the values of malleable.h.
enum class State { go_on = 0, resized = 2, leave = 3 };

// A reconfiguration under way; the same in all sources but for the `record` and what belongs to it, which rank 0
// fills.
struct Reconfiguration {
  std::int64_t targets = 0;
  Methods methods;
  std::string places;               // of new processes; "": anywhere
  std::vector<std::string> nodes;   // of new processes; empty: anywhere
  std::vector<std::int64_t> cores;  // of new processes, -1: any
  std::int64_t woken = 0;
  std::int64_t started = 0;
  std::unique_ptr<Start> start;
  std::vector<MPI_Comm> met;           // by batch: with the new processes, where this process speaks with them
  std::vector<ProcessInfo> processes;  // of the union, while data move in the background
  std::int64_t processes_asked = 0;    // join, in rank 0: the number of the request
  std::string port;                    // join, in rank 0
  std::optional<Door> door;            // join, in rank 0
  std::int64_t asked_on = 0;           // join, in rank 0: the connection to hocketd
  std::int64_t wanted_on = 0;          // in rank 0: the connection to hocketd on which it was asked for
  bool ready = false;                  // join, in rank 0: they may be accepted
  std::string failure;                 // why processes could not be started here

  MPI_Comm all;  // the union, or `ours_` where nobody comes
  int rank = 0;  // in it
  redistribute::Roles roles;
  Departure departure;
  std::vector<double> weights;
  bool same_arrays = true;
  std::unique_ptr<Redistribution> moving;  // constant data, while the sources compute
  Time moving_since{};
  std::uint64_t check = 0;  // of the constant data; 0: not checked

  Time began{};
  Time mark{};
  std::vector<ProcessInfo> sleepers_before;
  event::Reconfiguration record;
  Duration lap();  // since the last lap, or since the application stood still
};

class Job {
 public:
  // Collective over MPI_COMM_WORLD. nullptr: the MPI failed.
  static std::unique_ptr<Job> create();
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  bool joined() const { return joined_; }
  bool begun() const { return begun_; }
  bool has_left() const { return left_; }
  MPI_Comm comm() const;
  std::int64_t iteration() const { return iteration_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  Arrays& arrays() { return arrays_; }
  const Arrays& arrays() const { return arrays_; }

  // An error: the program filled a matrix wrongly; nothing has begun.
  Result<State> begin();
  State point(std::int64_t iteration);
  void balance(double busy_s);
  void declare_flop(double per_iteration);
  // The last call; collective over those that compute, local in one that leaves.
  void end();

 private:
  // What rank 0 decides at a control point; broadcast as it is.
  struct Decision {
    enum Kind : std::int64_t { none, start, unite, cancel };
    std::int64_t kind = none;
  };
  Job() = default;

  // job.cpp: the start, and control points
  Result<State> begin_as_first();
  Decision decide();
  Decision decide_about_start();
  void take_commands();
  bool is_start_due();
  void withdraw(RequestId request);
  void refuse_wanted(const std::string& reason);
  State follow(Decision decision);
  State start_reconfiguration();
  void brief_sources();
  void begin_record();
  void announce();
  void tell_progress();
  static bool tell_record(event::Reconfiguration record, std::int64_t wanted_on);
  void give_up(const std::string& reason);
  void part_at_the_end();
  std::vector<double> measured_weights();

  // job_spawn.cpp: new processes and sleepers, into the union
  State start_growth();
  std::string text_of_change() const;
  State ask_for_processes();
  Status ask_hocketd();
  State unite();
  void accept_all();
  bool agree_that_started(std::string& failure);
  static void dismiss(std::vector<MPI_Comm>& met);
  void give_up_starting(const std::string& reason);
  State bring_in();
  void tell_remaining(MPI_Comm all, std::int64_t remaining, std::int64_t next_leader);
  int leader_of_sleeper(const ProcessInfo& sleeper) const;
  int leader_of_batch(std::size_t batch) const;
  MPI_Comm bring_in_sleepers(MPI_Comm all);
  MPI_Comm bring_in_batches(MPI_Comm all);
  Result<Met> meet_spawner();
  State join_others();
  State come_in(MPI_Comm all);
  void release_sleepers(const std::vector<ProcessInfo>& before, const std::vector<ProcessInfo>& after);
  State sleep();

  // job_move.cpp: from the union to the targets
  void choose_targets();
  State shrink();
  State share_out_anew(const std::vector<double>& weights);
  bool is_source() const;
  void brief_all();
  State move();
  State part_again(const std::string& reason);
  void count_bytes();
  void move_blocking(bool constant);
  void start_moving();
  State follow_moving();
  void finish_moving();
  State complete(bool commit);
  State resume();
  MPI_Comm communicator_of_targets();
  void go_to_targets(MPI_Comm targets);
  void leave_sources();
  void renew_programs_communicator();
  std::vector<ProcessInfo> gather_processes(MPI_Comm comm) const;
  void open_connections();
  void watch_others();
  void watch_all();
  void watch(const std::vector<ProcessInfo>& processes, const std::function<bool(std::size_t)>& matters);
  void finish_record();

  ResizeSettings settings_;
  Arrays arrays_;
  Watch watch_;
  bool joined_ = false;
  bool begun_ = false;
  bool left_ = false;
  bool starting_up_ = false;  // in `begin`, to become as many as were asked for
  // Of who is to be joined; the port is "" for who is no joiner.
  int join_pid_ = 0;
  std::string join_port_;
  std::string join_door_;
  RequestId join_request_;

  MPI_Comm world_;     // ours, of MPI_COMM_WORLD: where sleepers are woken
  MPI_Comm ours_;      // of those that compute, for control
  MPI_Comm programs_;  // of those that compute, the program's
  int rank_ = -1;      // -1: not (yet, or any more) one of those that compute
  int size_ = 0;
  ProcessInfo info_;
  std::vector<ProcessInfo> processes_;  // those that compute
  std::vector<ProcessInfo> sleepers_;
  std::vector<double> weights_;
  double busy_s_ = 0;
  bool balance_ = false;
  std::int64_t iteration_ = 0;
  std::int64_t control_point_ = -1;  // iterations done at the last control point of this process; -1: it had none
  std::int64_t control_every_ = 0;   // since the one before
  std::int64_t composition_ = 0;     // how often those that compute have become others, as far as this process knows
  double flop_per_iteration_ = 0;    // of all processes, as declared
  std::int64_t scheduled_ = -1;      // the last entry of the schedule that was begun
  Time point_since_{};               // the last control point
  Duration comm_since_{};            // in MPI communication up to it

  std::optional<Reconfiguration> change_;
  // In rank 0:
  std::optional<event::Reconfigure> wanted_;  // asked for, not begun
  std::int64_t wanted_on_ = 0;                // the connection to hocketd on which RECONFIGURE came
  bool wanted_late_ = false;                  // it was seen at an earlier control point
  Time asked_{};
  Time looked_{};                // for hocketd, when it was gone
  std::int64_t announced_ = -1;  // on which connection to hocketd
  std::int64_t processes_asked_ = 0;
};

}  // namespace hocket::runtime
