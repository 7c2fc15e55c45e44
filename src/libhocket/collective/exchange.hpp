// Performs one collective access by exchanging data between ranks and aggregators (two-phase I/O). View-based: data
// travel without offsets, because aggregators know the views. List-based: an offset list precedes the data of each
// round.
//
// An aggregator has two collective buffers: while a thread writes or reads one, the data of the other travel. Ranks
// of its node copy their data straight into the buffer, or out of it, where they share memory: one copy. Memory is
// bounded by two collective buffers, one more for read-modify-write, and messages in flight worth four collective
// buffers in all.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "base/time.hpp"
#include "collective/messages.hpp"
#include "collective/node_memory.hpp"
#include "collective/storage.hpp"
#include "collective_plan/lists.hpp"
#include "collective_plan/plan.hpp"
#include "collective_plan/slow_aggregators.hpp"
#include "io_client/local.hpp"

namespace hocket::runtime::collective {

using namespace collective_plan;  // its terms are those of this room

using io_client::bytes_at;
using io_client::Local;
using io_client::run_of;

// State of a file that persists from one access to the next. One per CollectiveFile; used by one thread at a time, but
// for `storage` and `worker`.
struct Team {
  void forget_windows();  // frees the collective buffers, whose size is to change

  MPI_Comm comm;
  int rank = 0;
  int ranks = 1;
  std::vector<int> aggregators;      // their ranks, ascending
  AggregatorWork work;               // of this rank in this access; the worker counts it
  std::int64_t window = 0;           // bytes of a collective buffer
  std::unique_ptr<NodeMemory> node;  // nullptr: this rank shares no memory with others
  // Private collective buffers and coverage of an aggregator without shared memory; allocated when first needed.
  std::array<std::unique_ptr<std::byte[]>, NodeMemory::slots> windows;
  std::array<std::unique_ptr<std::uint64_t[]>, NodeMemory::slots> coverage;
  std::unique_ptr<std::byte[]> scratch;  // for read-modify-write: one collective buffer, allocated when first needed
  Storage storage;
  Worker worker;
  std::int64_t stoppable = 0;  // accesses so far that could be suspended; the same in all ranks
  Duration stood{};            // suspended in this access and counted as a wait; rank 0: while all were suspended
};

class Brake;

// Description of one access: who has which data in which round. An aggregator knows all ranks' data; other ranks know
// only the grid.
struct CollectiveAccess {
  Grid grid;                              // the same in all ranks
  bool lists = false;                     // the same in all ranks
  std::vector<Participant> participants;  // view-based
  std::optional<Agenda> agenda;           // list-based
};

// Performs the access. Collective over the file's ranks. `brake` is nullptr, or allows a suspension between two
// rounds. Returns the first errno of this process's own file accesses, or 0. After an error the data are still
// exchanged, so that no rank waits for ever, but no longer written.
int exchange(Team& team, const Local& local, CollectiveAccess course, Brake* brake);

// Performs the access of a rank whose data are one contiguous run of the file, without any exchange. Its rounds are
// extents of the size of a collective buffer. Returns errno or 0. Collective only where `brake` is given.
int access_alone(Team& team, const Local& local, Brake* brake);

// Performs the access of a rank in MPI's atomic mode, without any exchange, under a lock on the whole extent of its
// data. The effect is as if the accesses of all ranks, and those of the MPI library, were made one after the other.
// Blocks while other processes hold the lock. The access cannot be suspended: it would keep the lock, or be seen half
// done.
int access_locked(Team& team, const Local& local);

}  // namespace hocket::runtime::collective
