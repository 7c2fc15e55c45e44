// What a process does in each stage of the plan. Stages are made anew when the communicator changes.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "emulator/plan.hpp"
#include "emulator/program/kernels.hpp"

namespace hocket::emulator {

// The computing processes, and this one of them.
struct Ranks {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0;
  int size = 0;
};

// Prints one line, and ends the job: the ranks cannot agree on anything any more.
[[noreturn]] void fail(const std::string& text);

// Memory that stages share, so that a process needs no more than its largest message or access.
struct Scratch {
  std::vector<char> sent, received;
  void grow(std::int64_t sent_bytes, std::int64_t received_bytes);
};

class StageRun {
 public:
  StageRun() = default;
  virtual ~StageRun() = default;
  StageRun(const StageRun&) = delete;
  StageRun& operator=(const StageRun&) = delete;
  // Does the stage once. `iteration` counts from the start of the run; `before`: how often the stage has taken place.
  // Collective over the ranks, except for stages that only compute or sleep.
  virtual void run(std::int64_t iteration, std::int64_t before) = 0;
};

// What the stages of a process have in common.
struct Shop {
  const EmulationPlan& plan;
  std::string directory;
  Ranks ranks;
  std::int64_t iteration = 0;  // with which these ranks begin
  Scratch scratch;
  std::map<std::pair<Kind, std::int64_t>, std::unique_ptr<Kernel>> kernels;  // kept over resizes, by granularity
  // CPU time when the last stage ended; -1: none has ended since the ranks changed. A stage that ends by CPU time
  // counts from here, as a capture does from one call to the next, so control points and this program's own work are
  // part of it.
  double ended_cpu_s = -1;
};

// `number`: of the stage in the plan. `waited`: the stage that a wait completes.
std::unique_ptr<StageRun> make_computing(const Stage& stage, std::size_t number, Shop& shop);
std::unique_ptr<StageRun> make_message(const Stage& stage, std::size_t number, Shop& shop);
std::unique_ptr<StageRun> make_wait(StageRun& waited);
std::unique_ptr<StageRun> make_access(const Stage& stage, std::size_t number, Shop& shop);

// Makes the file that a stage reads, if it is too short. Local; the caller waits for the other ranks.
void make_file_to_read(const Stage& stage, std::size_t number, const Shop& shop);

}  // namespace hocket::emulator
