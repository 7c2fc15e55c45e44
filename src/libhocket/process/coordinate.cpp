// The public functions of include/hocket/io.h, by which an application coordinates its own steps. One thread at a
// time may call them.
#include "hocket/io.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "api/status.hpp"
#include "base/clock.hpp"
#include "mpi_shim/calls.hpp"
#include "process/announced.hpp"
#include "process/grants.hpp"
#include "process/guarded.hpp"
#include "process/identity.hpp"
#include "process/meeting.hpp"
#include "process/reporter.hpp"

namespace {

using hocket::Duration;
using hocket::node_now;
using hocket::RequestId;
using hocket::Time;
using hocket::api::fail;
using hocket::runtime::announced;
using hocket::runtime::guarded;
using hocket::runtime::hot;
using hocket::runtime::identity;
using hocket::runtime::Meeting;
using hocket::runtime::MeetingPoint;
using hocket::runtime::Met;
using hocket::runtime::Prepared;
using hocket::runtime::Reporter;
using hocket::runtime::Session;
using hocket::runtime::Standing;
namespace grants = hocket::runtime::grants;
namespace mpi = hocket::runtime::mpi;

// One level of the step: from a hocket_io_inform to its hocket_io_release.
struct Level {
  MPI_Comm comm{};
  bool whole = false;               // has all processes of the step, so that the step may stop where they are together
  std::int64_t bytes_before = 0;    // that this process had moved when the level began
  std::int64_t counted_before = 0;  // that all processes had moved then, as far as this process knew
  MeetingPoint point{};
};

// The current step of this process. The outermost level requests the grant; inner ones use it.
struct IoStep {
  std::vector<Level> levels;         // the innermost last; none: no step is open
  Session* session = nullptr;        // in rank 0 of the outermost level, if the application is coordinated
  RequestId request;                 // none: hocketd is missing, the step continues uncoordinated
  bool authorized = false;           // the latest state that this process has learnt
  bool completed = false;            // what was prepared was completed within the step, so the phase ends with it
  Duration io_before{};              // the process's I/O time when the step began
  std::int64_t reported_before = 0;  // the bytes that its accesses had reported when the step began
  bool open() const { return !levels.empty(); }
};
IoStep step;
bool has_led = false;                  // this process has led a step of what is prepared now
std::vector<std::size_t> prepared_at;  // levels of the step at each hocket_io_prepare that is not completed

// Kinds of calls in the wrong order. Each is reported once.
enum Wrong { outside, no_step, nothing_prepared, not_released, unlike, kinds };

// Reports the error unless one of its kind was reported before.
void report_once(Wrong kind, bool speaks, const std::string& error) {
  static std::array<std::atomic<bool>, kinds> told{};
  if (!told[static_cast<std::size_t>(kind)].exchange(true) && speaks) hocket::runtime::wrong_information(error);
}

int wrong_order(Wrong kind, const char* function, const std::string& state) {
  const std::string text = std::string(function) + " was called " + state;
  report_once(kind, identity().speaks(), text + "; the call has no effect");
  return fail(HOCKET_ERROR_ORDER, text);
}

int outside_of_mpi(const char* function) {
  return wrong_order(outside, function, "before MPI_Init or after MPI_Finalize");
}

int without_step(const char* function) {
  return wrong_order(no_step, function, "without hocket_io_inform before it, or after as many hocket_io_release");
}

// Sends START_IO without waiting.
void ask() {
  hocket::event::StartIo start;
  start.operation = "hocket_io_inform";
  announced().describe_step(start);
  step.request = step.session->inform(std::move(start));
}

// Sends a new request after the lease of an unused grant has expired.
void ask_again() {
  step.session->finish({step.request, {}, 0, false});
  ask();
}

// Updates rank 0's view of a step that was not simply granted. Returns true if the step may access files now.
bool look() {
  switch (step.session->step_standing()) {
    case Standing::offered:
      step.session->take_up(step.request);
      return step.session->step_standing() == Standing::granted;  // hocketd may have revoked it meanwhile
    case Standing::to_pause: step.session->answer_pause(step.request); return false;
    case Standing::expired: ask_again(); return !step.request;
    case Standing::queued:
    case Standing::paused: return false;
    case Standing::none:
    case Standing::granted:
    case Standing::alone: return true;
  }
  return true;
}

// Blocks until the step is granted or continues uncoordinated. If it is to stop, it stops here, unless other processes
// of the step may be in the middle of an access: they are not in this level.
void await_turn(const Level& level) {
  const Standing standing = step.session->step_standing();
  if (standing == Standing::granted || (standing == Standing::to_pause && !level.whole)) return;
  // A process that was stopped may receive its grant and LEASE_EXPIRED together, so it tries twice.
  for (int i = 0; i < 2 && step.request; ++i) {
    if (step.session->step_standing() == Standing::expired) ask_again();
    if (step.request) step.session->await(step.request);
    if (step.session->step_standing() != Standing::expired) return;
  }
}

// Begins the outermost level in rank 0 of its communicator: requests the grant.
void begin_step() {
  Reporter& own = Reporter::get();
  step.session = &own.session();
  step.session->phase_begins();
  const Time now = node_now();
  hocket::runtime::report_phase_due(now);
  if (!own.in_phase(now)) announced().phase_begins();
  step.io_before = hot.counters.io();
  step.reported_before = grants::reported_bytes();
  has_led = true;
  ask();
}

// Ends the outermost level in the process that began it. Bytes of accesses that sent a request are reported already.
void end_step(const IoStep& ended) {
  const std::int64_t reported = grants::reported_bytes();
  const std::int64_t moved = hot.counters.bytes_moved() - ended.levels.front().bytes_before;
  const std::int64_t bytes = std::max<std::int64_t>(0, moved - (reported - ended.reported_before));
  ended.session->finish({ended.request, hot.counters.io() - ended.io_before, bytes, ended.completed});
}

// The functions in which the processes of a level meet.
enum MeetsIn { in_wait, in_release };

// Time limit for the others to come. In hocket_io_wait they come when rank 0 has waited for hocketd, perhaps twice.
Duration longest_meeting() {
  const auto& settings = identity().settings;
  return 2 * (settings.max_wait + settings.answer) + std::chrono::seconds{1};
}

// Waits until all processes of the level have come, and returns what they know together. If some have called another
// function, or at another depth, or do not come in time, each continues with what it knows itself.
Meeting meet_all(const Level& level, MeetsIn function, Meeting known) {
  const auto depth =
      std::count_if(step.levels.begin(), step.levels.end(), [&](const Level& one) { return one.comm == level.comm; });
  const Duration limit = longest_meeting();
  const Met met = level.point.meet(2 * depth + (function == in_wait ? 1 : 0), known, limit);
  if (met != Met::unlike && met != Met::missing) return known;
  const std::string name = function == in_wait ? "hocket_io_wait" : "hocket_io_release";
  const std::string state =
      met == Met::unlike ? " was called by some processes of its communicator, and another function or level by others"
                         : " was not called by all processes of its communicator within " +
                               std::to_string(static_cast<int>(hocket::to_s(limit))) + " s";
  // One that has not come cannot speak.
  const int speaker = met == Met::unlike ? 0 : 1;
  report_once(unlike, mpi::rank_in(level.comm) <= speaker,
              name + state +
                  "; the processes do not wait for each other in steps any more: call inform, wait and release alike "
                  "in all of them");
  return known;
}

// Waits until all processes of the level have come, and counts the bytes that they have moved in it. Returns true if
// the step is to stop here.
bool meet(const Level& level) {
  const bool inner = step.levels.size() > 1;
  const bool stops =
      inner && step.session && step.request && level.whole && step.session->step_standing() == Standing::to_pause;
  const Meeting all = meet_all(level, in_release, {hot.counters.bytes_moved() - level.bytes_before, stops});
  const std::int64_t counted = announced().moved() - level.counted_before;
  if (all.bytes > counted) announced().moved(all.bytes - counted);
  return all.stops;
}

// Lets all processes of the level wait until the step may access files.
void wait_in(const Level& level) {
  const Time start = node_now();
  if (step.session && step.request) await_turn(level);
  meet_all(level, in_wait, {});
  hot.counters.wait_time.add(node_now() - start);
}

// True if all I/O of an ended step is over: it was followed by more than the gap within the step, and nothing more was
// announced. Its IO_PHASE came while the step had its grant, so hocketd cannot know that it was the last.
bool was_last(const IoStep& ended) {
  Reporter* const own = Reporter::find();
  if (!own || !ended.session || announced().more_to_come()) return false;
  const Time now = node_now();
  hocket::runtime::report_phase_due(now);
  return hot.counters.io() > ended.io_before && !own->in_phase(now);
}

// Ends the prepared I/O phase, and lets hocketd know.
void end_phase() {
  const bool led = std::exchange(has_led, false);
  Reporter* const own = Reporter::find();
  if (!own) return;
  own->end_phase();
  if (!identity().coordinates() || !(led || identity().speaks())) return;
  hocket::event::InformIo over;
  over.phase_over = true;
  own->session().inform_of(over);
}

}  // namespace

