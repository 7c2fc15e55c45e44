// Moves arrays from source ranks to destination ranks over the merged communicator (Proteo, section 4.2, "Data
// redistribution").
//
// One object moves one set of arrays. Collective over the merged communicator: all of its ranks start the same arrays
// in the same order with the same method and strategy. Data that stay in their process are copied too. Messages whose
// elements lie in several places are packed at the start, which needs memory for them at both ends. Not thread-safe;
// with Strategy::thread the object has a thread of its own between start() and finish().
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "malleable/methods.hpp"
#include "redistribute/plan.hpp"

namespace hocket::runtime {

// One array of this rank. The memory belongs to the caller, who must not touch it until finish() has returned, except
// to read `from`.
struct ArrayTransfer {
  const std::byte* from = nullptr;  // plan.before elements
  std::byte* to = nullptr;  // room for plan.after elements; may overlap `from` unless it would overwrite what is sent
  std::int64_t element_bytes = 0;
  redistribute::RedistributionPlan plan;
};

// A transfer in progress.
class Redistribution {
 public:
  // Begins to move the arrays. Errors are texts of MPI errors; `all` must have an error handler that returns. Except
  // for Strategy::blocking, the data move over a duplicate of `all`, so the caller may go on using `all`. Making the
  // duplicate, and the windows of the one-sided methods, blocks until every rank has called, but for nothing else.
  // Strategy::thread needs MPI_THREAD_MULTIPLE.
  static Result<std::unique_ptr<Redistribution>> start(MPI_Comm all, std::vector<ArrayTransfer> arrays, Method method,
                                                       Strategy strategy);
  virtual ~Redistribution() = default;

  // Makes progress. Returns true if the transfer is over for this rank, as the strategy defines it, or has failed
  // (finish() returns the error). Does not block; copies at most 1 MiB of the data that stay.
  virtual bool test() = 0;

  // Blocks, asleep where possible, until all data of this rank have arrived and `from` may be freed. Every rank calls
  // it once. In Strategy::wait_targets and the one-sided methods it also waits for the other ranks' data.
  virtual Status finish() = 0;
};

}  // namespace hocket::runtime
