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
Holding::HeldOperation& Holding::touch(OperationKey key, SessionNumber session, Time now, Tickets& released) {
  if (operations_.size() >= most_operations && !operations_.contains(key)) {
    released = release_all();
    operations_.clear();
    usual_.clear();
  }
  HeldOperation& operation = operations_[key];
  operation.members.try_emplace(session, 0);
  operation.touched = now;
  return operation;
}

// ---- clusters ------------------------------------------------------------------------------------------------------

// Inserts the request, joined with all clusters that its span overlaps into one.
Holding::Clusters::iterator Holding::insert(Clusters& clusters, const RequestExtent& extent) {
  std::int64_t first = extent.first;
  RequestCluster joined{extent.end, extent.bytes, {{extent.ticket, extent.session}}};
  auto other = clusters.lower_bound(first);
  if (other != clusters.begin() && std::prev(other)->second.end > first) --other;
  while (other != clusters.end() && other->first < joined.end) {
    first = std::min(first, other->first);
    joined.end = std::max(joined.end, other->second.end);
    joined.bytes += other->second.bytes;
    joined.requests.insert(joined.requests.end(), other->second.requests.begin(), other->second.requests.end());
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
    into->second.requests.insert(into->second.requests.end(), next->second.requests.begin(),
                                 next->second.requests.end());
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
void Holding::take(HeldOperation& operation, Clusters::iterator cluster, Tickets& into) {
  for (const HeldRequest& request : cluster->second.requests) {
    into.push_back(request.ticket);
    --operation.members[request.session];
  }
  held_ -= cluster->second.requests.size();
  operation.bytes -= cluster->second.bytes;
  operation.clusters.erase(cluster);
  std::sort(into.begin(), into.end());
}

void Holding::take_all(HeldOperation& operation, Tickets& into) {
  for (auto& [first, cluster] : operation.clusters) {
    for (const HeldRequest& request : cluster.requests) into.push_back(request.ticket);
    held_ -= cluster.requests.size();
  }
  operation.clusters.clear();
  operation.bytes = 0;
  for (auto& [session, count] : operation.members) count = 0;
  std::sort(into.begin(), into.end());
}

// ---- arrivals and releases -----------------------------------------------------------------------------------------

Holding::Tickets Holding::hold(OperationKey key, const RequestExtent& extent, Time now) {
  Tickets released;
  HeldOperation& operation = touch(key, extent.session, now, released);
  ++operation.members[extent.session];
  ++held_;
  operation.bytes += extent.bytes;
  const auto cluster = join_full(operation.clusters, insert(operation.clusters, extent));
  if (operation.bytes >= settings_.most_bytes || operation.complete()) {
    take_all(operation, released);
  } else if (cluster->second.bytes >= settings_.enough_bytes &&
             is_full(cluster->first, cluster->second.end, cluster->second.bytes)) {
    take(operation, cluster, released);
  }
  return released;
}

Holding::Tickets Holding::end(OperationKey key, SessionNumber session, int participants, Time now) {
  Tickets released;
  HeldOperation& operation = touch(key, session, now, released);
  operation.ended.insert(session);
  operation.participants = std::max(operation.participants, participants);
  usual_[key.file] = operation.participants;
  if (!operation.complete()) return released;
  take_all(operation, released);
  operations_.erase(key);
  return released;
}

Holding::Tickets Holding::gone(SessionNumber session) {
  Tickets released;
  for (auto one = operations_.begin(); one != operations_.end();) {
    HeldOperation& operation = one->second;
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
bool Holding::nobody_is_missing(const OperationKey& key, const HeldOperation& operation) const {
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
    HeldOperation& operation = one->second;
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
