// Moves arrays from sources to targets over their union (Proteo, section 4.2, "Data redistribution").
//
// One object for each set of arrays that moves at once. Collective over the union: all of its ranks start the same
// arrays in the same order with the same method and strategy. What is kept is copied too. Not thread-safe; with
// Strategy::thread it has a thread of its own between `start` and `finish`.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "redistribute/plan.hpp"

namespace hocket::runtime {

enum class Method { collective, p2p, rma_lock, rma_lock_all };

// blocking: `start` returns when all has arrived here. wait_sources: over for a source when what it sends has been sent
// and what it receives has come. wait_targets: over when every target has everything. thread: as blocking, in a thread.
enum class Strategy { blocking, wait_sources, wait_targets, thread };

// One array of this rank. The memory stays the caller's, who leaves it alone until `finish` has returned, but for
// reading `from`.
struct Transfer {
  const std::byte* from = nullptr;  // the elements of plan.before
  std::byte* to = nullptr;          // room for plan.after; may overlap `from` where nothing that is sent comes to lie
  std::int64_t element_bytes = 0;
  redistribute::Plan plan;
};

class Redistribution {
 public:
  // Begins to move the arrays. Errors are the MPI's, in words, where `all` returns errors. But for Strategy::blocking
  // the data move over a duplicate of `all`, so the caller may go on using `all`; making that, and the windows of the
  // one-sided methods, waits until every rank is here, and for nothing else. Strategy::thread needs
  // MPI_THREAD_MULTIPLE.
  static Result<std::unique_ptr<Redistribution>> start(MPI_Comm all, std::vector<Transfer> arrays, Method method,
                                                       Strategy strategy);
  virtual ~Redistribution() = default;

  // Makes progress. True: it is over for this rank, as the strategy says, or has failed, as `finish` then tells. Waits
  // for nothing; copies at most 1 MiB of what is kept.
  virtual bool test() = 0;

  // Waits, asleep where it can, until all of this rank's data have come and its `from` may be freed. Once, by every
  // rank: in Strategy::wait_targets and the one-sided methods it waits for the others' data too.
  virtual Status finish() = 0;
};

// By the names in HOCKET_REDISTRIBUTION and HOCKET_REDISTRIBUTION_STRATEGY; nothing for an unknown one.
struct Names {
  static std::string_view of(Method method);
  static std::string_view of(Strategy strategy);
};

}  // namespace hocket::runtime
