// Declares the reasons of decisions: one struct for each, with the numbers, names and enumerated values that a policy
// or the coordinator decided by. src/core/explain makes the sentences, and a replay compares these values.
//
// A DECISION has two: why it was made (`reason`), and what prevents it (`obstacle`). Wire and trace carry each as a
// map: "kind" is the struct's name, and the other keys are its fields (event/reason_fields.hpp). To add a reason,
// declare it here, list its fields there, and add its phrase to explain/phrases.cpp, which does not compile without.
// Pure.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hocket::event {

// The value of one property, as filters and tools see an event. Times and durations are int64 nanoseconds under a key
// that ends in `_ns`.
using Value = std::variant<std::int64_t, double, bool, std::string>;
using Properties = std::vector<std::pair<std::string, Value>>;

// Stands for a number that is not known. Wire and trace leave it out, as they do numbers that are not finite, empty
// texts, and `false`.
inline constexpr double not_known = std::numeric_limits<double>::quiet_NaN();

// Stands for the absence of a reason. Traces of version 1 have a sentence in `text` instead, and policies in Python
// give their own words.
struct NoReason {
  static constexpr std::string_view name{};
  bool operator==(const NoReason&) const = default;
};

// ---- access to a target ------------------------------------------------------------------------------------------

// An access policy chose an action for a request.
struct AccessChoice {
  static constexpr std::string_view name = "access";
  std::string target;
  std::string metric{};  // by which the actions were compared; "": nothing was compared
  // Value of the metric under each action. The names are those of policy::Cost.
  double wait = not_known;
  double delay = not_known;
  double interfere = not_known;
  double interrupt = not_known;
  std::string parts{};  // of the target, for which the request asks; "": the whole target
  bool operator==(const AccessChoice&) const = default;
};

// An application has left. Compares its I/O with its I/O without coordination.
struct SlowdownEstimate {
  static constexpr std::string_view name = "estimate";
  double late_s = 0;          // estimated time beyond that without coordination; negative: it gained
  double run_s = 0;           // time that it has run
  double error = 0;           // mean relative error of the estimate
  std::int64_t accesses = 0;  // number of accesses that showed the error
  bool operator==(const SlowdownEstimate&) const = default;
};

// The application accessed other amounts than it had announced for an I/O phase, or as much as announced again.
struct AnnouncedIo {
  static constexpr std::string_view name = "announced";
  std::int64_t announced = 0;  // bytes of all processes
  std::int64_t accessed = 0;   // bytes of all processes
  std::int64_t phases = 0;     // more such I/O phases until that changes what is believed; 0: none, it has changed
  bool operator==(const AnnouncedIo&) const = default;
};

// The application called hocket/io.h in the wrong order, or did more than it announced.
struct InformationIgnored {
  static constexpr std::string_view name = "information_ignored";
  std::string error;  // what is wrong, and what follows; perhaps shortened
  bool operator==(const InformationIgnored&) const = default;
};

// The parts of a target that a request names are not used: it asks for the whole target.
struct PartsIgnored {
  static constexpr std::string_view name = "parts_ignored";
  std::string target;
  std::string file;   // of the request; "": none
  std::string parts;  // as they were given, perhaps shortened
  std::string error;  // what is wrong with them
  bool operator==(const PartsIgnored&) const = default;
};

// A request names another target than the file system of its file, for which the operator set a policy: it asks for
// the latter.
struct TargetHeld {
  static constexpr std::string_view name = "target_held";
  std::string named;   // by the application, perhaps shortened
  std::string target;  // for which it asks
  std::string file;    // of the request; "": none
  bool operator==(const TargetHeld&) const = default;
};

// A rank aggregates no more for a file, because its accesses took longer than those of its peers.
struct AggregatorSlow {
  static constexpr std::string_view name = "aggregator_slow";
  std::int64_t rank = 0;
  std::string file;
  double service_s = 0;  // mean time of one of its accesses
  double peers_s = 0;    // of the others, their median
  double hold_off_s = 0;
  bool operator==(const AggregatorSlow&) const = default;
};

// ---- interference ------------------------------------------------------------------------------------------------

