// One collective access by the exchange of data between ranks and aggregators. View-based: data travel without offsets,
// for aggregators know the views. List-based: with an offset list in front of each window's data.
//
// An aggregator has two windows under way: while a thread writes or reads one, the data of the other travel. Ranks of
// its node put their data into its window, or take them out of it, where they share memory: one copy. Memory is
// bounded: two windows, one more to change what is broken up, and messages under way of four windows in all.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "base/time.hpp"
#include "runtime/io/lists.hpp"
#include "runtime/io/local.hpp"
#include "runtime/io/messages.hpp"
#include "runtime/io/node_memory.hpp"
#include "runtime/io/plan.hpp"
#include "runtime/io/storage.hpp"

namespace hocket::runtime::io {

// What does not change from one access of a file to the next.
struct Team {
  void forget_windows();  // they are to have another size

  MPI_Comm comm;
  int rank = 0;
  int ranks = 1;
  std::vector<int> aggregators;      // their ranks
  std::int64_t window = 0;           // bytes
  std::unique_ptr<NodeMemory> node;  // none: this rank shares no memory with others
  // Of an aggregator that shares none, when they have been needed: its windows, and what they cover.
  std::array<std::unique_ptr<std::byte[]>, NodeMemory::slots> windows;
  std::array<std::unique_ptr<std::uint64_t[]>, NodeMemory::slots> coverage;
  std::unique_ptr<std::byte[]> scratch;  // a window, when it has been needed
  Storage storage;
  Worker worker;
  std::int64_t stoppable = 0;  // accesses so far that could be stopped: the same in all ranks
  Duration stood{};            // in the access of now, and counted as a wait; in rank 0 while all stood still
};

class Brake;

// What is known of the ranks' parts: of all of them in an aggregator, nothing in others.
struct Course {
  Grid grid;                              // the same in all ranks
  bool lists = false;                     // the same in all ranks
  std::vector<Participant> participants;  // view-based
  std::optional<Agenda> agenda;           // list-based
};

// Does the access. Collective. `brake`: where it may be stopped between two rounds; else nullptr. The first error of
// this process's own file accesses (errno); 0: none. What comes after one is still exchanged, so that nobody waits in
// vain, but no longer written.
int exchange(Team& team, const Local& local, Course course, Brake* brake);

// The access of a rank whose data are one run in the file, by itself; its rounds are windows of them.
int access_alone(Team& team, const Local& local, Brake* brake);

// The access of a rank in atomic mode, by itself: under a lock on all that it spans, so that it is as if the accesses
// of all ranks, and those of the MPI library, were made one after the other. Waits for the others' locks. It is not
// stopped on its way: who stood still would keep the lock, or be seen half done.
int access_locked(Team& team, const Local& local);

}  // namespace hocket::runtime::io
