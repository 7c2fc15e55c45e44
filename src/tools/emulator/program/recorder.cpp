#include "emulator/program/recorder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <ctime>

namespace hocket::emulator {
namespace {

constexpr double interval_s = 3;
constexpr std::int64_t most_rows = 4096;
constexpr std::size_t totals = 3;  // behind the rows: CPU time, control points, own time

void add(std::string& text, double seconds, double scale = 1e9) {
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.begin(), digits.end(), std::llround(seconds * scale));
  text.append(digits.begin(), end.ptr);
}

// Adds {"iteration": […], "stages": [[…], …]}, each with a time for each iteration, in ns.
void add_table(std::string& text, const std::vector<double>& times, std::int64_t rows, std::size_t columns,
               double scale) {
  for (std::size_t column = 0; column < columns; column++) {
    text += column == 0 ? "{\"iteration\":[" : column == 1 ? ",\"stages\":[[" : ",[";
    for (std::int64_t row = 0; row < rows; row++) {
      if (row > 0) text += ',';
      add(text, times[static_cast<std::size_t>(row) * columns + column], scale);
    }
    text += ']';
  }
  text += columns > 1 ? "]}" : "}";
}

// Reduces pairs of a sum and a maximum, so that one collective does for both.
void add_and_compare(void* from, void* to, int* count, MPI_Datatype* /*type*/) {
  const auto* in = static_cast<const double*>(from);
  auto* out = static_cast<double*>(to);
  for (int pair = 0; pair < *count; pair++, in += 2, out += 2) {
    out[0] += in[0];
    out[1] = std::max(in[1], out[1]);
  }
}

}  // namespace

double process_cpu_s() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double unix_s() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

Recorder::Recorder(const EmulationPlan& plan, std::string path)
    : plan_(plan), path_(std::move(path)), cpu_since_s_(process_cpu_s()) {
  std::size_t most = 0;
  for (const PhasePlan& phase : plan.phases) most = std::max(most, phase.stages.size());
  times_.reserve((1 + most) * most_rows + totals);
  MPI_Type_contiguous(2, MPI_DOUBLE, &pairs_);
  MPI_Type_commit(&pairs_);
  MPI_Op_create(add_and_compare, 1, &sum_and_most_);
}

Recorder::~Recorder() {
  MPI_Op_free(&sum_and_most_);
  MPI_Type_free(&pairs_);
}

void Recorder::begin(std::int64_t iteration, std::size_t phase, double control_point_began_s) {
  if (rows_ > 0 && phase != phase_) flush();
  if (rows_ == 0) {
    first_ = iteration;
    first_unix_s_ = unix_s();
    phase_ = phase;
  }
  rows_++;
  times_.resize(static_cast<std::size_t>(rows_) * columns(), 0.0);
  begun_s_ = now_s();
  control_s_ += begun_s_ - control_point_began_s;
  if (last_s_ > 0) own_s_ += control_point_began_s - last_s_;
  last_s_ = begun_s_;
}

void Recorder::end_stage(std::size_t stage) {
  const double end_s = now_s();
  times_[times_.size() - columns() + 1 + stage] += end_s - last_s_;
  last_s_ = end_s;
}

void Recorder::end_iteration() {
  times_[times_.size() - columns()] = last_s_ - begun_s_;
  if (rows_ >= flush_every_) flush();
}

void Recorder::forget() {
  times_.clear();
  rows_ = 0;
  cpu_since_s_ = process_cpu_s();
  control_s_ = own_s_ = 0;
}

void Recorder::flush() {
  if (rows_ == 0) return;
  times_.insert(times_.end(), {process_cpu_s() - cpu_since_s_, control_s_, own_s_});
  const std::size_t count = times_.size();
  std::vector<double> mine, all(2 * count), sums, most;
  for (const double time : times_) mine.insert(mine.end(), {time, time});
  MPI_Allreduce(mine.data(), all.data(), static_cast<int>(count), pairs_, sum_and_most_, ranks_.comm);
  for (std::size_t at = 0; at < count; at++) {
    sums.push_back(all[2 * at]);
    most.push_back(all[2 * at + 1]);
  }
  if (ranks_.rank == 0) append(sums, most, ranks_.size);
  // All ranks have the same maxima, so they agree on the next reduction.
  double slowest_s = 0;
  for (std::int64_t row = 0; row < rows_; row++) slowest_s += most[static_cast<std::size_t>(row) * columns()];
  const double each_s = slowest_s / static_cast<double>(rows_);
  flush_every_ =
      std::clamp<std::int64_t>(std::llround(std::min(interval_s / std::max(each_s, 1e-9), 1e9)), 1, most_rows);
  forget();
}

void Recorder::flush_alone() {
  if (rows_ == 0) return;
  times_.insert(times_.end(), {process_cpu_s() - cpu_since_s_, control_s_, own_s_});
  append(times_, times_, 1);
  forget();
}

void Recorder::append(const std::vector<double>& sums, const std::vector<double>& most, int ranks) const {
  const double mean_ns = 1e9 / ranks;
  std::string text = "{\"iterations\":{\"first\":" + std::to_string(first_) +
                     ",\"unix_s\":" + std::to_string(first_unix_s_) + ",\"phase\":" + std::to_string(phase_) +
                     ",\"processes\":" + std::to_string(ranks_.size) + ",\"ranks\":" + std::to_string(ranks) +
                     ",\"cpu_ns\":";
  add(text, sums[sums.size() - 3]);
  text += ",\"control_ns\":";
  add(text, sums[sums.size() - 2], mean_ns);
  text += ",\"own_ns\":";
  add(text, sums[sums.size() - 1], mean_ns);
  text += ",\"mean_ns\":";
  add_table(text, sums, rows_, columns(), mean_ns);
  text += ",\"most_ns\":";
  add_table(text, most, rows_, columns(), 1e9);
  line(text + "}}");
}

void Recorder::line(const std::string& text) const {
  if (path_.empty()) return;
  const std::string whole = text + "\n";
  // One write: ranks 0 of two groups may append at the same time.
  const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const bool written = file >= 0 && ::write(file, whole.data(), whole.size()) == static_cast<ssize_t>(whole.size());
  if (!written) fail("cannot write the record " + path_ + ": " + std::strerror(errno));
  ::close(file);
}

}  // namespace hocket::emulator
