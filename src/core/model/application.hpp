// An Application is a running application as the coordinator knows it, with its members and what was measured of it.
// The coordinator owns and changes it through `Cluster`; policies only read it. Reported numbers are clamped to
// possible values on entry.
//
// Pure, not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/node_counts.hpp"
#include "base/short_vector.hpp"
#include "event/event.hpp"
#include "model/busy_time.hpp"
#include "model/flop.hpp"
#include "model/io_demand.hpp"
#include "model/io_history.hpp"
#include "model/iteration_times.hpp"
#include "model/profile_extension.hpp"
#include "model/resize_costs.hpp"
#include "model/speedup_curve.hpp"
#include "model/target.hpp"

namespace hocket::model {

struct Application;

// CPU and communication time that processes have spent since their starts: sums over the processes, and the largest
// value of a single process.
struct SpentTimes {
  std::int64_t processes = 0;  // 0: not reported
  Duration cpu{};
  Duration comm{};
  Duration cpu_most{};
  Duration comm_most{};
};

// One connection of an application, with its requests. `Cluster` owns it.
struct alignas(64) Member {
  MemberId id;
  Application* application = nullptr;
  std::int64_t processes = 0;
  RequestId last_request;                    // highest request number so far
  std::int64_t last_phase = -1;              // highest phase index reported so far
  ShortVector<Requests::iterator> requests;  // queued and granted
  Duration cpu{};                            // reported with I/O phases
  Duration comm{};
  SpentTimes all;  // reported last, together with an I/O phase
  std::string node;
  std::int64_t peer_pid = 0;  // its process, as the kernel says; 0: not known
  bool delegations = false;   // it knows them, as it says in HELLO
  Time batched{};             // time of its latest event that is in the coordinator's backlog, or was
};

// The activity of an application as a whole: `io` if any request is granted, else `waiting` if any is queued.
enum class Activity { computing, waiting, io };
std::string_view name_of(Activity activity);

// Sums over the I/O phases that the members reported. I/O time and waiting are those of model/busy_time.hpp.
struct Totals {
  Duration io{};
  Duration wait{};
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;
};

// The latest report of a malleable application about itself, and the resize requested of it.
struct Malleability {
  bool malleable = false;
  MemberId commanding;             // receives resize requests; none: it has left and has no successor yet
  std::int64_t processes = 0;      // processes that compute
  std::int64_t iteration = 0;      // highest iteration reported
  std::int64_t control_every = 0;  // iterations between control points; 0: unknown
  std::int64_t sleeping = 0;
  std::string method;
  std::int64_t reconfigurations = 0;  // completed so far
  ResizeCosts costs;                  // of completed reconfigurations
  std::int64_t resizing_to = 0;       // processes; 0: no resize requested by a tool is under way

  // Returns the number of processes to start for a resize from the present size. With `baseline`, all processes are
  // new; otherwise sleeping processes are used first.
  std::int64_t to_start(std::int64_t targets) const;
  // Returns the expected cost of a resize, learned from earlier ones; nothing before the first one.
  std::optional<Estimate> cost_of(std::int64_t sources, std::int64_t targets) const;
};

// A change of the application's size by a policy that has not been undone.
struct Expansion {
  std::int64_t decision = 0;  // number of its DECISION; 0: there is none
  std::string policy;
  std::int64_t original = 0;             // processes before it
  std::int64_t return_at_iteration = 0;  // of the return to `original`; 0: none, until cores are reclaimed
  Time start_after{};                    // predicted start of the next I/O phase under it; 0: that has come
  AppId because_of{};                    // the other application of the conflict behind it; none: there was no conflict
  double original_period_s = 0;          // I/O period at `original`, waits excluded; 0: unknown

  bool is_temporary() const { return decision != 0 && return_at_iteration != 0; }
};

// The reliability of the predictions about an application, from those that were compared with what happened.
struct Reliance {
  std::int64_t misses = 0;        // plus 1 with each miss, halved with each prediction that was met
  std::int64_t until_phases = 0;  // policies that rest on predictions ignore it until this many phases
};

// A running application. The fields that each operation needs come first, in as few cache lines as possible: among
// thousands of applications, an event costs what it has to fetch from memory.
struct alignas(64) Application {
  AppId id;
  std::string name;          // unique among running applications
  std::int64_t waiting = 0;  // queued requests; without write-backs, as `granted`
  std::int64_t granted = 0;  // granted requests
  Activity activity = Activity::computing;

  Time since{};                         // start of the present activity
  Duration waited{};                    // time spent waiting without any grant, in past activities
  ShortVector<Member*> members;         // in order of arrival
  ShortVector<Holders::iterator> held;  // its entries in the holder lists of targets