// Two I/O phases are predicted to meet. Seconds count from the decision. The overlap is that of DECISION.
struct PhaseConflict {
  static constexpr std::string_view name = "conflict";
  double own_start_s = 0;
  double other_start_s = 0;
  double uncertainty_s = 0;  // of the own start, included in the overlap
  bool operator==(const PhaseConflict&) const = default;
};

// Phase shifting: more processes for some iterations bring the phase forward.
struct PhaseShift {
  static constexpr std::string_view name = "shift";
  PhaseConflict conflict;
  std::int64_t iterations = 0;  // with the larger size
  double time_s = 0;            // of these iterations, as predicted
  double earlier_s = 0;         // by which the phase begins earlier
  double cost_s = 0;            // for which the resizes stop the application
  double saved_s = 0;           // waiting of both applications
  bool operator==(const PhaseShift&) const = default;
};

// Period coupling: a size for good makes the I/O period a multiple of the other's. It may take back what it gave.
struct PeriodCoupling {
  static constexpr std::string_view name = "coupling";
  PhaseConflict conflict;
  double period_s = 0;          // before
  double coupled_period_s = 0;  // after
  double other_period_s = 0;
  std::int64_t multiple = 1;
  bool operator==(const PeriodCoupling&) const = default;
};

// No period fits the application's I/O phases, so conflicts are not predicted.
struct IrregularPhases {
  static constexpr std::string_view name = "irregular";
  double period_s = 0;  // mean
  double spread_s = 0;  // standard deviation
  bool operator==(const IrregularPhases&) const = default;
};

// ---- sharing -----------------------------------------------------------------------------------------------------
// In each, `bounded` is true if more cores would make an application slower than most_slowdown allows.

// Policy `fair` gives each application an equal part.
struct EqualPart {
  static constexpr std::string_view name = "equal-part";
  std::int64_t cores = 0;         // that are shared
  std::int64_t applications = 0;  // that share them
  bool bounded = false;
  bool operator==(const EqualPart&) const = default;
};

// Policy `speedup` compares what one more process adds to the speedup, at the present size and at the new one.
struct SpeedupGain {
  static constexpr std::string_view name = "speedup";
  double gain_now = 0;
  double gain_then = 0;
  bool bounded = false;
  bool operator==(const SpeedupGain&) const = default;
};

// Policy `io-aware` compares the same, and the I/O ratio.
struct IoBalance {
  static constexpr std::string_view name = "io-balance";
  double gain_now = 0;
  double gain_then = 0;
  double io_ratio_now = 0;
  double io_ratio_then = 0;
  bool bounded = false;
  bool operator==(const IoBalance&) const = default;
};

// Policy `predictive` predicts what all changes together bring.
struct ObjectiveGain {
  static constexpr std::string_view name = "objective";
  double gain = 0;          // relative
  std::string objective;    // "flops", "iterations"
  std::string flop_source;  // of the application, as in APPLICATION
  bool bounded = false;
  bool operator==(const ObjectiveGain&) const = default;
};

// ---- the coordinator's own decisions about sizes -----------------------------------------------------------------

// The application is measured at a larger size for some I/O periods.
struct ProbeStep {
  static constexpr std::string_view name = "probe";
  std::int64_t original = 0;  // processes that it returns to
  bool operator==(const ProbeStep&) const = default;
};

// Cores are taken back for applications that started without free ones.
struct CoresReclaimed {
  static constexpr std::string_view name = "reclaim";
  std::int64_t cores = 0;    // that the application gives back
  std::int64_t missing = 0;  // used beyond those that there are
  bool operator==(const CoresReclaimed&) const = default;
};

// An application waited for cores before it started.
struct CoresAwaited {
  static constexpr std::string_view name = "cores-awaited";
  std::int64_t cores = 0;    // that others returned meanwhile
  std::int64_t missing = 0;  // that it still lacks
  double waited_s = 0;
  bool operator==(const CoresAwaited&) const = default;
};

