// What the accesses of an application take, by kind: a kind is a routine on a target, and the order of magnitude of
// what it asks for.
//
// A program writes, syncs and reads back: these differ by orders of magnitude, and so do a header and the rows after
// it. A mean over all of them describes none. What is learnt of each kind is the time and the rate alone, how much
// longer it takes beside others, how soon another access follows (Iyer and Druschel, "Anticipatory scheduling", SOSP
// 2001, section 3), and how long I/O phases are that begin with it.
//
// The unit is an occupancy: from the first grant of the application on a target until it has none left there.
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

// What an access does to the others on its target: one that is served from a cache disturbs no writer, for instance.
enum class Load : std::uint8_t { read, write };
constexpr std::size_t loads = 2;
// Of a routine of MPI-IO or libc, by its name.
Load load_of(std::string_view routine);
using ByLoad = std::array<double, loads>;

// How much others slow an access down, from sums over those that were beside others: what one of them lost says little
// where it was beside others for a short time only, or where what it takes alone varies.
class Contention {
 public:
  // It was beside others for so long, whose number summed over that is `others_s`, and took so much longer.
  void add(double shared_s, double others_s, double longer_s);
  void add(const Contention& one) { add(one.shared_s_, one.others_s_, one.longer_s_); }
  // How many times slower it is beside one other; 0: not known.
  double interference() const;

 private:
  double shared_s_ = 0;
  double others_s_ = 0;
  double longer_s_ = 0;
};

// Bytes in a second, from sums in which the large accesses count most.
class Rate {
 public:
  void add(double bytes, double seconds);
  double bytes_per_s() const { return seconds_ > 0 ? bytes_ / seconds_ : 0; }

 private:
  double bytes_ = 0;
  double seconds_ = 0;
};

// The bytes in a second of one access alone and of one beside another, where both move as much as the target bears: a
// least-squares fit of bytes = alone x seconds alone + beside x seconds beside another. Two accesses that overlap tell
// it, though neither was ever alone from its start to its end.
class RateFit {
 public:
  void add(double alone_s, double beside_s, double bytes);
  // Bytes in a second alone; nothing while what was added does not tell it, or does not fit.
  std::optional<double> bytes_per_s() const;

 private:
  double aa_ = 0, ab_ = 0, bb_ = 0;  // sums of products of the seconds, for each byte
  double a_ = 0, b_ = 0;
  double count_ = 0;
};

// An application has a target. Plain data; the coordinator fills it in.
struct Occupancy {
  std::size_t kind = 0;    // of its first request
  std::int64_t asked = 0;  // bytes of that request; 0: not known
  std::int64_t bytes = 0;  // moved, of all processes
  Time since{};
  Duration idle{};           // at its end, without an access
  bool whole = true;         // every request in it was finished, and none was ever stopped in the middle
  double served_s = 0;       // progress, in seconds alone
  double resumed_s = 0;      // the same, of what it goes on with: it was stopped in the middle before
  double shared_s = 0;       // beside others
  double idle_beside_s = 0;  // of that, where the others had no access under way
  ByLoad others_s{};         // their number, summed over its time
};

class AccessHistory {
 public:
  // What is expected of an access that is about to begin, alone. `spread_s`: how far it may be off.
  struct Expected {
    double seconds = 0;
    double spread_s = 0;
    bool is_alike() const { return spread_s <= most_spread * seconds; }  // those before it were like each other
   private:
    static constexpr double most_spread = 0.6;
  };

  // The kind of an access, made where there is none; the last one is that of all that are too many. Learns from `now`
  // the time since the access before, where the application has no other one under way.
  std::size_t asked(const std::string& routine, const TargetRecord* target, std::int64_t bytes, bool only_one,
                    Time now);
  // This tells how long an occupancy would have taken alone where the application has shown nothing.
  struct Told {
    double interference = 0;  // how many times slower others were beside such ones on the target; 0: not known
    double alone_s = 0;       // by the rate that others have there; 0: not known
    bool even = false;        // else all are supposed to have shared the target evenly
  };
  // What it was like beside others.
  struct Shown {
    Load own;
    Load others;
    Contention contention;
  };
  struct Ended {
    double alone_s = 0;  // that it takes alone; 0: not known
    std::optional<Shown> shown{};
  };
  // An occupancy is over.
  Ended ended(const Occupancy& occupancy, Time now, const Told& told);
  // The I/O phase is over.
  void phase_over();

