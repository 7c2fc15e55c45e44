// The public functions of include/hocket/io.h, by which an application coordinates its own steps. One thread at a
// time may call them.
#include "hocket/io.h"

#include <array>
#include <atomic>
#include <string>
#include <utility>

#include "api/status.hpp"
#include "base/clock.hpp"
#include "mpi_shim/calls.hpp"
#include "mpi_shim/warn.hpp"
#include "process/announced.hpp"
#include "process/guarded.hpp"
#include "process/identity.hpp"
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
using hocket::runtime::Reporter;
using hocket::runtime::Session;
using hocket::runtime::Standing;
namespace mpi = hocket::runtime::mpi;

// The current step of this process.
struct IoStep {
  bool open = false;
  bool root = false;           // this is rank 0 of the step's communicator
  Session* session = nullptr;  // in rank 0, if the application is coordinated
  RequestId request;           // none: hocketd is missing, the step continues uncoordinated
  MPI_Comm comm{};
  bool authorized = false;        // the latest state that this process has learnt
  Duration io_before{};           // the process's I/O time when the step began
  std::int64_t bytes_before = 0;  // the bytes it had moved when the step began
};
IoStep step;

// Kinds of calls in the wrong order. Each is reported once.
enum Wrong { outside, inform_twice, no_step, nothing_prepared, kinds };

int wrong_order(Wrong kind, const char* function, const std::string& state) {
  static std::array<std::atomic<bool>, kinds> told{};
  const std::string text = std::string(function) + " was called " + state;
  if (!told[static_cast<std::size_t>(kind)].exchange(true) && identity().speaks())
    hocket::runtime::warn(text + "; the call has no effect");
  return fail(HOCKET_ERROR_ORDER, text);
}

int outside_of_mpi(const char* function) {
  return wrong_order(outside, function, "before MPI_Init or after MPI_Finalize");
}

int without_step(const char* function) {
  return wrong_order(no_step, function, "without hocket_io_inform before it, or after hocket_io_release");
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

// Blocks until the step is granted or continues uncoordinated.
void await_turn() {
  if (step.session->step_standing() == Standing::granted) return;
  // A process that was stopped may receive its grant and LEASE_EXPIRED together, so it tries twice.
  for (int i = 0; i < 2 && step.request; ++i) {
    if (step.session->step_standing() == Standing::expired) ask_again();
    if (step.request) step.session->await(step.request);
    if (step.session->step_standing() != Standing::expired) return;
  }
}

}  // namespace

int hocket_io_prepare(MPI_Info info) {
  return guarded([&]() -> int {
    if (!hot.is_active()) return outside_of_mpi("hocket_io_prepare");
    announced().prepare(mpi::pairs(info));
    return HOCKET_OK;
  });
}

int hocket_io_complete() {
  return guarded([&]() -> int {
    if (!hot.is_active()) return outside_of_mpi("hocket_io_complete");
    if (announced().complete()) return HOCKET_OK;
    return wrong_order(nothing_prepared, "hocket_io_complete", "more often than hocket_io_prepare");
  });
}

int hocket_io_inform(MPI_Comm comm) {
  return guarded([&]() -> int {
    if (!hot.is_active()) return outside_of_mpi("hocket_io_inform");
    if (step.open) return wrong_order(inform_twice, "hocket_io_inform", "again before hocket_io_release");
    if (comm == mpi::no_comm() || mpi::is_inter(comm))
      return fail(HOCKET_ERROR_ARGUMENT,
                  "hocket_io_inform: 'comm' is MPI_COMM_NULL or an intercommunicator; give an intracommunicator");
    step = {};
    step.open = true;
    hot.in_step = true;
    step.comm = comm;
    step.root = mpi::rank_in(comm) == 0;
    step.authorized = !identity().coordinates();
    if (!step.root || step.authorized) return HOCKET_OK;
    step.session = &Reporter::get().session();
    step.session->phase_begins();
    step.io_before = hot.counters.io();
    step.bytes_before = hot.counters.bytes_moved();
    ask();
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
    if (!step.open) return without_step("hocket_io_check");
    if (step.session && step.request) step.authorized = look();
    *authorized = step.authorized || (step.session && !step.request) ? 1 : 0;
    return HOCKET_OK;
  });
}

int hocket_io_wait() {
  return guarded([&]() -> int {
    if (!step.open) return without_step("hocket_io_wait");
    if (!hot.is_active() || !identity().coordinates()) return HOCKET_OK;
    const Time start = node_now();
    if (step.session && step.request) await_turn();
    if (mpi::size_of(step.comm) > 1) mpi::agree(step.comm, 1);
    hot.counters.wait_time.add(node_now() - start);
    step.authorized = true;
    return HOCKET_OK;
  });
}

int hocket_io_release() {
  return guarded([&]() -> int {
    if (!step.open) return without_step("hocket_io_release");
    const IoStep ended = std::exchange(step, {});
    hot.in_step = false;
    if (!hot.is_active() || !identity().coordinates()) return HOCKET_OK;
    if (mpi::size_of(ended.comm) > 1) mpi::meet(ended.comm);
    if (ended.session && ended.request)
      ended.session->finish(
          {ended.request, hot.counters.io() - ended.io_before, hot.counters.bytes_moved() - ended.bytes_before, true});
    return HOCKET_OK;
  });
}
