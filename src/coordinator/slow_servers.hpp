// Which I/O server is slower than its peers: the load detector that elastic collective I/O rests on and that CLARISSE
// (section IV-A) leaves open.
//
// Each SERVER_LOAD is held against the peers: the other servers in the map. Compared is the time that one operation
// takes at the server itself, for the time in its queue is the clients' doing. A report is *slow* where that time is
//
//   - more than margin · n/(n−1) times the peers', with n servers in the map. A collective operation lasts as long as
//     its slowest server: with one that takes r times as long as the others it takes r; without that one, the others
//     have n/(n−1) times the work each. So r > n/(n−1) is where removal begins to pay; `margin` keeps noise out.
//   - and at least 100 µs longer than the peers': less is not worth a new epoch;
//   - and longer than in every single report of the peers that it is held against: outside of the noise of the moment.
//     On a machine with four times as many threads at work as cores, the time of a write of 1 MiB was seen to vary by a
//     factor of twenty; without this clause the other two found 51 of 2,100 reports of servers that were well, with it
//     two, and the injected delay of 0.5 ms a third as often, as soon as before.
//
// The peers' time is the median over the peers (of the two in the middle the longer: a server is slow only if it is
// slower than most) of each peer's median over those of its last six reports that are not older than 5 s and about
// operations of like size, which differ by a quarter at most, less than the margin. Two peers must have such reports:
// of two servers that differ nobody can say which one is as it should be. Where they have not, the report says nothing.
//
// A server is slow with its third slow report running: one stall of the file system is over by then, and three reports
// come within 150 ms of work. An access that has been under way for more than a second speaks for itself, before it is
// over: so much time and more does one operation take, of whatever size.
//
// Pure; time comes with the reports. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "event/event.hpp"

namespace hocket::coordinator {

class SlowServers {
 public:
  static constexpr std::size_t kept = 6;
  static constexpr Duration recent = std::chrono::seconds{5};
  static constexpr std::size_t least_peers = 2;
  static constexpr Duration least_longer = std::chrono::microseconds{100};
  static constexpr std::int64_t running = 3;
  static constexpr Duration stuck = std::chrono::seconds{1};

  // `margin` is at least 1; 0: no server is ever slow.
  explicit SlowServers(double margin) : margin_(margin) {}

  // A server comes into the map, or leaves it: what it reported is forgotten.
  void enter(MemberId server) { reports_[server] = {}; }
  void leave(MemberId server) { reports_.erase(server); }

  struct Finding {
    Duration service;  // of one operation
    Duration peers;    // of one of the peers'
  };
  // A report of a server in the map. What it was compared by, where it makes the server slow.
  std::optional<Finding> report(MemberId server, const event::ServerLoad& load, Time now);

 private:
  struct Report {
    Time at;
    double size;       // bytes of an operation; -1: none is over
    Duration service;  // of an operation
    bool stuck;
  };
  struct Reports {
    std::deque<Report> last;
    std::int64_t slow = 0;  // running
  };

  struct Peers {
    Duration middle;   // median of medians
    Duration longest;  // of all
  };

  static std::vector<Duration> of_like_size(const Reports& peer, const Report& report);
  std::optional<Peers> of_peers(MemberId server, const Report& report) const;

  double margin_;
  std::map<MemberId, Reports> reports_;
};

}  // namespace hocket::coordinator