// A servers policy changed which I/O servers are used.
struct ServersInUse {
  static constexpr std::string_view name = "servers-in-use";
  std::string servers;     // in use after it, "s1, s2"; a long list is cut off
  std::int64_t epoch = 0;  // of the server map that has them
  bool operator==(const ServersInUse&) const = default;
};

// An arbitration policy gave an application a number of I/O servers (allocation/allocation.hpp). Bandwidths are
// expected ones, in bytes/s.
struct ServersGiven {
  static constexpr std::string_view name = "servers-given";
  std::int64_t given = 0;  // 0: it accesses its files directly, or `none_up`
  std::string servers{};   // their names, "s1, s2"; a long list is cut off
  bool shared = false;     // it shares them with others
  std::int64_t nodes = 0;
  std::int64_t processes = 0;
  double bandwidth = not_known;  // of the application; not known if nobody has measured it
  double alone = not_known;      // the largest that it could have, of those numbers of servers that there are
  double sum = 0;                // of all applications that were measured, on its file system
  std::int64_t applications = 0;
  std::int64_t given_out = 0;   // servers, to all applications; more than there are if they share
  std::int64_t pool = 0;        // servers that there are to give out
  std::int64_t next = -1;       // the number with which the next best allocation begins; -1: not known
  double next_sum = not_known;  // bandwidth of all applications then
  double least = not_known;     // part of its bandwidth under static that each application was to keep
  bool fell_back = false;       // nothing satisfied the rules, so `static` decided
  std::int64_t epoch = 0;       // of the server map that has them
  std::string file_system{};    // to whose servers and applications the numbers are limited; "": there is no other
  bool none_up = false;         // no server of these is up, so that its accesses are as if none ran
  // The system whose ratio of nodes to servers is behind a number that `static` has decided; else not known.
  double system_nodes = not_known;
  double system_servers = not_known;
  bool nodes_assumed = false;  // nobody has said how many nodes it has: those of the present applications are meant
  bool operator==(const ServersGiven&) const = default;
};

// A servers policy tuned the collective I/O of an application (event/tuning.hpp).
struct IoTuned {
  static constexpr std::string_view name = "io-tuned";
  std::int64_t aggregators = 0;   // 0: not set
  std::int64_t buffer_bytes = 0;  // 0: not set
  std::string method{};           // "": not set
  std::int64_t epoch = 0;         // of the server map that brings it
  bool operator==(const IoTuned&) const = default;
};

// An I/O server orders accesses by another scheduler.
struct SchedulerChanged {
  static constexpr std::string_view name = "scheduler-changed";
  std::string scheduler;
  std::string previous;
  std::int64_t waiting = 0;  // accesses that waited, and have moved to it
  std::string by{};          // who chose it (event/chooser.hpp)
  bool operator==(const SchedulerChanged&) const = default;
};

// An application has another weight beside others in I/O servers (APPLICATION_WEIGHT).
struct ApplicationWeighed {
  static constexpr std::string_view name = "application-weighed";
  std::int64_t weight = 1;
  std::int64_t previous = 1;
  std::string by{};  // who chose it (event/chooser.hpp)
  bool operator==(const ApplicationWeighed&) const = default;
};

// The policy that changed the size is not in force any more.
struct PolicyEnded {
  static constexpr std::string_view name = "policy-ended";
  bool operator==(const PolicyEnded&) const = default;
};

// An earlier decision is given up, for the reason that is the obstacle.
struct GivenUp {
  static constexpr std::string_view name = "given-up";
  std::int64_t decision = 0;  // its number
  bool operator==(const GivenUp&) const = default;
};

// ---- obstacles ---------------------------------------------------------------------------------------------------

// A circumstance has no numbers. `what` is one of the names below.
struct Circumstance {
  static constexpr std::string_view name = "circumstance";
  std::string what;
  bool operator==(const Circumstance&) const = default;
};

