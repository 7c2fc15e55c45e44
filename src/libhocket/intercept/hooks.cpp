#include "intercept/hooks.hpp"

#include <atomic>
#include <utility>

#include "base/saturating.hpp"
#include "mpi_shim/pmpi.hpp"
#include "process/announced.hpp"
#include "process/flop_of_phases.hpp"
#include "process/grants.hpp"
#include "process/identity.hpp"

namespace hocket::runtime {
namespace {

// The bits of the decision that rank 0 broadcasts at a control point.
constexpr int granted = 1;
constexpr int counts_flop = 2;  // all ranks add up their floating-point operations: an I/O phase begins

// Notes that the file is accessed, so that it counts among the announced files when it is closed.
void is_accessed(OpenFile& file) {
  const std::atomic_ref<bool> accessed(file.accessed);
  if (!accessed.load(std::memory_order_relaxed)) accessed.store(true, std::memory_order_relaxed);
}

std::string_view target_of(const OpenFile* file) { return file ? std::string_view(file->target) : ""; }

// Moves the access's start to now, and counts the time since `since` as waiting.
void has_waited(BegunAccess& begun, Time since) {
  begun.start = node_now();
  begun.wait = begun.start - since;
  hot.counters.wait_time.add(begun.wait);
}

// Begins an operation of the I/O phases that this process reports. Returns false if it is not reported.
bool operation_begins(Time start, AsksFor asks_for) {
  Reporter* const reporter = Reporter::of(asks_for);
  if (reporter) reporter->operation_begins(start, asks_for);
  return reporter != nullptr;
}

}  // namespace

void log_completion(const char* routine, const call_log::CallStart& began) noexcept {
  if (!call_log::is_on() || std::string_view(routine).starts_with("MPI_Test")) return;
  LoggedCall call;
  call.kind = CallKind::completion;
  call_log::add(routine, began, call);
}

void log_access(const CalledRoutine& called, CallKind kind, const call_log::CallStart& began, const OpenFile* file,
                std::int64_t bytes, std::optional<MPI_File> handle) noexcept {
  if (!call_log::is_on()) return;
  LoggedCall call;
  call.kind = kind;
  call.bytes = bytes;
  MPI_Offset place = -1;
  if (handle && called.offset && HOCKET_PMPI(File_get_byte_offset)(*handle, *called.offset, &place) == MPI_SUCCESS)
    call.offset = place;
  if (file) call.file = call_log::file_number(file->name);
  call_log::add(called.routine, began, call);
}

LoggedCall logged_communication(std::int64_t bytes, int peer, MPI_Comm comm) noexcept {
  LoggedCall call;
  call.bytes = bytes;
  call.peer = peer;
  if (comm != mpi::no_comm()) call.processes = mpi::size_of(comm);
  return call;
}

BegunAccess begin_access(OpenFile* file, const CalledRoutine& asked, Time start, bool in_one_call) noexcept {
  if (file) is_accessed(*file);
  const auto is_held = [&](const HeldTargets& held) { return is_file_held(*file, held); };
  Bursts* const bursts = file && !file->data_set ? independent_bursts(is_held) : nullptr;
  const auto describe = [&](event::StartIo& begins) {
    begins.file = file->name;
    begins.operation = asked.routine;
    begins.bytes = asked.bytes();
  };
  return begin_independent(bursts, bursts ? &burst_of(*file, *bursts) : nullptr, describe, start, in_one_call);
}

BegunAccess begin_independent(Bursts* bursts, Bursts::Burst* burst, Bursts::Describe describe, Time start,
                              bool in_one_call) noexcept {
  BegunAccess begun;
  begun.start = start;
  begun.tracked = operation_begins(start, bursts ? AsksFor::itself : AsksFor::nobody);
  if (!bursts) return begun;
  const Bursts::BurstAccess begins = bursts->begin(*burst, in_one_call, [&](event::StartIo& told) {
    describe(told);
    announced().describe(told);
  });
  begun.burst = burst;
  begun.in_one_call = in_one_call;
  if (!begins.granted) hot.uncoordinated.add(1);
  if (begins.waited) has_waited(begun, start);
  return begun;
}

BegunAccess begin_collective(OpenFile* file, const CalledRoutine& asked, Time start, bool agree,
                             RequestPurpose use) noexcept {
  BegunAccess begun;
  begun.start = start;
  if (!file) return begun;
  is_accessed(*file);
  // One process of several has opened the file alone. There is no other rank to agree with.
  if (!file->control && file->agreement == mpi::no_comm())
    return begin_access(file, asked, start, use == RequestPurpose::operation);
  const bool asks = file->control && file->root && (identity().coordinates() || is_file_held(*file, held_targets()));
  begun.tracked = operation_begins(start, asks ? AsksFor::all_of_file : AsksFor::nobody);
  if (!file->control) return begun;
  const bool alone = file->agreement == mpi::no_comm();
  int decision = asks && phase_wants_flop(Reporter::find()) ? counts_flop : 0;
  if (asks) {
    begun.processes = alone ? 1 : mpi::size_of(file->agreement);
    begun.in_one_call = use == RequestPurpose::operation;
    // The other ranks are assumed to access as many bytes.
    const std::int64_t bytes = saturating_product(asked.bytes(), begun.processes);
    event::StartIo start_io{{}, file->target, file->name, asked.routine, bytes};
    start_io.file_system = file->file_system;
    file->parts.describe(start_io);
    begun.request = grants::ask(std::move(start_io), use);
  }
  if (begun.request) decision |= granted;
  if (agree && !alone) decision = mpi::agree(file->agreement, decision);
  begun.granted = agree && !alone && (decision & granted) != 0;
  begun.stoppable = begun.granted || (alone && begun.request);
  if ((agree || alone) && (decision & counts_flop) != 0) count_flop(file->agreement, file->root);
  has_waited(begun, start);
  return begun;
}

void await_end(const BegunAccess& begun, OpenFile* file, bool ok, Time since) noexcept {
  if (!begun.granted) return;
  if (!file->root) return mpi::tell_root(file->agreement, spent(since));
  // With messages of earlier accesses outstanding, rank 0 cannot tell which messages belong to this one.
  const bool none_owed = file->owed == 0;
  const int others = mpi::size_of(file->agreement) - 1;
  file->owed += others;
  if (!ok) return;
  SpentTotals all = mpi::receive_words(file->agreement, file->owed);
  if (!none_owed || all.processes != others) return;
  all.add(spent(since));
  if (Reporter* const reporter = Reporter::find()) reporter->spent_by_all(all);
}

void end_access(AccessDirection direction, const BegunAccess& begun, const OpenFile* file, Time end,
                const MPI_Status* status) noexcept {
  const std::int64_t bytes = status ? mpi::bytes_in(*status) : 0;
  const Duration paused = grants::take_waited();
  const Duration io = end - begun.start - paused;
  hot.count(activity(direction), bytes, io);
  leave_access(direction, begun, target_of(file), end, io, paused, bytes);
}

void leave_access(AccessDirection direction, const BegunAccess& begun, std::string_view target, Time end, Duration io,
                  Duration paused, std::int64_t bytes) noexcept {
  if (begun.request)
    grants::finish({begun.request, io, bytes, false}, std::string(target), begun.processes, begun.in_one_call);
  if (begun.burst) {
    announced().moved(bytes);
    Reporter::find()->bursts().end(*begun.burst, end, io, bytes, begun.in_one_call);
  }
  if (!begun.tracked) return;
  const bool reads = direction == AccessDirection::read;
  Reporter::find()->operation_ends({end, io, begun.wait + paused, reads ? bytes : 0, reads ? 0 : bytes, target});
}

void split_began(AccessDirection direction, const BegunAccess& begun, OpenFile* file, Time end, bool ok) noexcept {
  if (!ok) return end_access(direction, begun, file, end, nullptr);
  const Duration io = end - begun.start;
  activity(direction).time.add(io);
  if (!file) return;
  file->split = begun;
  file->split_io = io;
}

void split_ended(AccessDirection direction, OpenFile* file, Time start, Time end, const MPI_Status* status) noexcept {
  const std::int64_t bytes = status ? mpi::bytes_in(*status) : 0;
  const Duration io = end - start;
  hot.count(activity(direction), bytes, io);
  if (file) leave_access(direction, std::exchange(file->split, {}), file->target, end, file->split_io + io, {}, bytes);
}

void access_started(AccessDirection direction, const BegunAccess& begun, const OpenFile* file, Time end,
                    std::int64_t bytes, const MPI_Request* request) noexcept {
  const Duration io = end - begun.start;
  hot.count(activity(direction), bytes, io);
  if (request && *request != mpi::no_request())
    started(*request, {direction, begun, io, bytes, std::string(target_of(file))});
  else
    leave_access(direction, begun, target_of(file), end, io, {}, bytes);
}

Completion::Completion(int count, const MPI_Request* requests) {
  for (int i = 0; i < count; ++i)
    if (const auto direction = direction_of_started(requests[i])) watched_.push_back({i, requests[i], *direction});
}

bool Completion::done(const MPI_Request* requests, Time start, Time end) noexcept {
  if (watched_.empty()) return false;
  const Duration io = end - start;
  activity(watched_.front().direction).time.add(io);
  for (const Watched& watched : watched_) {
    if (requests[watched.index] == watched.request) continue;  // still active: MPI sets ended ones to null
    if (const auto access = take_started(watched.request))
      leave_access(access->direction, access->begun, access->target, end, access->io + io, {}, access->bytes);
  }
  return true;
}

}  // namespace hocket::runtime
