// Repeats a call of a stage until the time of the stage is over.
#pragma once

#include <cstdint>

#include "emulator/batches.hpp"
#include "emulator/program/stage_run.hpp"
#include "emulator/shares.hpp"

namespace hocket::emulator {

class TimedCalls {
 public:
  // `together`: all ranks make the same number of calls, because these are collective. Else each looks at its own
  // clock.
  TimedCalls(const Stage& stage, const Shop& shop, bool together) : ranks_(shop.ranks), together_(together) {
    if (stage.ends_by_time) length_s_ = stage.time_s * factor_of(stage, shop.plan, shop.iteration, ranks_.size);
  }

  // False: the stage makes one call, however long it takes.
  bool are_timed() const { return length_s_ >= 0; }

  void begin() {
    begin_s_ = now_s();
    batches_.begin(length_s_);
  }

  // Returns how many calls follow; 0: the time is over. Collective if the calls are.
  std::int64_t next() {
    std::int64_t count = 0;
    if (!together_ || ranks_.rank == 0) count = batches_.next(now_s() - begin_s_);
    if (together_) MPI_Bcast(&count, 1, MPI_INT64_T, 0, ranks_.comm);
    return count;
  }

  // Ends the stage, whose length includes what it did after its last call.
  void end() { batches_.end(now_s() - begin_s_); }

 private:
  const Ranks ranks_;
  bool together_;
  double length_s_ = -1;  // below 0: no time ends the stage
  double begin_s_ = 0;
  Batches batches_;
};

}  // namespace hocket::emulator
