// IoDemand describes how much of its I/O phase an application still has to do; the records describe how a target
// serves several applications at once. CALCioM takes the first from Prepare() and from progress (sections III-B,
// III-C), and assumes the second; here it is learned.
//
// "Seconds alone" are seconds with the target to oneself. The demand of an application is the part (0 to 1) of what
// the target can bear that it takes alone. The excess is the sum of all demands beyond 1.
//
// Pure, not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "event/event.hpp"
#include "model/access_history.hpp"
#include "model/progress.hpp"

namespace hocket::model {

struct Application;
struct Holder;
struct Request;
struct Target;

// The latest choice of a policy that the coordinator published for an application in its I/O phase, so that it
// publishes none twice. Policies do not read it, but each decision compares it, and the demand is in the cache then. A
// table of its own cost a tenth of the events per second with 10,000 applications in groups.
struct PublishedChoice {
  std::string_view action;  // "": none; refers to static text, as that of policy::Choice
  AppId because_of;
  bool operator==(const PublishedChoice&) const = default;
};

// The I/O phase of an application, from its first request to its end.
struct IoDemand {
  Time since{};                // arrival of the first request; 0: no phase
  std::int64_t bytes = 0;      // bytes of the whole phase and all processes, as announced; 0: unknown
  std::int64_t announced = 0;  // the first announcement of `bytes`
  std::int64_t largest = 0;    // bytes of its largest request
  // The parts that the application has announced, between which it may stop; 0: unknown.
  std::int64_t files = 0;            // still to be accessed at the last announcement, the present one included
  std::int64_t rounds = 0;           // of collective buffering in each file
  std::int64_t bytes_per_round = 0;  // of all processes
  double bytes_per_file = 0;         // of all processes, in the mean
  std::string info{};                // all that was announced, one "KEY=VALUE" per line
  std::int64_t moved = 0;            // bytes of operations that have ended
  double served_s = 0;               // progress in seconds alone; open grants are counted at the target
  double shared_s = 0;               // time with a grant beside other holders; open grants excluded
  double others_s = 0;               // number of others, integrated over shared_s
  double excess_s = 0;               // excess demand, integrated over shared_s
  std::int64_t interruptions = 0;
  Duration reported_io{};           // I/O time in IO_PHASEs that came while a request was open
  std::int64_t reported_bytes = 0;  // bytes of all processes in them
  bool over = false;                // the last operation declared the phase over; its IO_PHASE may follow
  bool granted = false;             // at least one request was granted
  PublishedChoice published{};
};

// The measured I/O of an application, or of all on a target: undisturbed phases, and others compared with them. 0
// means unknown.
struct IoRecord {
  double bytes_per_s = 0;   // rate of all processes, alone
  double phase_s = 0;       // duration of a phase alone
  double interference = 0;  // slowdown factor beside one that demands all of the target
  double stop_s = 0;        // seconds from PAUSE_IO to the stop
  bool stops = false;       // it has stopped in the middle of an access, too
  // The extra time for each other holder beyond what the rates explain, relative to the time alone. It is a mean,
  // negative if the rates explain more than was lost.
  std::optional<double> disturbance;
  // In an application, the target of its last phase alone. The address is only compared, never dereferenced.
  const IoRecord* measured_on = nullptr;
};

// The knowledge about a target. `Cluster` keeps it while the target itself comes and goes.
struct TargetRecord : IoRecord {
  double most_bytes_per_s = 0;  // of one application alone, recently
  // The contention that accesses of the first load showed beside the second.
  struct Beside {
    Contention contention;
    std::int64_t alone = 0;  // accesses alone since the last measurement
  };
  std::array<std::array<Beside, loads>, loads> beside{};
  std::array<Rate, loads> rate{};  // of accesses alone
  RateFit write_rate{};            // of large writes, alone or not
  // The application that was the only one with requests for the target since a time. It may get delegations.
  AppId only_user{};
  Time only_since{};
};

// Judges an application's announcements of its phase sizes. They are believed from the first one on, until two have
// missed. Two accurate ones in a row restore the belief.
class Announcements {
 public:
  bool believed() const { return missed_ < most_missed; }
  // Returns how many may still miss before they are not believed.
  int spare() const { return most_missed - missed_; }
  // True if an announcement is near enough to what was moved. Both are bytes of all processes.
  static bool holds(std::int64_t announced, std::int64_t moved);
  // Compares them, and changes what is believed.
  void compare(std::int64_t announced, std::int64_t moved);

 private:
  static constexpr int most_missed = 2;
  static constexpr int restoring = 2;
  int missed_ = 0;
  int held_ = 0;  // accurate ones in a row
};

// The seconds alone that a phase takes in all, and those that are left of it.
struct Work {
  double alone_s = 0;
  double left_s = 0;   // always above 0
  bool known = false;  // false: a guess, because nothing was announced or measured
};
Work work_of(const Application& application, const Target& target);

// Returns the seconds alone after which the application can stop, as it has announced: to the end of the present round
// or, if it announced no rounds, of the present file; 0 between two operations. Returns nothing if it announced
// neither, if its announcements are not believed, or if it was measured to take longer than that to stop.
std::optional<double> announced_stop_s(const Application& application, const Target& target);

// Returns how others slow the application down: as measured with it, otherwise as measured with others on the target.
// If neither is known, `assumed` is its slowdown factor beside one that demands all of the target.
Slowness slowness_of(const Application& application, const Target& target, double assumed);

// Returns the application's demand: its rate alone, relative to the greatest rate that one application alone showed
// lately on the target. Returns 1 if that is unknown.
double demanded_by(const Application& application, const Target& target);

// Takes what the application has prepared for the phase under way.
void announce(Application& application, const event::InformIo& inform);
// Records a request, which begins the phase or continues it.
void demand(Application& application, const event::StartIo& start, Time now);
// Advances the progress of all holders to `now`. Must be called before any change among them. `assumed` is the
// slowdown factor of a target that has shown none.
void count_progress(Target& target, Time now, double assumed);
// Starts counting the progress of a holder that has got its first grant.
void begin_progress(Holder& holder);
// Takes in that the holder uses other parts of the target from now on.
void change_parts(Holder& holder);
// Stops counting the progress of a holder whose last grant has ended.
void end_progress(Holder& holder);
// Takes a report of progress: all processes moved `bytes` since the request; 0: unknown. In a step of the program
// these bytes may come from other operations, which may have reported them already.
void told_progress(Application& application, const Request& request, std::int64_t bytes);
// Records the bytes of an operation that has ended.
void moved(Application& application, const Target& target, std::int64_t bytes);
// Takes a report of I/O after which the phase continues, because a request is still open: a step that pauses for longer
// than the gap between phases, or another process. The arguments are those of `learn`, which takes the sum at the end.
void learn_part(Application& application, Duration io, std::int64_t bytes, std::int64_t announced_left);
// Learns from a phase that is over. `io` is its I/O time, `bytes` those of all processes; 0: unknown. An announcement
// is compared with `bytes` in any case, less the bytes that are still to come in a later phase (`announced_left`).
// Nothing else is learned if no request of the phase was granted.
void learn(Application& application, TargetRecord* record, Duration io, std::int64_t bytes,
           std::int64_t announced_left = 0);

// Learns how long the application took to stop, or to end, after PAUSE_IO.
void learn_stop(Application& application, Duration took);

}  // namespace hocket::model
