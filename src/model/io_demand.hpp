// How much of its I/O phase an application still has to do, and how a target bears several at once: what CALCioM takes
// from Prepare() and from progress (sections III-B, III-C), and learns instead of assuming it.
//
// Pure, not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
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

// The I/O phase of an application, from its first request to its end.
struct IoDemand {
  Time since{};                // the first request; 0: there is no phase
  std::int64_t bytes = 0;      // of the whole phase, all processes, as it was prepared; 0: not known
  std::int64_t announced = 0;  // the same, as it was said first
  std::int64_t largest = 0;    // bytes of its largest request
  std::int64_t moved = 0;      // by operations that have ended
  double served_s = 0;         // progress, in seconds of the phase alone; that of grants under way is with their target
  double shared_s = 0;         // with a grant while others had one too, once that has ended
  double others_s = 0;         // their number, summed over those seconds
  double excess_s = 0;         // what was demanded then beyond what the target can bear, summed over them
  std::int64_t interruptions = 0;
  bool over = false;     // as was said with its last operation; what it took may still be told
  bool granted = false;  // at least once
  // What was told last about it.
  struct Told {
    std::string_view action;  // "": nothing; else of a text that lasts, as those of policy::Choice do
    AppId because_of;
    bool operator==(const Told&) const = default;
  } told{};
};

// What undisturbed phases were like, and disturbed ones beside them. 0: not known.
struct IoRecord {
  double bytes_per_s = 0;   // of all processes, alone
  double phase_s = 0;       // of a phase alone
  double interference = 0;  // how many times slower it was beside one that demands all of the target
  double stop_s = 0;        // from when it was told to pause until it had
  bool stops = false;       // in the middle of an access, too, as it has shown
  // How much longer it took for each of the others than their rates explain: a mean, below 0 where they explain more.
  std::optional<double> disturbance;
  const IoRecord* measured_on = nullptr;  // an application: the target of its last phase alone; not looked into
};

// Of a target; outlives its use.
struct TargetRecord : IoRecord {
  double most_bytes_per_s = 0;  // of one application alone, lately
  // How many times slower an access of the first load was beside one of the second.
  struct Beside {
    Contention contention;
    std::int64_t alone = 0;  // accesses that were alone since it was measured
  };
  std::array<std::array<Beside, loads>, loads> beside{};
  std::array<Rate, loads> rate{};  // of accesses alone
  RateFit write_rate{};            // of large writes, alone or not
};

// How far an application's announcements of its phases' sizes are believed: from the first one on, until two have
// missed. Two that hold in a row bring the belief back.
class Announcements {
 public:
  bool believed() const { return missed_ < most_missed; }
  // `announced` and `moved`: bytes of all processes.
  void compare(std::int64_t announced, std::int64_t moved);

 private:
  static constexpr int most_missed = 2;
  static constexpr int restoring = 2;
  int missed_ = 0;
  int held_ = 0;  // in a row
};

// A phase alone, and what is left of it.
struct Work {
  double alone_s = 0;
  double left_s = 0;  // above 0
};
Work work_of(const Application& application, const Target& target);

// How others slow the application down: measured with it, else with others on the target; else `assumed` beside one
// that demands all of it.
Slowness slowness_of(const Application& application, const Target& target, double assumed);

// The part of what the target can bear that the application takes alone: by its rate beside the greatest one that was
// seen of an application alone; 1 where that is not known.
double demanded_by(const Application& application, const Target& target);

// A request begins or continues the phase.
void demand(Application& application, const event::StartIo& start, Time now);
// The progress of those who have the target, up to now: to be called before any change among them.
void count_progress(Target& target, Time now, double assumed);
// It has its first grant, and gets on from now.
void begin_progress(Holder& holder);
// Its last one has ended.
void end_progress(Holder& holder);
// `bytes` were moved by all processes since the request, by it or, where it is a step of the program, by others
// meanwhile, which may have told of theirs; 0: not known.
void told_progress(Application& application, const Request& request, std::int64_t bytes);
// An operation has moved them.
void moved(Application& application, const Target& target, std::int64_t bytes);
// The phase is over: what it took is learnt. `bytes` of all processes; 0: not known. Nothing is where it was not seen
// whole.
void learn(Application& application, TargetRecord* record, Duration io, std::int64_t bytes);

// It has stopped, or ended, so long after it was told to pause.
void learn_stop(Application& application, Duration took);

}  // namespace hocket::model
