// An AccessHistory holds the times, rates and gaps of one application's accesses, separately for each kind of access.
// A kind is a routine on a target, together with the order of magnitude of the request size. The policies and the
// estimates of `model/occupancy.hpp` read it.
//
// Kinds are kept apart because a program writes, syncs and reads back. These differ by orders of magnitude, and so do
// a header and the rows after it. A mean over all of them describes none. For each kind the history learns the time
// and the rate alone, the slowdown beside others, and the length of I/O phases that begin with it. It also learns how
// soon another access follows (Iyer and Druschel, "Anticipatory scheduling", SOSP 2001, section 3).
//
// The unit of measurement is an occupancy: from the application's first grant on a target until it has none left
// there. "Seconds alone" are the seconds that an access takes, or would take, with the target to itself.
//
// Pure, not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "model/running_mean.hpp"

namespace hocket::model {

struct TargetRecord;

// The load that an access puts on the others on its target. Reads and writes are kept apart because, for instance, a
// read that is served from a cache disturbs no writer.
enum class AccessLoad : std::uint8_t { read, write };
constexpr std::size_t loads = 2;
// Returns the load of a routine of MPI-IO or libc, given by its name: names that contain "read" are reads.
AccessLoad load_of(std::string_view routine);
using ByLoad = std::array<double, loads>;

// Estimates how much others slow an access down, from sums over the accesses that were beside others. A sum is used
// because one access says little if it was beside others only briefly, or if its time alone varies.
class Contention {
 public:
  // Adds an access that was beside others for `shared_s` seconds. `others_s` is the number of others, integrated over
  // that time, and `longer_s` the seconds by which the access took longer than alone.
  void add(double shared_s, double others_s, double longer_s);
  void add(const Contention& one) { add(one.shared_s_, one.others_s_, one.longer_s_); }
  // Returns the slowdown factor beside one other (1: none), at most 64; 0 if unknown.
  double interference() const;

 private:
  double shared_s_ = 0;
  double others_s_ = 0;
  double longer_s_ = 0;
};

// A rate in bytes per second, from sums in which large accesses count most and old ones fade.
class Rate {
 public:
  void add(double bytes, double seconds);
  double bytes_per_s() const { return seconds_ > 0 ? bytes_ / seconds_ : 0; }

 private:
  double bytes_ = 0;
  double seconds_ = 0;
};

// Separates the rate of one access alone from its rate beside another, where both together move as much as the target
// bears. It is a least-squares fit of bytes = alone x seconds alone + beside x seconds beside another. Accesses that
// overlap by different parts are enough for it, even if none was ever alone from start to end.
class RateFit {
 public:
  void add(double alone_s, double beside_s, double bytes);
  // Returns the rate alone in bytes per second; nothing if the accesses overlapped too much alike, or fit badly.
  std::optional<double> bytes_per_s() const;

 private:
  double aa_ = 0, ab_ = 0, bb_ = 0;  // sums of products of the seconds per byte
  double a_ = 0, b_ = 0;
  double count_ = 0;
};

// One stay of an application on a target, from its first grant to its last release. Plain data, which the coordinator
// fills in. It lives in the target's Holder.
struct Occupancy {
  std::size_t kind = 0;    // of the first request
  std::int64_t asked = 0;  // size of that request; 0: unknown
  std::int64_t bytes = 0;  // bytes moved by all processes
  Time since{};
  Duration idle{};           // time without an access at the end
  bool whole = true;         // every request in it finished, and none was suspended
  double served_s = 0;       // progress, in seconds alone
  double resumed_s = 0;      // progress of a resumed request before its suspension
  double shared_s = 0;       // time beside others
  double idle_beside_s = 0;  // the part of it during which the others had no access under way
  ByLoad others_s{};         // number of others by load, integrated over the occupancy
  double met_s = 0;          // number of others that use the same parts of the target, integrated over shared_s
};

// Learns from the occupancies of one application and predicts its next access, phase and gap. Memory is bounded: at
// most 32 kinds are kept.
class AccessHistory {
 public:
  // The expected duration alone of an access that is about to begin, in seconds, and how far it may be off.
  struct ExpectedAccess {
    double seconds = 0;
    double spread_s = 0;
    bool is_alike() const { return spread_s <= most_spread * seconds; }  // earlier accesses of the kind were similar
   private:
    static constexpr double most_spread = 0.6;
  };