namespace circumstance {
// These are about the application as it is.
inline constexpr std::string_view not_malleable = "not-malleable";
inline constexpr std::string_view set_by_hand = "set-by-hand";
inline constexpr std::string_view resized_by_hand = "resized-by-hand";
inline constexpr std::string_view being_resized = "being-resized";
inline constexpr std::string_view resize_refused = "resize-refused";
inline constexpr std::string_view same_size = "same-size";
inline constexpr std::string_view nobody_commands = "nobody-commands";
inline constexpr std::string_view no_control_points = "no-control-points";
inline constexpr std::string_view unknown_times = "unknown-times";
inline constexpr std::string_view cost_grows = "cost-grows";
inline constexpr std::string_view later_leader = "later-leader";
// These end a decision.
inline constexpr std::string_view process_lost = "process-lost";
inline constexpr std::string_view other_size = "other-size";
inline constexpr std::string_view not_done = "not-done";
inline constexpr std::string_view own_size = "own-size";
inline constexpr std::string_view phase_early = "phase-early";
inline constexpr std::string_view phase_missing = "phase-missing";
inline constexpr std::string_view no_answer = "no-answer";

// These are about I/O servers.
inline constexpr std::string_view last_server = "last-server";
inline constexpr std::string_view drained_by_hand = "drained-by-hand";
inline constexpr std::string_view assigned_by_hand = "assigned-by-hand";
inline constexpr std::string_view map_not_adopted = "map-not-adopted";
inline constexpr std::string_view weighed_lately = "weighed-lately";
inline constexpr std::string_view not_forwarded = "not-forwarded";
inline constexpr std::string_view other_file_system = "other-file-system";
inline constexpr std::string_view scheduler_by_hand = "scheduler-by-hand";
inline constexpr std::string_view weight_by_hand = "weight-by-hand";

inline constexpr std::array all{not_malleable,     set_by_hand,     resized_by_hand,   being_resized, resize_refused,
                                same_size,         nobody_commands, no_control_points, unknown_times, cost_grows,
                                later_leader,      process_lost,    other_size,        not_done,      own_size,
                                phase_early,       phase_missing,   no_answer,         last_server,   drained_by_hand,
                                assigned_by_hand,  map_not_adopted, weighed_lately,    not_forwarded, other_file_system,
                                scheduler_by_hand, weight_by_hand};
}  // namespace circumstance

// No size is known to reach the speedup.
struct SpeedupMissing {
  static constexpr std::string_view name = "speedup-missing";
  double needed = 0;
  double known = 0;  // largest that is known
  bool operator==(const SpeedupMissing&) const = default;
};

// Too few cores are free.
struct CoresMissing {
  static constexpr std::string_view name = "cores-missing";
  std::int64_t needed = 0;
  std::int64_t available = 0;
  bool operator==(const CoresMissing&) const = default;
};

// The application would have to save more time than it has.
struct SavingTooLarge {
  static constexpr std::string_view name = "saving-too-large";
  double needed_s = 0;
  double available_s = 0;
  bool operator==(const SavingTooLarge&) const = default;
};

// The resizes would cost more than they save.
struct NotWorthIt {
  static constexpr std::string_view name = "not-worth-it";
  double cost_s = 0;
  double saved_s = 0;
  std::int64_t periods = 0;  // that can be looked ahead
  bool operator==(const NotWorthIt&) const = default;
};

// The shift would lead to a conflict with a third application.
struct ThirdConflict {
  static constexpr std::string_view name = "third-conflict";
  double shift_s = 0;
  std::string third;
  bool operator==(const ThirdConflict&) const = default;
};

// Neither application of a conflict can be resized. The numbers say how many predictions about each missed lately, and
// for how many more I/O phases it is left alone because of that; 0: it is not.
struct NeitherResizable {
  static constexpr std::string_view name = "neither-resizable";
  std::int64_t own_misses = 0;
  std::int64_t own_phases = 0;
  std::int64_t other_misses = 0;
  std::int64_t other_phases = 0;
  bool operator==(const NeitherResizable&) const = default;
};

// No application can have that many processes.
struct InvalidSize {
  static constexpr std::string_view name = "invalid-size";
  std::int64_t processes = 0;
  std::int64_t most = 0;
  bool operator==(const InvalidSize&) const = default;
};

// The change was to begin at an iteration that is past.
struct IterationPast {
  static constexpr std::string_view name = "iteration-past";
  std::int64_t iteration = 0;
  std::int64_t done = 0;
  bool operator==(const IterationPast&) const = default;
};

