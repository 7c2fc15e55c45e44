#include "process/grants.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "base/clock.hpp"
#include "base/saturating.hpp"
#include "process/announced.hpp"
#include "process/reporter.hpp"
#include "session/pace.hpp"

namespace hocket::runtime::grants {
namespace {

// The paces by target: the accesses that this process requests for all ranks of a file. Never destroyed.
struct Paces {
  std::mutex mutex;
  std::map<std::string, AccessPace> by_target;
};

Paces& paces() {
  static Paces& one = *new Paces;
  return one;
}

// This thread's collective access that has a grant of its own, for throttling; and Session::changes() when its
// bandwidth share was last read.
constinit thread_local PacedAccess under_way;
constinit thread_local std::uint64_t known_changes = 0;
constinit thread_local Duration waited_so_far{};
constinit thread_local bool by_hocket = false;  // hocket has done this thread's access

constinit std::atomic<std::int64_t> reported = 0;  // bytes in FINISH_IO of this process's accesses
constinit Counter unstopped_accesses;
constinit Counter unstopped_ns;

// Returns true if this thread's access was to pause, and had no place to stop because the MPI library did it. An
// application in a step stops at its next call of hocket/io.h instead.
bool could_not_stop(Session& session, RequestId request) {
  const bool ours = std::exchange(by_hocket, false);
  const std::optional<Time> asked = session.asked_to_pause(request);
  if (ours || !asked || hot.in_step.load(std::memory_order_relaxed)) return false;
  unstopped_accesses.add(1);
  unstopped_ns.add((node_now() - *asked).count());
  return true;
}

// Learns from an access that ends now after `io`, in which all processes moved `all` bytes.
void learn_pace(const event::FinishIo& finish, const std::string& target, std::int64_t all,
                Session::RequestShare share) {
  const std::lock_guard lock(paces().mutex);
  AccessPace& pace = paces().by_target[target];
  const Time now = node_now();
  if (share.alone) return pace.moved(now, finish.io, all, 1, true);
  if (under_way.request() != finish.request) return;
  if (!under_way.moves()) under_way.moves_from(now - finish.io);
  under_way.change_share(share.part);
  pace.go_on_from(under_way.so_far(now, all));
}

}  // namespace

RequestId ask(event::StartIo start, RequestPurpose use) noexcept {
  announced().describe(start);
  by_hocket = false;
  Session& session = Reporter::get().session();
  const std::string target = start.target;
  const RequestId request = session.ask(std::move(start), use);
  if (!request) {
    hot.uncoordinated.add(1);
    return request;
  }
  AccessPace pace;
  {
    const std::lock_guard lock(paces().mutex);
    pace = paces().by_target[target];
  }
  // The access has not begun, so it can still pause.
  if (!keep(pace, session, request) && session.standing(request) == Standing::to_pause) session.await(request);
  if (use == RequestPurpose::operation) under_way = {request, pace, session.share(request).part};
  return request;
}

void finish(event::FinishIo finish, const std::string& target, int processes, bool in_one_call) noexcept {
  Session& session = Reporter::get().session();
  finish.unstopped = could_not_stop(session, finish.request);
  const std::int64_t all = std::max(session.progress_of(finish.request), saturating_product(finish.bytes, processes));
  session.progress(all);
  announced().moved(all);
  if (in_one_call) learn_pace(finish, target, all, session.share(finish.request));
  if (under_way.request() == finish.request) under_way = {};
  reported += finish.bytes;
  session.finish(finish);
}

Unstopped unstopped() noexcept { return {unstopped_accesses.get(), Duration{unstopped_ns.get()}}; }

std::int64_t reported_bytes() noexcept { return reported; }

std::uint64_t changes() noexcept { return Reporter::find()->session().changes(); }

bool pause(std::int64_t bytes, std::int64_t round) noexcept {
  if (!hot.is_pause_wanted()) return false;
  const Time start = node_now();
  const bool paused = Reporter::find()->session().pause(bytes, round);
  waited(node_now() - start);
  return paused;
}

void waited(Duration wait) noexcept {
  hot.counters.wait_time.add(wait);
  waited_so_far += wait;
  under_way.stopped(wait);
}

Duration take_waited() noexcept { return std::exchange(waited_so_far, Duration{}); }

void progress(std::int64_t bytes) noexcept {
  if (Reporter* const reporter = Reporter::find()) reporter->session().progress(bytes);
}

void done_by_hocket() noexcept { by_hocket = true; }

void begins_to_move() noexcept { under_way.moves_from(node_now()); }

bool has_share() noexcept {
  if (!under_way.request()) return false;
  Session& session = Reporter::find()->session();
  if (const std::uint64_t now = session.changes(); now != known_changes) {
    known_changes = now;
    under_way.change_share(session.share(under_way.request()).part);
  }
  return under_way.share() < 1;
}

bool ahead_of_share(std::int64_t bytes) noexcept { return under_way.is_ahead(node_now(), bytes); }

void fall_back_to_share(std::int64_t bytes) noexcept {
  const Time start = node_now();
  keep(under_way.stop(start, bytes), Reporter::find()->session(), under_way.request());
  waited(node_now() - start);
}

}  // namespace hocket::runtime::grants