int hocket_io_prepare(MPI_Info info) {
  return guarded([&]() -> int {
    if (!hot.is_active()) return outside_of_mpi("hocket_io_prepare");
    prepared_at.reserve(prepared_at.size() + 1);  // so that both stacks grow, or none
    announced().prepare(mpi::pairs(info));
    prepared_at.push_back(step.levels.size());
    return HOCKET_OK;
  });
}

int hocket_io_complete() {
  return guarded([&]() -> int {
    if (!hot.is_active()) return outside_of_mpi("hocket_io_complete");
    if (prepared_at.empty())
      return wrong_order(nothing_prepared, "hocket_io_complete", "more often than hocket_io_prepare");
    const std::size_t depth = prepared_at.back();
    prepared_at.pop_back();
    if (announced().complete() != Prepared::Popped::phase) return HOCKET_OK;
    if (!step.open()) {
      end_phase();
      return HOCKET_OK;
    }
    step.completed = true;
    if (step.levels.size() > depth)
      report_once(not_released, identity().speaks(),
                  "hocket_io_complete was called in a step that began after its hocket_io_prepare: call "
                  "hocket_io_release before, as often as hocket_io_inform");
    return HOCKET_OK;
  });
}

int hocket_io_inform(MPI_Comm comm) {
  return guarded([&]() -> int {
    if (!hot.is_active()) return outside_of_mpi("hocket_io_inform");
    if (comm == mpi::no_comm() || mpi::is_inter(comm))
      return fail(HOCKET_ERROR_ARGUMENT,
                  "hocket_io_inform: 'comm' is MPI_COMM_NULL or an intercommunicator; give an intracommunicator");
    const bool outermost = !step.open();
    const bool whole = outermost || mpi::size_of(comm) == mpi::size_of(step.levels.front().comm);
    if (outermost) step = {};
    step.levels.push_back({comm, whole, hot.counters.bytes_moved(), announced().moved()});
    if (identity().coordinates()) step.levels.back().point = MeetingPoint(comm);
    if (outermost) {
      hot.in_step = true;
      step.authorized = !identity().coordinates();
      if (!step.authorized && mpi::rank_in(comm) == 0) begin_step();
    } else if (step.session && step.request) {
      if (const auto news = announced().news()) step.session->inform_of(*news);
    }
    return HOCKET_OK;
  });
}

