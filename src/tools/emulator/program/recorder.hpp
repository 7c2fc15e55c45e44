// Records the times of iterations and stages, and writes them as lines of JSON (docs/emulate.md, "The record").
//
// Each rank keeps its times of some iterations. About every three seconds they are reduced to rank 0, which appends a
// line. A run that is interrupted so leaves all but the last of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/plan.hpp"
#include "emulator/program/stage_run.hpp"

namespace hocket::emulator {

class Recorder {
 public:
  // `path` "": nothing is written. It lives between MPI_Init and MPI_Finalize.
  Recorder(const EmulationPlan& plan, std::string path);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Begins with these ranks. Those that are new to the application reduce as often as the others.
  void settle(const Ranks& ranks) {
    ranks_ = ranks;
    flush_every_ = 1;
  }
  // Begins an iteration, behind a control point that began then. All ranks call the functions below for the same
  // iterations.
  void begin(std::int64_t iteration, std::size_t phase, double control_point_began_s);
  // Ends a stage that has begun when the one before ended, or the iteration began.
  void end_stage(std::size_t stage);
  // Ends the iteration, and may reduce. Collective.
  void end_iteration();
  // Reduces what is kept, and appends it. Collective.
  void flush();
  // Appends what this rank alone has kept, after the others have left. In rank 0 only.
  void flush_alone();
  // Drops what is kept.
  void forget();
  // Appends a line. In rank 0 only.
  void line(const std::string& text) const;

 private:
  std::size_t columns() const { return 1 + plan_.phases[phase_].stages.size(); }
  void append(const std::vector<double>& sums, const std::vector<double>& most, int ranks) const;

  const EmulationPlan& plan_;
  std::string path_;
  Ranks ranks_;
  MPI_Datatype pairs_ = MPI_DATATYPE_NULL;
  MPI_Op sum_and_most_ = MPI_OP_NULL;
  std::size_t phase_ = 0;
  std::int64_t first_ = 0;   // iteration of the first row
  double first_unix_s_ = 0;  // when it began
  std::int64_t rows_ = 0;
  std::int64_t flush_every_ = 1;     // iterations; the same in all ranks
  std::vector<double> times_;        // seconds: for each iteration its own, then those of its stages
  double begun_s_ = 0, last_s_ = 0;  // of the iteration; the end of the last stage, 0 before the first one

  double cpu_since_s_ = 0;
  double control_s_ = 0;  // in control points
  double own_s_ = 0;      // neither in stages nor in control points
};

double process_cpu_s();
double unix_s();

}  // namespace hocket::emulator
