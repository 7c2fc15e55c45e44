// Holds back requests of collective operations, so that the scheduler can merge them with their neighbours. Pure; the
// caller passes the time.
//
// Held requests whose spans overlap form one cluster: interleaved parts of the same extent of the file. A cluster is
// released when it has no holes and is long enough that a longer one would be no cheaper. All held requests of an
// operation are released in the following cases:
// - All participants have ended it.
// - Each participant has ended it or has something held. Their number comes from an `end` of this operation, or from
//   the file's previous operation.
// - It has more bytes than one operation may hold, nothing more has come for a while, or another request needs it out
//   of the way.
//
// So holding is an opportunity to merge; no request depends on it to make progress.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/time.hpp"

namespace hocket::server {

// The held requests of all files. Not thread-safe. It knows requests only by ticket and extent.
class Holding {
 public:
  // Bounds at which held requests are released.
  struct HoldingSettings {
    Duration idle = std::chrono::milliseconds{3};  // without a new request of the operation
    std::int64_t most_bytes = 16 << 20;            // held by one operation
    std::int64_t enough_bytes = 512 << 10;         // a cluster without holes of this size is released
  };
  // Names a collective operation on a file.
  struct OperationKey {
    std::uint64_t file = 0;
    std::uint64_t operation = 0;
    bool operator<(const OperationKey& other) const {
      return file != other.file ? file < other.file : operation < other.operation;
    }
  };
  using SessionNumber = std::uint64_t;
  // One request: its ticket, its span in the file, and how many bytes of data it has there.
  struct RequestExtent {
    SessionNumber session = 0;
    std::uint64_t ticket = 0;
    std::int64_t first = 0;  // offset in the file
    std::int64_t end = 0;    // offset behind its last byte
    std::int64_t bytes = 0;  // of data; fewer than the span if it has holes
  };
  using Tickets = std::vector<std::uint64_t>;  // released requests, in order of arrival

  explicit Holding(HoldingSettings settings) : settings_(settings) {}

  // Holds a request, and returns the requests that this releases, possibly itself.
  Tickets hold(OperationKey key, const RequestExtent& extent, Time now);
  // Notes that the session sends nothing more for the operation, which has `participants` clients. Returns all its
  // requests if it is complete now.
  Tickets end(OperationKey key, SessionNumber session, int participants, Time now);
  // Treats a disconnected session as having ended all operations that it took part in. Returns the requests released
  // by that; the session's own are among them, like any others.
  Tickets gone(SessionNumber session);

  // Releases all requests of a file except those of operation `but` (0: no exception), because a request has arrived
  // that must not overtake them.
  Tickets release_file(std::uint64_t file, std::uint64_t but);
  // Releases everything that is held.
  Tickets release_all();
  // Call this when all requests received so far have been passed on. Releases operations that are idle or miss no
  // participant, and forgets ended ones.
  Tickets expire(Time now);
  // Returns the time by which `expire` must be called; nothing if no operation is remembered. O(operations).
  std::optional<Time> next_expiry() const;

  bool empty() const { return held_ == 0; }

 private:
  // One held request of a cluster.
  struct HeldRequest {
    std::uint64_t ticket;
    SessionNumber session;
  };
  // Held requests whose spans overlap, from the map's key to `end`.
  struct RequestCluster {
    std::int64_t end = 0;
    std::int64_t bytes = 0;
    std::vector<HeldRequest> requests;
  };
  using Clusters = std::map<std::int64_t, RequestCluster>;  // by their first byte; disjoint
  // One collective operation of which something has come lately.
  struct HeldOperation {
    Clusters clusters;
    std::int64_t bytes = 0;
    std::map<SessionNumber, int> members;  // sessions seen, with their numbers of held requests
    std::set<SessionNumber> ended;
    int participants = 0;  // 0: no `end` has come yet
    Time touched;          // when something of it came last
    bool complete() const { return participants > 0 && static_cast<int>(ended.size()) >= participants; }
  };
  using Operations = std::map<OperationKey, HeldOperation>;

  HeldOperation& touch(OperationKey key, SessionNumber session, Time now, Tickets& released);
  static Clusters::iterator insert(Clusters& clusters, const RequestExtent& extent);
  static Clusters::iterator join_full(Clusters& clusters, Clusters::iterator cluster);
  void take(HeldOperation& operation, Clusters::iterator cluster, Tickets& into);
  void take_all(HeldOperation& operation, Tickets& into);
  bool nobody_is_missing(const OperationKey& key, const HeldOperation& operation) const;

  HoldingSettings settings_;
  Operations operations_;
  std::map<std::uint64_t, int> usual_;  // by file: participants of the operation that was last ended
  std::size_t held_ = 0;                // requests
};

}  // namespace hocket::server
