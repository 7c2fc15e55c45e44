// One collective access by the exchange of data between ranks and aggregators: view-based, so that data travel without
// offsets, for aggregators know the views.
//
// An aggregator has two windows under way: while a thread writes or reads one, the data of the other travel. Memory is
// bounded: two windows, one more to change what is broken up, and pieces under way of four windows in all.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "layout/copy.hpp"
#include "runtime/io/messages.hpp"
#include "runtime/io/plan.hpp"
#include "runtime/io/storage.hpp"

namespace hocket::runtime::io {

// What does not change from one access of a file to the next.
struct Team {
  MPI_Comm comm;
  int rank = 0;
  std::vector<int> aggregators;  // their ranks
  std::int64_t window = 0;       // bytes
  // Of an aggregator: two windows and a scratch window, when they have been needed.
  std::array<std::unique_ptr<std::byte[]>, 3> buffers;
  Storage storage;
  Worker worker;
};

// This rank's part of the access. Data of the memory correspond to those of the view from `data.first` on.
struct Local {
  bool writes = false;
  layout::View view;
  Interval data;
  layout::Layout memory;
  std::byte* buffer = nullptr;
};

// Does the access, of which all ranks know the same grid. `participants`: of all ranks, in an aggregator. Collective.
// The first error of this process's own file accesses (errno); 0: none. What comes after one is still exchanged, so
// that nobody waits in vain, but no longer written.
int exchange(Team& team, const Local& local, const Grid& grid, const std::vector<Participant>& participants);

// The access of a rank whose data are one run in the file, by itself.
int access_alone(Team& team, const Local& local);

}  // namespace hocket::runtime::io