  std::optional<Expected> access(std::size_t kind, std::int64_t bytes) const;
  // What is left of the I/O phase under way, without the accesses that have ended. Nothing where no phase that began
  // like it has ended yet.
  std::optional<double> rest_of_phase_s() const;
  // An I/O phase as those that began like it were, alone, and the computing after it. The phases of a program that is
  // regular follow each other in a cycle.
  struct Phase {
    const TargetRecord* target = nullptr;
    double size_s = 0;
    double computing_s = 0;
    std::size_t next = 0;  // the kind of access that the one after it begins with
  };
  // The phase that begins with that kind of access; nothing where the phases are not alike, or too few are known.
  std::optional<Phase> phase(std::size_t kind) const;
  // The phase under way or, while the program computes, the last one: the kind it began with.
  std::optional<std::size_t> present_phase() const { return first_ ? first_ : before_; }
  bool in_phase() const { return first_.has_value(); }
  // Bytes in a second that the application moves alone with what it did first in the phase; 0: not known.
  double bytes_per_s() const;
  // How many times slower it was beside one other; 0: not known.
  double interference(std::size_t kind, Load other) const;
  Load load(std::size_t kind) const { return kinds_[kind].load; }

  // After the last access: how probably another one follows in the phase, and when it has come, if it does.
  double follows() const;
  struct Gap {
    double mean_s = 0;
    double longest_s = 0;  // after it hardly any comes
  };
  std::optional<Gap> gap() const;
  Time last_end() const { return last_end_; }

 private:
  // An occupancy beside others.
  struct Shared {
    double span_s = 0;
    double part_s = 0;       // beside others
    ByLoad others_s{};       // their number, summed over that
    std::int64_t bytes = 0;  // 0: not known
    double for_each_byte(double seconds) const { return bytes > 0 ? seconds / static_cast<double>(bytes) : seconds; }
  };
  // The ground on which it is known what an access takes alone. What a lesser one gave is forgotten for a better: an
  // application that leaves room on the target takes longer than its rate tells, and loses less beside others.
  enum class Ground : std::uint8_t {
    supposed,  // by what others take or lose on the target, or as if it were shared evenly
    fitted,    // to two accesses that were beside others for different parts
    measured
  };
  struct Kind {
    std::string routine;
    int magnitude = 0;
    const TargetRecord* target = nullptr;
    Load load = Load::write;
    RunningMean span;                            // seconds alone
    RunningMean per_byte;                        // seconds alone, of each byte that was moved
    RunningMean moved;                           // bytes moved / bytes asked
    RunningMean gap;                             // seconds until the next access of the phase
    RunningMean follows;                         // 1: another one followed in the phase, 0: none
    RunningMean phase;                           // seconds alone of phases that begin with it
    RunningMean computing;                       // seconds after them until the next phase
    std::optional<std::size_t> next;             // the kind of access that it begins with
    std::array<Contention, loads> contention{};  // beside others of one kind of load
    Contention mixed{};                          // beside others of both
    Shared shared{};                             // the last one that was, while none was measured alone
    Ground ground = Ground::supposed;
  };

  static double alone_s(const Kind& kind, std::int64_t bytes);
  static void learn_alone(Kind& kind, const Occupancy& occupancy, double span_s, Ground ground);
  static std::optional<Shown> learn_beside_others(Kind& kind, const Shared& shared, double alone_s);
  static void learn_from_two_shared(Kind& kind, const Occupancy& occupancy, const Shared& shared);

  std::vector<Kind> kinds_;
  // The I/O phase under way; none: no access of it has been asked for.
  std::optional<std::size_t> first_;
  std::optional<std::size_t> last_;    // the access that ended last
  std::optional<std::size_t> before_;  // what the phase before began with
  Time last_end_{};
  double done_s_ = 0;        // of the phase, in seconds alone
  bool phase_known_ = true;  // every access of it was whole, and known alone
};

}  // namespace hocket::model
