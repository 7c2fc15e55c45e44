#include "session/phases.hpp"

#include <algorithm>
#include <utility>

#include "file_system/target_name.hpp"

namespace hocket::runtime {

// Policies give an application the servers of a file system by this name.
static_assert(file_system::longest_target_name <= event::longest_file_system);

std::optional<event::IoPhase> PhaseTracker::begin(Time start) {
  std::optional<event::IoPhase> over = due(start);
  began_ = !open_;
  if (began_) {
    open_.emplace();
    open_->index = next_index_++;
    open_->target.reserve(file_system::longest_target_name);  // `end` must not allocate
    open_->start = open_->end = start;
    io_.clear();
    waits_.clear();
    previous_count_ = std::exchange(count_, std::nullopt);
  }
  ++running_;
  return over;
}

void PhaseTracker::end(const Operation& operation, const TimeSums& sums) {
  --running_;
  add(operation.end, operation.io, sums);
  open_->wait += operation.wait;
  // Pauses in the middle of the operation are shown as if they had come before its I/O: their times are not known.
  const Time began_to_move = operation.end - operation.io;
  waits_.add(began_to_move - operation.wait, began_to_move);
  open_->operations += 1;
  open_->bytes_read += operation.bytes_read;
  open_->bytes_written += operation.bytes_written;
  open_->target = operation.target;
}

std::optional<event::IoPhase> PhaseTracker::extend(Time end, Duration io, const TimeSums& sums) {
  std::optional<event::IoPhase> over = due(end - io);
  if (open_) add(end, io, sums);
  return over;
}

void PhaseTracker::add(Time end, Duration io, const TimeSums& sums) {
  open_->end = std::max(open_->end, end);
  open_->io += io;
  io_.add(end - io, end);
  open_->iteration = progress_.iteration;
  open_->processes = progress_.processes;
  open_->control_every = progress_.control_every;
  sums_ = sums;
}

void PhaseTracker::counted(double operations) {
  if (!open_) return;
  count_ = {operations, progress_.composition};
  const bool comparable = previous_count_ && previous_count_->composition == progress_.composition;
  open_->flop = comparable ? std::max(0.0, operations - previous_count_->operations) : 0;
}

void PhaseTracker::told(const SpentTotals& all) {
  if (!open_ || all.processes < open_->told_processes) return;  // a file with fewer processes says less
  open_->told_processes = all.processes;
  open_->all_cpu = all.cpu;
  open_->all_comm = all.comm;
  open_->cpu_most = all.cpu_most;
  open_->comm_most = all.comm_most;
}

std::optional<event::IoPhase> PhaseTracker::due(Time now) { return now > deadline() ? finish() : std::nullopt; }

std::optional<event::IoPhase> PhaseTracker::finish() {
  if (!open_ || running_ > 0) return std::nullopt;
  event::IoPhase phase = *std::exchange(open_, std::nullopt);
  phase.io_intervals = io_.text(phase.start);
  phase.wait_intervals = waits_.text(phase.start);
  phase.comm = sums_.comm - previous_sums_.comm;
  const Duration accounted = phase.comm + (sums_.io - previous_sums_.io) + (sums_.wait - previous_sums_.wait);
  // Threads that communicate concurrently can account for more than the elapsed time.
  phase.cpu = std::max(Duration{}, phase.end - previous_end_ - accounted);
  previous_sums_ = sums_;
  previous_end_ = phase.end;
  return phase;
}

Time PhaseTracker::deadline() const { return open_ && running_ == 0 ? open_->end + gap_ : Time::max(); }

}  // namespace hocket::runtime
