#include "session/bursts.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "session/bounded_lock.hpp"
#include "session/heartbeat.hpp"

namespace hocket::runtime {
namespace {

// An older burst sends a new request before its next access, so that waiting applications can come first.
constexpr Duration longest_burst = std::chrono::seconds{1};
// The same limit if accesses of several threads overlap. It is larger because draining them costs time, and perhaps no
// application waits.
constexpr Duration longest_shared_burst = std::chrono::seconds{10};
// Time limit for the accesses of other threads to end before an access begins anyway.
constexpr Duration longest_gathering = std::chrono::seconds{5};

}  // namespace

Bursts::Burst& Bursts::of(const std::string& target, const FileParts& parts, const std::string& file_system) {
  const std::lock_guard lock(mutex_);
  for (Burst& burst : bursts_)
    if (burst.target == target && burst.parts == parts && burst.file_system == file_system) return burst;
  Burst& burst = bursts_.emplace_back();
  burst.target = target;
  burst.parts = parts;
  burst.file_system = file_system;
  return burst;
}

Bursts::BurstAccess Bursts::begin(Burst& burst, bool in_one_call, Describe describe) {
  std::unique_lock lock(mutex_);
  bool waited = may_begin(lock, burst, describe);
  ++burst.running;
  if (burst.request && share(burst).part < 1) {
    waited = true;
    // The access counts as running while it waits here, so the burst does not end. If hocketd revokes or preempts the
    // request meanwhile, the access begins anew.
    if (!keep_pace(lock, burst)) {
      has_ended(burst);
      may_begin(lock, burst, describe);
      ++burst.running;
    }
  }
  if (!in_one_call) ++burst.open;
  return {&burst, waited, static_cast<bool>(burst.request)};
}

std::optional<Bursts::BurstAccess> Bursts::begin_at_once(Burst& burst) {
  const BoundedLock lock(mutex_);
  if (!lock || burst.asking) return std::nullopt;
  if (!burst.request && !session_.is_alone()) return std::nullopt;
  const std::uint64_t changes = session_.changes();
  const bool changed = burst.seen != changes || burst.share_seen != changes;
  if (burst.request && (changed || burst.share.part < 1 || lasts_too_long(burst))) return std::nullopt;
  ++burst.running;
  return BurstAccess{&burst, false, static_cast<bool>(burst.request)};
}

void Bursts::take_back(Burst& burst) { has_ended(burst); }

// A burst without an end would starve other applications. A new request lets hocketd grant theirs first.
bool Bursts::lasts_too_long(const Burst& burst) {
  return burst.last - burst.since >= (burst.running > 0 ? longest_shared_burst : longest_burst);
}

// Makes sure that the burst has a request, if hocketd answers at all. Returns true if it may have blocked.
bool Bursts::may_begin(std::unique_lock<std::mutex>& lock, Burst& burst, Describe describe) {
  bool waited = burst.request && burst.running > 0 && gather(lock, burst);
  for (; burst.asking; beat()) changed_.wait_for(lock, between_beats);
  if (burst.request && burst.seen != session_.changes()) waited |= look(lock, burst);
  if (burst.request && burst.running == 0 && lasts_too_long(burst)) finish(burst, false);
  if (burst.request) return waited;
  event::StartIo start;
  start.target = burst.target;
  start.file_system = burst.file_system;
  burst.parts.describe(start);
  describe(start);
  ask(lock, burst, std::move(start));
  return true;
}

// Waits until the accesses of other threads have ended, if the burst is to pause or has lasted too long. Without it,
// threads that access alternately leave no moment between two accesses. Returns true if it may have blocked.
bool Bursts::gather(std::unique_lock<std::mutex>& lock, Burst& burst) {
  if (burst.open > 0) return false;  // this thread may have to end an access itself: waiting could deadlock
  const bool pauses = burst.seen != session_.changes() && session_.standing(burst.request) == Standing::to_pause;
  if (!pauses && burst.last - burst.since < longest_shared_burst) return false;
  const Time until = node_now() + longest_gathering;
  for (; burst.running > 0 && node_now() < until; beat()) changed_.wait_for(lock, between_beats);
  return true;
}

// Reacts to a change of a request's standing, which may concern this burst: pauses it, or gives up a request that has
// expired. Returns true if it may have blocked.
bool Bursts::look(std::unique_lock<std::mutex>& lock, Burst& burst) {
  const std::uint64_t changes = session_.changes();
  switch (session_.standing(burst.request)) {
    case Standing::granted: burst.seen = changes; return false;
    case Standing::expired:
    case Standing::alone:
      // The caller sends a new request. If hocketd does not answer, it fails immediately until the next I/O phase.
      finish(burst, false);
      return false;
    case Standing::to_pause:
      if (burst.running > 0) return false;  // another thread's access is under way
      break;
    default: break;
  }
  burst.asking = true;
  const RequestId request = burst.request;
  lock.unlock();
  session_.await(request);
  lock.lock();
  burst.asking = false;
  burst.seen = 0;  // the next access checks again: another PAUSE_IO may have come with the grant
  changed_.notify_all();
  return true;
}

// Returns the burst's bandwidth share. It reads the share again only after a change of a request's standing, as the
// share changes with nothing else.
const Session::RequestShare& Bursts::share(Burst& burst) {
  if (const std::uint64_t changes = session_.changes(); burst.share_seen != changes) {
    burst.share = session_.share(burst.request);
    burst.share_seen = changes;
  }
  return burst.share;
}

// Throttles the access to the burst's bandwidth share, without the lock. Returns false if the request is no longer
// granted or is to pause.
bool Bursts::keep_pace(std::unique_lock<std::mutex>& lock, const Burst& burst) {
  const AccessPace pace = burst.pace;
  const RequestId request = burst.request;
  lock.unlock();
  const bool kept = keep(pace, session_, request);
  lock.lock();
  return kept;
}

// Sends START_IO and waits for the grant, without the lock. Accesses of other threads wait for `asking` to end.
void Bursts::ask(std::unique_lock<std::mutex>& lock, Burst& burst, event::StartIo start) {
  burst.asking = true;
  lock.unlock();
  const RequestId request = session_.ask(std::move(start), RequestPurpose::burst);
  lock.lock();
  burst.asking = false;
  burst.request = request;
  burst.share_seen = 0;  // that share belonged to the previous request
  burst.pace.allow(share(burst).part);
  burst.seen = 0;  // the next access checks: PAUSE_IO may have come with the grant
  burst.since = {};
  burst.io = {};
  burst.bytes = 0;
  changed_.notify_all();
}

void Bursts::end(Burst& burst, Time now, Duration io, std::int64_t bytes, bool in_one_call) {
  const std::lock_guard lock(mutex_);
  has_ended(burst);
  if (!in_one_call) --burst.open;
  count(burst, now, io, bytes);
  // The time of a nonblocking or split access does not show the target's speed.
  if (!burst.request || !in_one_call) return;
  const Session::RequestShare& part = share(burst);
  burst.pace.moved(now, io, bytes, part.part, part.alone);
}

void Bursts::end_at_once(Burst& burst, Time now, Duration io, std::int64_t bytes) {
  const BoundedLock lock(mutex_);
  has_ended(burst);
  if (!lock) return;
  count(burst, now, io, bytes);
  if (!burst.request) return;
  std::optional<Session::RequestShare> part = burst.share;
  if (const std::uint64_t changes = session_.changes(); burst.share_seen != changes) {
    part = session_.share_if_free(burst.request);
    if (!part) return burst.pace.begin_anew(now);
    burst.share = *part;
    burst.share_seen = changes;
  }
  burst.pace.moved(now, io, bytes, part->part, part->alone);
}

void Bursts::has_ended(Burst& burst) {
  if (--burst.running == 0) changed_.notify_all();
}

void Bursts::count(Burst& burst, Time now, Duration io, std::int64_t bytes) {
  burst.last = now;
  if (burst.since == Time{}) burst.since = now;
  burst.io += io;
  burst.bytes += bytes;
}

void Bursts::finish(Burst& burst, bool phase_over) {
  const Duration idle = burst.last != Time{} ? node_now() - burst.last : Duration{};
  session_.finish({std::exchange(burst.request, {}), burst.io, burst.bytes, phase_over, idle});
}

void Bursts::finish(bool phase_over) {
  const std::lock_guard lock(mutex_);
  for (Burst& burst : bursts_)
    if (burst.request && !burst.asking && burst.running == 0) finish(burst, phase_over);
}

Time Bursts::due(Time now) {
  Time next = Time::max();
  const std::lock_guard lock(mutex_);
  for (Burst& burst : bursts_) {
    if (!burst.request || burst.asking) continue;
    if (burst.running > 0) {
      next = std::min(next, now + gap_);
    } else if (now >= burst.last + gap_) {
      finish(burst, true);
    } else {
      session_.answer_pause(burst.request);
      next = std::min(next, burst.last + gap_);
    }
  }
  return next;
}

}  // namespace hocket::runtime
