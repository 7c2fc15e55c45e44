// Decides how often a message or an access is repeated until its time is over. Pure.
//
// Ranks that measured the time by themselves would disagree on the last repetition, and a collective one would hang. So
// rank 0 decides, and broadcasts batches of repetitions until the time is over: few, because a broadcast takes time as
// well.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace hocket::emulator {

class Batches {
 public:
  // Begins a stage of this length. What the stages before lasted too long or too short is made up for, up to one
  // length, so that a message which is longer than its time is not repeated for nothing.
  void begin(double length_s) {
    wanted_s_ = length_s + std::clamp(owed_s_, -length_s, length_s);
    done_ = 0;
  }

  // Returns the number of repetitions of the next batch; 0: the stage is over. `spent_s`: since begin().
  std::int64_t next(double spent_s) {
    if (done_ > 0) each_s_ = spent_s / static_cast<double>(done_);
    const double left_s = wanted_s_ - spent_s;
    std::int64_t count = 0;
    if (left_s > each_s_ / 2) {
      // Half of what is left: the time of a repetition varies. Batches grow slowly, as it may have changed since the
      // stage before.
      const std::int64_t half = each_s_ > 0 ? std::llround(std::min(left_s / each_s_ / 2, 1e15)) : 1;
      count = std::clamp<std::int64_t>(half, 1, std::max<std::int64_t>(1, 4 * done_));
    }
    if (count == 0) owed_s_ = left_s;
    done_ += count;
    return count;
  }

  // Ends a stage that lasts beyond its last batch, for example because it closes a file. `spent_s`: since begin().
  void end(double spent_s) { owed_s_ = wanted_s_ - spent_s; }

 private:
  double wanted_s_ = 0;
  double owed_s_ = 0;      // by the stages before
  double each_s_ = 0;      // of one repetition; 0: unknown
  std::int64_t done_ = 0;  // repetitions of this stage, with those of the batch under way
};

}  // namespace hocket::emulator
