#include "runtime/bursts.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"

namespace hocket::runtime {
namespace {

constexpr Duration longest_burst = std::chrono::seconds{1};
// Of threads whose accesses overlap: to let all of them end costs time, which nobody may need.
constexpr Duration longest_shared_burst = std::chrono::seconds{10};
constexpr Duration longest_gathering = std::chrono::seconds{5};

}  // namespace

Bursts::Burst& Bursts::of(const std::string& target) {
  const std::lock_guard lock(mutex_);
  for (Burst& burst : bursts_)
    if (burst.target == target) return burst;
  bursts_.emplace_back().target = target;
  return bursts_.back();
}

Bursts::Begun Bursts::begin(Burst& burst, bool in_one_call, Describe describe) {
  std::unique_lock lock(mutex_);
  bool waited = may_begin(lock, burst, describe);
  ++burst.running;
  if (burst.request && share(burst).part < 1) {
    waited = true;
    if (!keep_pace(lock, burst)) {
      if (--burst.running == 0) changed_.notify_all();
      may_begin(lock, burst, describe);
      ++burst.running;
    }
  }
  if (!in_one_call) ++burst.open;
  return {&burst, waited, static_cast<bool>(burst.request)};
}

// True: it may have taken long.
bool Bursts::may_begin(std::unique_lock<std::mutex>& lock, Burst& burst, Describe describe) {
  bool waited = burst.request && burst.running > 0 && gather(lock, burst);
  changed_.wait(lock, [&] { return !burst.asking; });
  if (burst.request && burst.seen != member_.changes()) waited |= look(lock, burst);
  // One without an end would hold others up for ever: hocketd hears of it again, and may let them come first.
  if (burst.request && burst.running == 0 && burst.last - burst.since >= longest_burst) finish(burst, false);
  if (burst.request) return waited;
  event::StartIo start;
  start.target = burst.target;
  describe(start);
  ask(lock, burst, std::move(start));
  return true;
}

// Threads that access in turns leave no moment between two accesses: where the burst is to stop, who comes waits until
// the others have ended theirs. True: it may have taken long.
bool Bursts::gather(std::unique_lock<std::mutex>& lock, Burst& burst) {
  if (burst.open > 0) return false;
  const bool pauses = burst.seen != member_.changes() && member_.standing(burst.request) == Standing::to_pause;
  if (!pauses && burst.last - burst.since < longest_shared_burst) return false;
  changed_.wait_for(lock, longest_gathering, [&] { return burst.running == 0; });
  return true;
}

// Something has happened to a request, of this burst perhaps. True: it may have taken long.
bool Bursts::look(std::unique_lock<std::mutex>& lock, Burst& burst) {
  const std::uint64_t changes = member_.changes();
  switch (member_.standing(burst.request)) {
    case Standing::granted: burst.seen = changes; return false;
    case Standing::expired:
    case Standing::alone:
      finish(burst, false);  // is asked for again: in vain, and at once, before the next phase, where nobody answers
      return false;
    case Standing::to_pause:
      if (burst.running > 0) return false;  // another thread is in the middle of an access
      break;
    default: break;
  }
  burst.asking = true;
  const RequestId request = burst.request;
  lock.unlock();
  member_.await(request);
  lock.lock();
  burst.asking = false;
  burst.seen = 0;  // the next access looks: it may have been told to pause again at once
  changed_.notify_all();
  return true;
}

// Asks for it only where something has happened to a request: it changes with nothing else.
const Member::Share& Bursts::share(Burst& burst) {
  if (const std::uint64_t changes = member_.changes(); burst.share_seen != changes) {
    burst.share = member_.share(burst.request);
    burst.share_seen = changes;
  }
  return burst.share;
}

// False: it is not granted any more, or is to pause.
bool Bursts::keep_pace(std::unique_lock<std::mutex>& lock, const Burst& burst) {
  const Pace pace = burst.pace;
  const RequestId request = burst.request;
  lock.unlock();
  const bool kept = keep(pace, member_, request);
  lock.lock();
  return kept;
}

void Bursts::ask(std::unique_lock<std::mutex>& lock, Burst& burst, event::StartIo start) {
  burst.asking = true;
  lock.unlock();
  const RequestId request = member_.ask(std::move(start), Use::burst);
  lock.lock();
  burst.asking = false;
  burst.request = request;
  burst.share_seen = 0;  // of the request before
  burst.pace.allow(share(burst).part);
  burst.seen = 0;  // as there
  burst.since = {};
  burst.io = {};
  burst.bytes = 0;
  changed_.notify_all();
}

void Bursts::end(Burst& burst, Time now, Duration io, std::int64_t bytes, bool in_one_call) {
  const std::lock_guard lock(mutex_);
  if (--burst.running == 0) changed_.notify_all();
  if (!in_one_call) --burst.open;
  burst.last = now;
  if (burst.since == Time{}) burst.since = now;
  burst.io += io;
  burst.bytes += bytes;
  if (!burst.request || !in_one_call) return;
  const Member::Share& part = share(burst);
  burst.pace.moved(now, io, bytes, part.part, part.alone);
}

void Bursts::finish(Burst& burst, bool phase_over) {
  const Duration idle = burst.last != Time{} ? node_now() - burst.last : Duration{};
  member_.finish({std::exchange(burst.request, {}), burst.io, burst.bytes, phase_over, idle});
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
      member_.answer_pause(burst.request);
      next = std::min(next, burst.last + gap_);
    }
  }
  return next;
}

}  // namespace hocket::runtime
