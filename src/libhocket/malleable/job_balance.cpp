// Load balance: measures the computing time of this process between control points, and shares weighted arrays out anew
// by the speed of each process.
#include <algorithm>
#include <bit>

#include "base/clock.hpp"
#include "malleable/job.hpp"
#include "mpi_shim/calls.hpp"
#include "mpi_shim/end_job.hpp"
#include "process/hot.hpp"

namespace hocket::runtime {

using redistribute::Partition;
using redistribute::ProcessTime;

// ---- measuring ---------------------------------------------------------------------------------------------------

// Returns the time that this process has spent in MPI and in I/O, whose waits for others say nothing about its speed.
Duration MalleableJob::time_elsewhere() {
  const auto sums = hot.sums();
  return sums.comm + sums.io + sums.wait;
}

// Returns the time since the last control point outside of MPI and of I/O.
double MalleableJob::busy_since_control_point_s() const {
  return std::max(0.0, to_s(node_now() - point_since_ - (time_elsewhere() - elsewhere_since_)));
}

// Notes the computing time of the iteration that has just ended.
void MalleableJob::note_busy_time() {
  if (!settles_) window_.add(busy_since_control_point_s());
  settles_ = false;
}

// Forgets the times measured with the former shares, and after a resize what moves have brought.
void MalleableJob::measure_anew(bool resized) {
  window_ = earlier_ = {};
  settles_ = true;
  if (resized) rebalancing_ = {};
  rebalancing_.moved();
}

// True if hocket decides about the balance, in rank 0: a program that balances itself knows better.
bool MalleableJob::balances_itself() const {
  return settings_.balance != Balance::never && !balanced_by_program_ && size_ > 1 && arrays_.weighted() != nullptr;
}

// Returns what all ranks measured, by rank, the same in each. Collective.
std::vector<ProcessTime> MalleableJob::times_of_all(double busy_s, double error_s) {
  // The bit patterns of non-negative doubles have the order of the numbers, so an integer maximum gathers them.
  std::vector<std::int64_t> bits(2 * static_cast<std::size_t>(size_));
  const auto own = 2 * static_cast<std::size_t>(rank_);
  bits[own] = std::bit_cast<std::int64_t>(busy_s);
  bits[own + 1] = std::bit_cast<std::int64_t>(error_s);
  if (!mpi::largest(ours_, bits)) end_job("MPI failed when speeds were compared", true);
  const Partition* const shares = arrays_.weighted();
  std::vector<ProcessTime> times(static_cast<std::size_t>(size_));
  for (std::size_t rank = 0; rank < times.size(); ++rank)
    times[rank] = {std::bit_cast<double>(bits[2 * rank]), std::bit_cast<double>(bits[2 * rank + 1]),
                   shares ? shares->part(static_cast<int>(rank)).count() : 0};
  return times;
}

// ---- on request of the program -----------------------------------------------------------------------------------

void MalleableJob::balance(double busy_s) {
  balance_ = true;
  balanced_by_program_ = true;
  busy_s_ = busy_s > 0 ? busy_s : busy_since_control_point_s();
}

// Returns the speed of each process in elements per second, by the times that the program gave. Collective.
std::vector<double> MalleableJob::told_speeds() { return redistribute::speeds(times_of_all(busy_s_, 0)); }

// ---- by itself ---------------------------------------------------------------------------------------------------

// Returns the speed of each process for a resize that begins now. Where the times differ no more than noise does, the
// weights of the present shares stay, so that a resize does not carry noise into the shares. Collective.
std::vector<double> MalleableJob::speeds_now() {
  redistribute::BusyWindow since = earlier_;
  since.add(window_);
  const std::vector<ProcessTime> times = times_of_all(since.mean_s(), since.error_s());
  return redistribute::avoidable_s(times) > 0 ? redistribute::speeds(times) : weights_;
}

// Estimates what a new distribution costs. In rank 0.
double MalleableJob::cost_of_move_s(const std::vector<double>& weights) const {
  const Partition& shares = *arrays_.weighted();
  const auto moved = redistribute::elements_moved(shares, Partition::weighted(shares.length(), weights));
  const double part = static_cast<double>(moved) / static_cast<double>(std::max<std::int64_t>(1, shares.length()));
  return move_cost_.seconds(part * arrays_.weighted_bytes());
}

// Compares the computing times of all ranks, and shares the arrays out anew if rank 0 finds that this pays. Collective.
ControlPointResult MalleableJob::look_at_balance() {
  const std::vector<ProcessTime> times = times_of_all(window_.mean_s(), window_.error_s());
  const std::vector<double> speeds = redistribute::speeds(times);
  std::int64_t pays = 0;
  if (rank_ == 0) pays = rebalancing_.look(times, window_.count(), last_ - iteration_, cost_of_move_s(speeds));
  earlier_.add(window_);
  window_ = {};
  if (!mpi::broadcast(ours_, 0, &pays, sizeof pays)) end_job("MPI failed when speeds were compared", true);
  return pays ? share_out_anew(speeds) : ControlPointResult::go_on;
}

}  // namespace hocket::runtime