  AccessHistory accesses;
  std::string target;  // latest one requested
  std::string parts;   // of it, as in START_IO; "": all of it

  IoDemand demand;             // of the present I/O phase
  std::int64_t processes = 0;  // sum over members; see computing_processes
  Malleability malleability;
  IoRecord io;
  Announcements announcements;

  std::string asked;      // requested name
  std::int64_t copy = 1;  // 1: `name` is `asked`; otherwise the number at its end
  std::string job;
  std::string program;
  std::string mpi;
  std::string node;             // of the first member, like `pid`
  std::int64_t pid = 0;         // as it says
  Time arrived{};               // time of the first HELLO
  bool forwards = false;        // the data of its files go through I/O servers, which hold none of them
  std::int64_t nodes = 1;       // compute nodes that it runs on
  std::string file_system;      // target of the file system whose files it forwards; "": not known
  std::string bandwidth_curve;  // by number of I/O servers, as in HELLO; perhaps none
  Duration waited_before{};     // the part of `waited` before the last report
  // The estimated seconds by which I/O and waiting exceed what they would be uncoordinated; negative if they took
  // less.
  double late_s = 0;
  // The relative error of that estimate, measured on accesses that coordination did not affect.
  RunningMean late_error;
  BusyTime busy;
  Totals totals;
  IoHistory history;
  IterationTimes iterations;
  SpeedupCurve curve{Beyond::law};  // from a profile; without one, from this run
  bool curve_is_seen = false;       // the curve comes from this run
  double flop_per_iteration = 0;    // of all processes; 0: unknown
  FlopSource flop_source = FlopSource::unknown;
  Expansion expansion;
  Reliance reliance;
  std::int64_t reconfigurations_before = 0;  // completed when the last phase was reported
  ProfileExtension extension;                // measurements of this run at sizes that its profile lacks
  std::vector<NodeCount> reported_nodes;     // on which processes computed at its last report of them; see `runs_on`
  std::int64_t delegations = 0;              // of its members
  std::int64_t recalled = 0;                 // those of them that were recalled and are not returned
  std::int64_t user = -1;                    // whose it is, as the kernel says; -1: not known
  std::string slurm_step;                    // as in HELLO

  // Returns the number of processes that compute. A malleable application reports it, because it has many members,
  // and some sleep. For others it is the sum over members.
  std::int64_t computing_processes() const { return malleability.malleable ? malleability.processes : processes; }
  // Returns on which nodes its computing processes run, as far as it has reported that of its present size; else
  // nothing.
  const std::vector<NodeCount>& runs_on() const;

  // Scales the byte count of one process to all processes, if each moved as much; 0 if unknown or too large.
  std::int64_t of_all(std::int64_t bytes_of_one) const;

  // Changes the numbers of requests, and with them the activity. Waiting that ends is added to `waited`.
  void count_requests(std::int64_t waiting_change, std::int64_t granted_change, Time now);

  // Takes the FLOP per iteration that `source` reports, unless a better source is known.
  void learn_flop(double per_iteration, FlopSource source);

  // Returns the time spent waiting for grants up to `now`: the reported time, and that of the present I/O phase as
  // its requests show it.
  Duration waited_until(Time now) const;

  // Returns the CPU and communication time of all processes, as one member reported them. If no member reported for
  // more processes, the sums cover the members that have reported.
  SpentTimes spent() const;
  // Records whether a prediction was met. Each further miss doubles the number of phases for which policies ignore
  // predictions about this application.
  void judge(bool met);
  bool is_left_alone() const { return history.phases() < reliance.until_phases; }

  // Adds a report of an I/O phase. Impossible numbers (negative, longer than the phase, a phase that ends after
  // `now`) are clamped to the nearest possible one: a client's mistake must not spoil sums or predictions for good.
  //
  // The byte counts are scaled to all processes if the member counts processes, or if `member` is null. A report of a
  // single process (`of_one_process`) does not enter the I/O history.
  void add_phase(const event::IoPhase& phase, Time now, Member* member = nullptr);
  // Adds a report of iterations, clamped likewise. A report from another size than the present one is ignored.
  void add_iterations(const event::Iterations& said);
  // True if its times come from reports of iterations: no whole I/O period was seen at its size, or the period is
  // longer than 30 s.
  bool lives_by_iterations() const;

 private:
  void add_to_history(const event::IoPhase& phase, PhaseRecord record, Member* member);
  void count_flop(double since_last_phase, std::int64_t iteration);
  void add_to_curve();
  void add_to_curve(const CurvePoint& point);
};

}  // namespace hocket::model