int hocket_io_check(int* authorized) {
  if (!authorized) return hocket::api::no_null("hocket_io_check", "authorized");
  if (step.session && step.session->step_standing() == Standing::granted) [[likely]] {
    *authorized = 1;
    return HOCKET_OK;
  }
  return guarded([&]() -> int {
    *authorized = 1;
    if (!step.open()) return without_step("hocket_io_check");
    if (step.session && step.request) step.authorized = look();
    *authorized = step.authorized || (step.session && !step.request) ? 1 : 0;
    return HOCKET_OK;
  });
}

int hocket_io_wait() {
  return guarded([&]() -> int {
    if (!step.open()) return without_step("hocket_io_wait");
    if (!hot.is_active() || !identity().coordinates()) return HOCKET_OK;
    wait_in(step.levels.back());
    step.authorized = true;
    return HOCKET_OK;
  });
}

int hocket_io_release() {
  return guarded([&]() -> int {
    if (!step.open()) return without_step("hocket_io_release");
    const bool coordinated = hot.is_active() && identity().coordinates();
    const Level ended = step.levels.back();
    const bool stops = coordinated && meet(ended);
    if (step.levels.size() > 1) {
      step.levels.pop_back();
      if (stops) wait_in(ended);
      return HOCKET_OK;
    }
    IoStep all = std::exchange(step, {});
    hot.in_step = false;
    all.completed = all.completed && !announced().announces();  // something else may be prepared by now
    if (coordinated && all.session && all.request) end_step(all);
    if (stops) meet_all(ended, in_wait, {});  // the level is an inner one of other processes, which wait here
    if (hot.is_active() && (all.completed || was_last(all))) end_phase();
    return HOCKET_OK;
  });
}