// Resizes would stop the application for too large a share of its time.
struct StopsTooLong {
  static constexpr std::string_view name = "stops-too-long";
  double stopped_s = 0;  // the new resizes included
  double run_s = 0;
  double most = 0;  // share of its time
  bool operator==(const StopsTooLong&) const = default;
};

// The planned return comes before the change.
struct ReturnsTooEarly {
  static constexpr std::string_view name = "returns-too-early";
  std::int64_t iteration = 0;
  bool operator==(const ReturnsTooEarly&) const = default;
};

// The application made the change after the iteration at which it was to be back.
struct ResizedTooLate {
  static constexpr std::string_view name = "resized-too-late";
  std::int64_t iteration = 0;
  bool operator==(const ResizedTooLate&) const = default;
};

// All applications together would use more cores than there are.
struct CoresExceeded {
  static constexpr std::string_view name = "cores-exceeded";
  std::int64_t processes = 0;  // that the application would have
  std::int64_t cores = 0;
  std::int64_t used = 0;  // by others
  bool operator==(const CoresExceeded&) const = default;
};

// A servers policy names a server that does not run.
struct ServerGone {
  static constexpr std::string_view name = "server-gone";
  std::string server;
  bool operator==(const ServerGone&) const = default;
};

// An I/O server refused a scheduler that a policy, or the configuration, had chosen.
struct SchedulerRefused {
  static constexpr std::string_view name = "scheduler-refused";
  std::string scheduler;
  std::string why;
  bool operator==(const SchedulerRefused&) const = default;
};

// A servers policy changes its mind too often.
struct ChangedLately {
  static constexpr std::string_view name = "changed-lately";
  double since_s = 0;  // since its last change
  double least_s = 0;  // between two changes
  bool operator==(const ChangedLately&) const = default;
};

// A servers policy wants a number that is out of its bounds, or a name that there is not.
struct InvalidValue {
  static constexpr std::string_view name = "invalid-value";
  std::string what;        // "weight", "aggregators", "buffer_bytes" or "method"
  std::string given;       // the value, perhaps shortened
  std::int64_t least = 0;  // of a number
  std::int64_t most = 0;   // of a number; 0: it is a name
  bool operator==(const InvalidValue&) const = default;
};

// Hints of the program go before what a servers policy set.
struct HintsFirst {
  static constexpr std::string_view name = "hints-first";
  std::string what;  // "aggregators, method"
  bool operator==(const HintsFirst&) const = default;
};

// A tool resizes the application.
struct ResizedByTool {
  static constexpr std::string_view name = "resized-by-tool";
  std::int64_t processes = 0;
  bool operator==(const ResizedByTool&) const = default;
};

using Reason =
    std::variant<NoReason, AccessChoice, SlowdownEstimate, AnnouncedIo, PhaseConflict, PhaseShift, PeriodCoupling,
                 IrregularPhases, EqualPart, SpeedupGain, IoBalance, ObjectiveGain, ProbeStep, CoresReclaimed,
                 CoresAwaited, ServersInUse, IoTuned, SchedulerChanged, PolicyEnded, GivenUp, Circumstance,
                 SpeedupMissing, CoresMissing, SavingTooLarge, NotWorthIt, ThirdConflict, NeitherResizable, InvalidSize,
                 IterationPast, StopsTooLong, ReturnsTooEarly, ResizedTooLate, CoresExceeded, ServerGone, ChangedLately,
                 InvalidValue, HintsFirst, ResizedByTool, PartsIgnored, InformationIgnored, TargetHeld, AggregatorSlow,
                 ServersGiven, SchedulerRefused, ApplicationWeighed>;

inline bool is_none(const Reason& reason) { return std::holds_alternative<NoReason>(reason); }
inline Reason because(std::string_view circumstance) { return Circumstance{std::string{circumstance}}; }

// Converts to the map that wire and trace carry, and back. The map of NoReason is empty; a kind of a later version
// becomes NoReason.
Properties properties_of(const Reason& reason);
Reason reason_of(const Properties& properties);

}  // namespace hocket::event