  // Returns the number of a kind of access, and creates the kind if it is new. When all 32 are in use, further kinds
  // share the last one.
  std::size_t kind_of(const std::string& routine, const TargetRecord* target, std::int64_t bytes);
  // Returns the kind of an access that the application asks for now. If the application has no other request under way
  // (`only_one`), the time from the end of the previous access to `now` is learned as a gap.
  std::size_t asked(const std::string& routine, const TargetRecord* target, std::int64_t bytes, bool only_one,
                    Time now);
  // Knowledge about other applications on the target. It is used until the application has shown its own.
  struct TargetKnowledge {
    double interference = 0;  // slowdown factor of such accesses beside others there; 0: unknown
    double alone_s = 0;       // at the rate of others there; 0: unknown
    bool even = false;        // if neither is known, assume an even share of the target
  };
  // The contention that one access showed beside others of a single load.
  struct ShownContention {
    AccessLoad own;
    AccessLoad others;
    Contention contention;
  };
  struct Ended {
    double alone_s = 0;  // duration alone; 0: unknown
    std::optional<ShownContention> shown{};
  };
  // Learns from an occupancy that is over. Returns what it would have taken alone, and what it showed of contention.
  Ended ended(const Occupancy& occupancy, Time now, const TargetKnowledge& told);
  // Ends the I/O phase: the next access begins a new one.
  void phase_over();

  std::optional<ExpectedAccess> access(std::size_t kind, std::int64_t bytes) const;
  // Returns the seconds alone that are left of the present I/O phase, counting accesses that have not ended as still
  // to do; nothing until a phase that began with the same kind has ended.
  std::optional<double> rest_of_phase_s() const;
  // An expected I/O phase, alone, and the computing after it: means over the phases that began with the same kind.
  // `next` links the phases of a regular program into a cycle.
  struct TypicalPhase {
    const TargetRecord* target = nullptr;
    double size_s = 0;
    double computing_s = 0;
    std::size_t next = 0;  // kind of access that begins the following phase
  };
  // Returns the phase that begins with that kind of access; nothing if such phases vary too much, or too few are
  // known.
  std::optional<TypicalPhase> phase(std::size_t kind) const;
  // Returns the kind that began the present phase or, while the program computes, the last one.
  std::optional<std::size_t> present_phase() const { return first_ ? first_ : before_; }
  bool in_phase() const { return first_.has_value(); }
  // Returns the rate alone, in bytes per second, of the kind that began the present phase; 0 if unknown.
  double bytes_per_s() const;
  // Returns the slowdown factor of the kind beside one other of that load; 0 if unknown.
  double interference(std::size_t kind, AccessLoad other) const;
  AccessLoad load(std::size_t kind) const { return kinds_[kind].load; }

  // Returns the probability that another access follows the last one in the phase; 1 if unknown.
  double follows() const;
  // The time from the end of an access to the next one of the phase, in seconds.
  struct Gap {
    double mean_s = 0;
    double longest_s = 0;  // hardly any access follows later
  };
  std::optional<Gap> gap() const;
  Time last_end() const { return last_end_; }

 private:
  // An occupancy beside others, kept until its time alone is known.
  struct Shared {
    double span_s = 0;
    double part_s = 0;       // time beside others
    ByLoad others_s{};       // number of others, integrated over `part_s`
    std::int64_t bytes = 0;  // 0: unknown
    double for_each_byte(double seconds) const { return bytes > 0 ? seconds / static_cast<double>(bytes) : seconds; }
  };
  // The evidence for what an access takes alone, the weakest first. Better evidence replaces all that weaker evidence
  // gave. An application that leaves room on the target takes longer than its rate suggests, and loses less beside
  // others.
  enum class Ground : std::uint8_t {
    supposed,  // from times or losses of others on the target, or an even share
    fitted,    // from two accesses that were beside others for different parts
    measured
  };
  // Everything that is known of one kind of access. Means follow changes (running_mean.hpp).
  struct AccessKind {
    std::string routine;
    int magnitude = 0;
    const TargetRecord* target = nullptr;
    AccessLoad load = AccessLoad::write;
    RunningMean span;                            // seconds alone
    RunningMean per_byte;                        // seconds alone per byte moved
    RunningMean moved;                           // bytes moved / bytes requested
    RunningMean gap;                             // seconds until the next access of the phase
    RunningMean follows;                         // 1: another access followed in the phase, 0: none
    RunningMean phase;                           // seconds alone of phases that begin with this kind
    RunningMean computing;                       // seconds after such phases until the next one
    std::optional<std::size_t> next;             // kind of access that begins the next phase
    std::array<Contention, loads> contention{};  // beside others of a single load
    Contention mixed{};                          // beside others of both loads
    Shared shared{};                             // the latest one beside others, until one is measured alone
    Ground ground = Ground::supposed;
  };

  static double alone_s(const AccessKind& kind, std::int64_t bytes);
  static void learn_alone(AccessKind& kind, const Occupancy& occupancy, double span_s, Ground ground);
  static std::optional<ShownContention> learn_beside_others(AccessKind& kind, const Shared& shared, double alone_s);
  static void learn_from_two_shared(AccessKind& kind, const Occupancy& occupancy, const Shared& shared);

  std::vector<AccessKind> kinds_;
  // The kind that began the present I/O phase; none between phases.
  std::optional<std::size_t> first_;
  std::optional<std::size_t> last_;    // kind of the access that ended last
  std::optional<std::size_t> before_;  // kind that began the previous phase
  Time last_end_{};
  double done_s_ = 0;        // progress of the phase, in seconds alone
  bool phase_known_ = true;  // every access of it was whole, with a known time alone
};

}  // namespace hocket::model
