// This detector finds I/O servers that are slower than their peers. Elastic collective I/O needs such a load detector,
// and CLARISSE (section IV-A) leaves it open.
//
// The detector compares each SERVER_LOAD with those of the peers: the other servers in the map that the same
// applications use. Servers of different applications have different work, so that a comparison would say nothing. It
// compares the time that one operation takes at the server itself, because the clients cause the time in its queue. A
// report is *slow* if that time is
//
//   - more than margin · n/(n−1) times the peers', with n such servers in the map. A collective operation lasts as long
//   as
//     its slowest server: with one that takes r times as long as the others it takes r; without that one, the others
//     have n/(n−1) times the work each. So r > n/(n−1) is where removal begins to pay; `margin` keeps noise out.
//   - and at least 100 µs longer than the peers': less does not justify a new epoch;
//   - and longer than in every single report of the peers that it is compared with, so outside of the present noise.
//     On a machine with four times as many active threads as cores, the time of a write of 1 MiB varied by a factor of
//     twenty. Without this clause the other two found 51 of 2,100 reports of healthy servers slow, with it two. With
//     it, they found the injected delay of 0.5 ms a third as often, but as soon as before.
//
// The peers' time is the median over the peers of each peer's median. Of two middle values the median is the longer
// one, since a server is slow only if it is slower than most. A peer's median covers those of its last six reports that
// are at most 5 s old and about operations of similar size. Similar sizes differ by a quarter at most, which is less
// than the default margin allows. At least two peers must have such reports: of two servers that differ, neither is
// known to be the normal one. Without two such peers, the report counts neither way. Who removes only work that others
// can do as well, and no server, may compare with a single peer, at twice the margin.
//
// A server is slow with its third slow report in a row. One stall of the file system is over by then, and three reports
// come within 150 ms of work. An access that has been under way for more than a second counts before it ends: one
// operation of any size takes at least that long.
//
// Pure; time comes with the reports. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "event/event.hpp"

namespace hocket::model {

// The recent reports of the servers in the map. A report costs O(servers).
class SlowServers {
 public:
  static constexpr std::size_t kept = 6;                                    // reports of each server
  static constexpr Duration recent = std::chrono::seconds{5};               // maximum age of a peer's report
  static constexpr Duration least_longer = std::chrono::microseconds{100};  // minimum difference to the peers
  static constexpr std::int64_t running = 3;                                // slow reports in a row
  static constexpr Duration stuck = std::chrono::seconds{1};  // age of an access that counts before its end

  // `margin` is at least 1; 0 disables the detector. `fewest_peers`: with comparable reports; 1 or 2.
  explicit SlowServers(double margin, std::size_t fewest_peers = 2) : margin_(margin), fewest_peers_(fewest_peers) {}

  // A server enters or leaves the map. Either way, its earlier reports are forgotten.
  void enter(MemberId server) { reports_[server] = {}; }
  void leave(MemberId server) { reports_.erase(server); }
  // Only servers of one group are compared: those that the same applications use. The text is any name of the group; at
  // first it is "". Another one than before: the server's earlier reports, of other work, are forgotten.
  void regroup(MemberId server, const std::string& group);

  // The measurement that makes a server slow.
  struct Finding {
    Duration service;  // time of one operation at the server
    Duration peers;    // time of one operation at the peers
  };
  // Takes in a report of a server in the map. Returns finding().
  std::optional<Finding> report(MemberId server, const event::ServerLoad& load, Time now);
  // Returns the measurement if the server's last report makes it slow.
  std::optional<Finding> finding(MemberId server) const;

 private:
  // One report, reduced to a single operation.
  struct LoadReport {
    Time at;
    double size;       // mean bytes of an operation; -1: not comparable by size
    Duration service;  // mean time of an operation, or the age of a stuck one
    bool stuck;        // an access has been under way for `stuck` or longer
  };
  // The recent reports of one server.
  struct Reports {
    std::deque<LoadReport> last;
    std::int64_t slow = 0;  // slow reports in a row up to now
    std::optional<Finding> found{};
    std::string group{};
  };

  // The peers' times that a report is compared with.
  struct Peers {
    Duration middle;    // median of the peers' medians
    Duration longest;   // longest single time
    std::size_t count;  // peers that are compared with
    std::size_t group;  // servers of the group, the reporting one included
  };

  // Returns a peer's operation times that are comparable with `report`.
  static std::vector<Duration> of_like_size(const Reports& peer, const LoadReport& report);
  // Returns the times of the server's peers; nothing if too few have comparable reports.
  std::optional<Peers> of_peers(MemberId server, const LoadReport& report) const;

  double margin_;
  std::size_t fewest_peers_;
  std::map<MemberId, Reports> reports_;
};

inline constexpr Duration longest_hold_off = std::chrono::minutes{10};

// Returns how long a server stays out that is found slow now. A hold-off doubles if the server was back for less than
// four times its last one. `first` is the shortest; `last` is 0 if there was none; `back` is the end of the last one.
Duration next_hold_off(Duration first, Duration last, Time back, Time now);

}  // namespace hocket::model
