// Decides which aggregating ranks lose their file domains because they are slow, by the rule for slow I/O servers
// (model/slow_servers.hpp). Of two aggregating ranks, as one node has by default, one is slow if its accesses take five
// times as long as the other's. Pure; all ranks of a file take in the same numbers, and so decide alike.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "model/slow_servers.hpp"

namespace hocket::collective_plan {

// Work of one rank as an aggregator in one access: its own accesses of the file.
struct AggregatorWork {
  std::int64_t operations = 0;  // 0: it had none
  std::int64_t bytes = 0;
  Duration service{};  // time that they took
};

class SlowAggregators {
 public:
  static constexpr double margin = 1.25;  // as the default for servers (coordinator/command.hpp)
  static constexpr Duration first_hold_off = std::chrono::seconds{10};

  // A rank that was found slow, and why.
  struct Slow {
    int rank = 0;
    Duration service{};   // of one of its accesses
    Duration peers{};     // of one of the others', their median
    Duration hold_off{};  // it is out for so long
  };
  // Takes in an access: `work` of each rank, at the time `now` of rank 0. A rank that is found slow is out for a
  // hold-off, which doubles if it is slow again. Returns those that are found slow now.
  std::vector<Slow> take(std::span<const AggregatorWork> work, Time now);
  // Returns those of the `chosen` ranks that are not out, as of the last take(); at least one. They are the peers of
  // each other from now on.
  std::vector<int> keep(std::span<const int> chosen);

 private:
  struct HeldOff {
    Duration length{};
    Time back{};
  };
  bool is_out(int rank) const;
  static MemberId id_of(int rank) { return MemberId{static_cast<std::uint64_t>(rank) + 1}; }

  model::SlowServers detector_{margin, 1};
  std::vector<int> peers_;           // ranks that the detector compares
  std::map<int, HeldOff> held_off_;  // ranks that were ever out
  Time now_{};                       // of the last take()
};

}  // namespace hocket::collective_plan
