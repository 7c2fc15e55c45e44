#include "runtime/mpi/hooks.hpp"

#include <utility>

#include "base/saturating.hpp"

namespace hocket::runtime {
namespace {

// What rank 0 tells the others at a control point.
constexpr int granted = 1;
constexpr int counts_flop = 2;  // all add up their operations: the access is the first of an I/O phase

const std::string& target_of(const File* file) {
  static const std::string unknown;
  return file ? file->target : unknown;
}

}  // namespace

Begun begin_access(File* file, const Asked& asked, Time start, bool in_one_call) noexcept {
  if (file && !file->data_set)
    return begin_independent({[file] { return target_in(*file); },
                              [file, &asked](event::StartIo& begins) {
                                begins.file = file->name;
                                begins.operation = asked.routine;
                                begins.bytes = asked.bytes();
                              }},
                             start, in_one_call);
  Begun begun;
  begun.tracked = Process::get().operation_begins(start, false);
  return begun;
}

Begun begin_independent(const Independent& access, Time start, bool in_one_call) noexcept {
  Process& process = Process::get();
  Bursts* bursts = process.bursts();
  Begun begun;
  begun.tracked = process.operation_begins(start, false);
  if (!bursts) return begun;
  const Bursts::Begun burst = bursts->begin(access.target(), in_one_call, [&](event::StartIo& begins) {
    access.describe(begins);
    process.describe(begins);
  });
  begun.burst = burst.burst;
  begun.in_one_call = in_one_call;
  if (!burst.granted) process.uncoordinated();
  if (!burst.waited) return begun;
  begun.wait = node_now() - start;
  hot.counters.wait_time.add(begun.wait);
  return begun;
}

Begun begin_collective(File* file, const Asked& asked, Time start, bool agree, Use use) noexcept {
  if (!file) return {};
  Process& process = Process::get();
  // Of one process, of several: it agrees with nobody.
  if (!file->control && file->agreement == mpi::no_comm())
    return begin_access(file, asked, start, use == Use::operation);
  const bool asks = file->control && file->root;
  Begun begun;
  begun.tracked = process.operation_begins(start, asks);
  if (!file->control) return begun;
  const bool alone = file->agreement == mpi::no_comm();
  int decision = asks && process.phase_wants_flop() ? counts_flop : 0;
  if (asks) {
    begun.processes = alone ? 1 : mpi::size_of(file->agreement);
    begun.in_one_call = use == Use::operation;
    // The others are taken to ask for as much.
    const std::int64_t bytes = saturating_product(asked.bytes(), begun.processes);
    begun.request = process.ask({{}, file->target, file->name, asked.routine, bytes}, use);
  }
  if (begun.request) decision |= granted;
  if (agree && !alone) decision = mpi::agree(file->agreement, decision);
  begun.granted = agree && !alone && (decision & granted) != 0;
  begun.stoppable = begun.granted || (alone && begun.request);
  if ((agree || alone) && (decision & counts_flop) != 0) process.count_flop(file->agreement, file->root);
  begun.wait = node_now() - start;
  hot.counters.wait_time.add(begun.wait);
  return begun;
}

void await_end(const Begun& begun, File* file, bool ok) noexcept {
  if (!begun.granted) return;
  if (!file->root) return mpi::tell_root(file->agreement);
  file->owed += mpi::size_of(file->agreement) - 1;
  if (ok) mpi::receive_words(file->agreement, file->owed);
}

void end_access(Direction direction, const Begun& begun, const File* file, Duration io,
                const MPI_Status* status) noexcept {
  const std::int64_t bytes = status ? mpi::bytes_in(*status) : 0;
  const Duration paused = Process::take_waited();
  io -= paused;
  hot.count(activity(direction), bytes, io);
  leave_access(direction, begun, target_of(file), io, paused, bytes);
}

void leave_access(Direction direction, const Begun& begun, const std::string& target, Duration io, Duration paused,
                  std::int64_t bytes) noexcept {
  Process& process = Process::get();
  if (begun.request) process.finish({begun.request, io, bytes, false}, target, begun.processes, begun.in_one_call);
  if (begun.burst) process.end_in_burst(*begun.burst, io, bytes, begun.in_one_call);
  if (!begun.tracked) return;
  const bool reads = direction == Direction::read;
  process.operation_ends({node_now(), io, begun.wait + paused, reads ? bytes : 0, reads ? 0 : bytes, target});
}

void split_began(Direction direction, const Begun& begun, File* file, Duration io, bool ok) noexcept {
  if (!ok) return end_access(direction, begun, file, io, nullptr);
  activity(direction).time.add(io);
  if (!file) return;
  file->split = begun;
  file->split_io = io;
}

void split_ended(Direction direction, File* file, Duration io, const MPI_Status* status) noexcept {
  const std::int64_t bytes = status ? mpi::bytes_in(*status) : 0;
  hot.count(activity(direction), bytes, io);
  if (file) leave_access(direction, std::exchange(file->split, {}), file->target, file->split_io + io, {}, bytes);
}

void access_started(Direction direction, const Begun& begun, const File* file, Duration io, std::int64_t bytes,
                    const MPI_Request* request) noexcept {
  hot.count(activity(direction), bytes, io);
  if (request && *request != mpi::no_request())
    started(*request, {direction, begun, io, bytes, target_of(file)});
  else
    leave_access(direction, begun, target_of(file), io, {}, bytes);
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
    if (requests[watched.index] == watched.request) continue;  // not ended yet
    if (const auto access = take_started(watched.request))
      leave_access(access->direction, access->begun, access->target, access->io + io, {}, access->bytes);
  }
  return true;
}

}  // namespace hocket::runtime
