// A running application as the controller knows it, and its members.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

// This is what processes have computed and communicated from their starts on: sums, and the largest of one.
struct SpentByAll {
  std::int64_t processes = 0;  // 0: not told
  Duration cpu{};
  Duration comm{};
  Duration cpu_most{};
  Duration comm_most{};
};

// One connection of an application.
struct alignas(64) Member {
  MemberId id;
  Application* application = nullptr;
  std::int64_t processes = 0;
  RequestId last_request;                    // the highest number that was asked with
  std::int64_t last_phase = -1;              // the highest index that was reported
  ShortVector<Requests::iterator> requests;  // queued and granted
  Duration cpu{};                            // reported with I/O phases
  Duration comm{};
  SpentByAll all;              // told with them last
  std::int64_t map_epoch = 0;  // the oldest of the server map that it uses; 0: it uses no I/O servers
};

enum class Activity { computing, waiting, io };
std::string_view name_of(Activity activity);

// What its members reported with their I/O phases: I/O time and waiting as model/busy_time.hpp defines them, sums of
// the rest.
struct Totals {
  Duration io{};
  Duration wait{};
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;
};

// What a malleable application said of itself last, and what was asked of it.
struct Malleability {
  bool malleable = false;
  MemberId commanding;             // who is told of a resize; none: it has gone, and nobody has taken over yet
  std::int64_t processes = 0;      // that compute
  std::int64_t iteration = 0;      // of the last control point that was heard of
  std::int64_t control_every = 0;  // iterations between control points; 0: not known
  std::int64_t sleeping = 0;
  std::string method;
  std::int64_t reconfigurations = 0;  // done
  ResizeCosts costs;                  // of those that were done
  std::int64_t resizing_to = 0;       // processes; 0: no resize that a tool asked for is under way

  // The new processes of a resize from the present size. New ones alone take over in `baseline`; else those that sleep
  // are used first.
  std::int64_t to_start(std::int64_t targets) const;
  // What a resize is expected to cost, as its resizes did; nothing before the first one.
  std::optional<Estimate> cost_of(std::int64_t sources, std::int64_t targets) const;
};

// A change of its size that a policy made and that is not undone.
struct Expansion {
  std::int64_t decision = 0;  // number of its DECISION; 0: there is none
  std::string policy;
  std::int64_t original = 0;             // processes before
  std::int64_t return_at_iteration = 0;  // to `original`; 0: it is for good, until the cores are reclaimed
  Time start_after{};                    // predicted start of the next I/O phase under it; 0: that has come
};

// How far the predictions about it can be relied on, by those that were held against what happened.
struct Reliance {
  std::int64_t misses = 0;        // of late: one more with each miss, half with each prediction that was met
  std::int64_t until_phases = 0;  // policies that rest on its predictions leave it alone until it has done so many
};

// The fields that each of its operations needs come first, in as few cache lines as hold it: among thousands of
// applications, an event costs what it has to fetch from memory.
struct alignas(64) Application {
  AppId id;
  std::string name;          // unique among running applications
  std::int64_t waiting = 0;  // requests
  std::int64_t granted = 0;  // requests
  Activity activity = Activity::computing;

  Time since{};                         // start of that activity
  Duration waited{};                    // without any grant, in activities that are over
  ShortVector<Member*> members;         // in order of arrival
  ShortVector<Holders::iterator> held;  // its entries among the holders of targets

  AccessHistory accesses;
  std::string target;  // last asked for

  IoDemand demand;             // of the I/O phase under way
  std::int64_t processes = 0;  // sum over members; see computing_processes
  Malleability malleability;
  IoRecord io;
  Announcements announcements;

  std::string asked;      // the name asked for
  std::int64_t copy = 1;  // 1: `name` is `asked`; else the number at its end
  std::string job;
  std::string program;
  std::string mpi;
  std::string node;  // of its first member, as pid
  std::int64_t pid = 0;
  Time arrived{};            // its first HELLO
  Duration waited_before{};  // the part of `waited` that was before the last report
  // Its I/O time with waits beyond what it would have been uncoordinated, estimated; below 0 where that is less.
  double late_s = 0;
  // Of accesses that nobody ordered: how far the estimate of that was from what they took, as a part.
  RunningMean late_error;
  BusyTime busy;
  Totals totals;
  IoHistory history;
  bool irregular = false;  // no period fits, as it was told last
  IterationTimes iterations;
  SpeedupCurve curve{Beyond::law};  // of a profile; without one, what is seen of this run
  bool curve_is_seen = false;       // the latter
  double flop_per_iteration = 0;    // of all processes; 0: not known
  FlopSource flop_source = FlopSource::unknown;
  Expansion expansion;
  Reliance reliance;
  std::int64_t reconfigurations_before = 0;  // done when the last phase was reported
  ProfileExtension extension;                // what is seen of this run at sizes that its profile lacks

  // The processes that compute: what a malleable application says of itself (its members are many, and some sleep),
  // else the sum over members.
  std::int64_t computing_processes() const { return malleability.malleable ? malleability.processes : processes; }

  // What all processes moved, where each did as much; 0: not known.
  std::int64_t of_all(std::int64_t bytes_of_one) const;

  // The oldest epoch of the server map that a member uses; 0: none uses I/O servers.
  std::int64_t map_epoch() const;

  // Changes the numbers of requests, and with them the activity.
  void count_requests(std::int64_t waiting_change, std::int64_t granted_change, Time now);

  // Takes in what `source` says of its operations, where nothing better is known.
  void learn_flop(double per_iteration, FlopSource source);

  // For grants, up to now: as reported, and of the I/O phase under way as its requests show it.
  Duration waited_until(Time now) const;

  // Of all processes, as a member told for them; where no member told it for more, of the members that have reported.
  SpentByAll spent() const;
  // A prediction about it was held against what happened. Each miss doubles the time for which it is left alone.
  void judge(bool met);
  bool is_left_alone() const { return history.phases() < reliance.until_phases; }

  // Takes in a report. Numbers that cannot be (negative, longer than the phase, a phase that ends after `now`) are
  // brought to the nearest possible one: a client's mistake must not spoil sums or predictions for good.
  // The other processes moved as much as the one that reports, where the member counts them. A report of one process
  // counts as busy time alone.
  void add_phase(const event::IoPhase& phase, Time now, Member* member = nullptr);
  // The same for a report of iterations.
  void add_iterations(const event::Iterations& said);
  // Whether its times are to be had from reports of iterations: no whole I/O period was seen at its size, or such a
  // period takes long.
  bool lives_by_iterations() const;

 private:
  void add_to_history(const event::IoPhase& phase, PhaseRecord record, Member* member);
  void count_flop(double since_last_phase, std::int64_t iteration);
  void add_to_curve();
  void add_to_curve(const CurvePoint& point);
};

}  // namespace hocket::model
