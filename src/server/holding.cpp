#include "server/holding.hpp"

#include <algorithm>

namespace hocket::server {
namespace {

// Bound on the operations that are remembered: a client that begins operations without end must not fill the memory.
constexpr std::size_t most_operations = 4096;

// True if the data cover the whole span. If requests overlap, it may be true too early, which costs no more than a
// merge.
bool is_full(std::int64_t first, std::int64_t end, std::int64_t bytes) { return bytes >= end - first; }

}  // namespace

// Returns the operation, which may be new, and notes the activity. If too many are remembered, all are released and
// forgotten first; `released` then holds their tickets.
Holding::Operation& Holding::touch(Key key, Session session, Time now, Tickets& released) {
  if (operations_.size() >= most_operations && !operations_.contains(key)) {
    released = release_all();
    operations_.clear();
    usual_.clear();
  }
  Operation& operation = operations_[key];
  operation.members.try_emplace(session, 0);
  operation.touched = now;
  return operation;
}

// ---- clusters ------------------------------------------------------------------------------------------------------

// Inserts the piece, joined with all clusters that its span overlaps into one.
Holding::Clusters::iterator Holding::insert(Clusters& clusters, const Piece& piece) {
  std::int64_t first = piece.first;
  Cluster joined{piece.end, piece.bytes, {{piece.ticket, piece.session}}};
  auto other = clusters.lower_bound(first);
  if (other != clusters.begin() && std::prev(other)->second.end > first) --other;
  while (other != clusters.end() && other->first < joined.end) {
    first = std::min(first, other->first);
    joined.end = std::max(joined.end, other->second.end);
    joined.bytes += other->second.bytes;
    joined.pieces.insert(joined.pieces.end(), other->second.pieces.begin(), other->second.pieces.end());
    other = clusters.erase(other);
  }
  return clusters.emplace_hint(other, first, std::move(joined));
}

// Joins a cluster without holes with adjacent clusters without holes. Returns the joined one.
Holding::Clusters::iterator Holding::join_full(Clusters& clusters, Clusters::iterator cluster) {
  const auto full = [](Clusters::iterator one) { return is_full(one->first, one->second.end, one->second.bytes); };
  const auto absorb = [&](Clusters::iterator into, Clusters::iterator next) {
    into->second.end = next->second.end;
    into->second.bytes += next->second.bytes;
    into->second.pieces.insert(into->second.pieces.end(), next->second.pieces.begin(), next->second.pieces.end());
    clusters.erase(next);
  };
  if (!full(cluster)) return cluster;
  if (const auto next = std::next(cluster);
      next != clusters.end() && next->first == cluster->second.end && full(next)) {
    absorb(cluster, next);
  }
  if (cluster == clusters.begin()) return cluster;
  const auto before = std::prev(cluster);
  if (before->second.end != cluster->first || !full(before)) return cluster;
  absorb(before, cluster);
  return before;
}

// Releases one cluster.
void Holding::take(Operation& operation, Clusters::iterator cluster, Tickets& into) {
  for (const Held& piece : cluster->second.pieces) {
    into.push_back(piece.ticket);
    --operation.members[piece.session];
  }
  held_ -= cluster->second.pieces.size();
  operation.bytes -= cluster->second.bytes;
  operation.clusters.erase(cluster);
  std::sort(into.begin(), into.end());
}

void Holding::take_all(Operation& operation, Tickets& into) {
  for (auto& [first, cluster] : operation.clusters) {
    for (const Held& piece : cluster.pieces) into.push_back(piece.ticket);
    held_ -= cluster.pieces.size();
  }
  operation.clusters.clear();
  operation.bytes = 0;
  for (auto& [session, count] : operation.members) count = 0;
  std::sort(into.begin(), into.end());
}

// ---- arrivals and releases -----------------------------------------------------------------------------------------

Holding::Tickets Holding::hold(Key key, const Piece& piece, Time now) {
  Tickets released;
  Operation& operation = touch(key, piece.session, now, released);
  ++operation.members[piece.session];
  ++held_;
  operation.bytes += piece.bytes;
  const auto cluster = join_full(operation.clusters, insert(operation.clusters, piece));
  if (operation.bytes >= settings_.most_bytes || operation.complete()) {
    take_all(operation, released);
  } else if (cluster->second.bytes >= settings_.enough_bytes &&
             is_full(cluster->first, cluster->second.end, cluster->second.bytes)) {
    take(operation, cluster, released);
  }
  return released;
}

Holding::Tickets Holding::end(Key key, Session session, int participants, Time now) {
  Tickets released;
  Operation& operation = touch(key, session, now, released);
  operation.ended.insert(session);
  operation.participants = std::max(operation.participants, participants);
  usual_[key.file] = operation.participants;
  if (!operation.complete()) return released;
  take_all(operation, released);
  operations_.erase(key);
  return released;
}

Holding::Tickets Holding::gone(Session session) {
  Tickets released;
  for (auto one = operations_.begin(); one != operations_.end();) {
    Operation& operation = one->second;
    if (operation.members.contains(session)) operation.ended.insert(session);
    const bool over = operation.complete();
    if (over) take_all(operation, released);
    one = over ? operations_.erase(one) : std::next(one);
  }
  return released;
}

Holding::Tickets Holding::release_file(std::uint64_t file, std::uint64_t but) {
  Tickets released;
  for (auto one = operations_.lower_bound({file, 0}); one != operations_.end() && one->first.file == file; ++one) {
    if (but == 0 || one->first.operation != but) take_all(one->second, released);
  }
  return released;
}

Holding::Tickets Holding::release_all() {
  Tickets released;
  for (auto& [key, operation] : operations_) take_all(operation, released);
  return released;
}

// True if each participant has ended the operation or has something held. In both cases nothing more may come before
// an answer: a client may wait for the one that is held.
bool Holding::nobody_is_missing(const Key& key, const Operation& operation) const {
  const auto usual = usual_.find(key.file);
  const int participants =
      operation.participants > 0 ? operation.participants : (usual == usual_.end() ? 0 : usual->second);
  if (participants == 0 || operation.clusters.empty()) return false;
  const auto waits = std::count_if(operation.members.begin(), operation.members.end(), [&](const auto& member) {
    return member.second > 0 || operation.ended.contains(member.first);
  });
  return waits >= participants;
}

Holding::Tickets Holding::expire(Time now) {
  Tickets released;
  for (auto one = operations_.begin(); one != operations_.end();) {
    Operation& operation = one->second;
    const bool idle = operation.touched + settings_.idle <= now;
    // An operation without held requests is remembered for one more idle time, so that late participants find who has
    // ended.
    const bool forgotten = idle && operation.clusters.empty();
    if (idle || nobody_is_missing(one->first, operation)) take_all(operation, released);
    if (idle) operation.touched = now;
    one = forgotten ? operations_.erase(one) : std::next(one);
  }
  return released;
}

std::optional<Time> Holding::next_expiry() const {
  std::optional<Time> first;
  for (const auto& [key, operation] : operations_) {
    const Time due = operation.touched + settings_.idle;
    if (!first || due < *first) first = due;
  }
  return first;
}

}  // namespace hocket::server
