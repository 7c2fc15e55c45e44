// Requests of collective operations that are held back, to be merged with their neighbours. Pure; the time comes in.
//
// Held requests whose spans overlap are one cluster: interleaved parts of the same place in the file. A cluster is
// released when it has no holes any more and is long enough that a longer one would be no cheaper. All that an
// operation holds is released when
// - all participants have ended it,
// - each participant has ended it or waits with something held (how many they are, an end tells, or that of the file's
//   operation before),
// - it is of more bytes than one operation may hold, nothing more has come for a while, or somebody needs it out of the
//   way.
// So holding is a chance to merge, and never what anybody waits for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/time.hpp"

namespace hocket::server {

class Holding {
 public:
  struct Settings {
    Duration idle = std::chrono::milliseconds{3};
    std::int64_t most_bytes = 16 << 20;     // of an operation
    std::int64_t enough_bytes = 512 << 10;  // of a cluster without holes
  };
  struct Key {
    std::uint64_t file = 0;
    std::uint64_t operation = 0;
    bool operator<(const Key& other) const {
      return file != other.file ? file < other.file : operation < other.operation;
    }
  };
  using Session = std::uint64_t;
  struct Piece {
    Session session = 0;
    std::uint64_t ticket = 0;
    std::int64_t first = 0;  // in the file
    std::int64_t end = 0;
    std::int64_t bytes = 0;  // of data
  };
  using Tickets = std::vector<std::uint64_t>;  // to be carried out now, in the order in which they came

  explicit Holding(Settings settings) : settings_(settings) {}

  Tickets hold(Key key, const Piece& piece, Time now);
  // The session sends nothing more for the operation, of so many participants.
  Tickets end(Key key, Session session, int participants, Time now);
  // The session is no more: it has ended whatever it took part in. Its tickets are given like others.
  Tickets gone(Session session);

  // All of a file but those of one operation (0: all), because something of the file has come that must not be carried
  // out before them.
  Tickets release_file(std::uint64_t file, std::uint64_t but);
  Tickets release_all();
  // When all that has come for now was told: those for which nobody has to be waited for any more.
  Tickets expire(Time now);
  // When `expire` is to be called at the latest.
  std::optional<Time> next_expiry() const;

  bool empty() const { return held_ == 0; }

 private:
  struct Held {
    std::uint64_t ticket;
    Session session;
  };
  struct Cluster {
    std::int64_t end = 0;
    std::int64_t bytes = 0;
    std::vector<Held> pieces;
  };
  using Clusters = std::map<std::int64_t, Cluster>;  // by their first byte
  struct Operation {
    Clusters clusters;
    std::int64_t bytes = 0;
    std::map<Session, int> members;  // how many pieces of each are held
    std::set<Session> ended;
    int participants = 0;  // 0: nobody has said it
    Time touched;
    bool complete() const { return participants > 0 && static_cast<int>(ended.size()) >= participants; }
  };
  using Operations = std::map<Key, Operation>;

  Operation& touch(Key key, Session session, Time now, Tickets& released);
  static Clusters::iterator insert(Clusters& clusters, const Piece& piece);
  static Clusters::iterator join_full(Clusters& clusters, Clusters::iterator cluster);
  void take(Operation& operation, Clusters::iterator cluster, Tickets& into);
  void take_all(Operation& operation, Tickets& into);
  bool nobody_is_missing(const Key& key, const Operation& operation) const;

  Settings settings_;
  Operations operations_;
  std::map<std::uint64_t, int> usual_;  // by file: participants of its last operation that was ended
  std::size_t held_ = 0;
};

}  // namespace hocket::server
