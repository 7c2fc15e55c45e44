// Shared memory of the ranks of one file on one node. Through it, data move between a rank and an aggregator with one
// copy, and ranks exchange short messages without MPI. A rank that waits sleeps on a futex until another rank wakes it.
//
// The memory is a segment of one rank, which the others open through /proc; it ends with the last of these processes,
// however they end. Where that is impossible (different users or PID namespaces), nothing is shared, and MPI messages
// do the same work. A process uses a NodeMemory from one thread at a time.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transport/staging.hpp"

namespace hocket::runtime::collective {

// Returns a number for the node of each rank, equal for ranks of one node. Two processes count as being on one node if
// they see each other's process ids. Collective over `comm`; if MPI fails, all are on one node.
std::vector<std::int64_t> node_numbers(MPI_Comm comm);

// The segment as this rank maps it: collective buffers with their gates and coverage, posts, wake-up counters and
// boards for tell_all(). Ranks passed to its functions are ranks of the communicator.
class NodeMemory {
 public:
  static constexpr int slots = 2;                 // collective buffers of an aggregator
  static constexpr std::size_t word_bytes = 192;  // largest message of tell_all()

  // State of one collective buffer, by which ranks know when to move their data into it or out of it.
  struct Gate {
    static constexpr std::int64_t closed = -1;
    std::atomic<std::int64_t> open;     // round whose data may be moved, or `closed`
    std::atomic<std::int64_t> arrived;  // ranks that have moved their data of this round
    std::int64_t origin;                // file offset of the buffer's first byte; valid while the gate is open
    std::int64_t end;                   // file offset behind its last byte
  };

  // The last stop message of a rank during an access (brake.hpp), for the other ranks of the node to read.
  struct Post {
    std::atomic<std::int64_t> stamp;  // access, number and kind of the message; stored after `round`
    std::atomic<std::int64_t> round;  // of the message
    std::atomic<std::int64_t> bytes;  // stored or read so far by this rank as an aggregator
  };

  // Makes the shared memory of this rank's node. Collective over `comm`, which must outlive the object. `aggregators`
  // lists their ranks; `window` is the size of a collective buffer in bytes. Returns nullptr if no other rank of the
  // communicator is on this node, or if its processes cannot share memory.
  static std::unique_ptr<NodeMemory> make(MPI_Comm comm, const std::vector<int>& aggregators, std::int64_t window);
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  // True if the rank maps this memory.
  bool shares(int rank) const { return position_[static_cast<std::size_t>(rank)] >= 0; }
  // True if every rank of the communicator maps it.
  bool has_all() const { return has_all_; }

  // Return the gate, the bytes and the coverage of a collective buffer. Precondition: `rank` is an aggregator that
  // shares this memory, and 0 <= slot < slots. Coverage has one bit for each byte of the buffer.
  Gate& gate(int rank, int slot) const;
  std::byte* window(int rank, int slot) const;
  std::uint64_t* coverage(int rank, int slot) const;

  // Precondition: shares(rank).
  Post& post(int rank) const;

  // Wakes the rank; if it is not asleep, its next sleep() returns at once. Precondition: shares(rank).
  void ring(int rank);
  // Returns how often this rank was woken so far. Read it before looking for work, and pass it to sleep().
  std::uint32_t heard() const;
  void sleep(std::uint32_t heard);  // until woken once more than `heard`, or for 1 ms; then lets MPI make progress

  // Gathers one message of each rank into `all`, in the order of ranks. All messages have the same size, at most
  // word_bytes. Collective over the ranks that share this memory; blocks until all have called. Precondition:
  // has_all().
  void tell_all(std::span<const std::byte> own, std::span<std::byte> all);

 private:
  struct SegmentHeader;
  struct Bell;

  NodeMemory(MPI_Comm comm, std::int64_t window) : comm_(comm), window_(window) {}
  bool share(std::vector<int> members, const std::vector<int>& aggregators);
  std::byte* memory() const { return segment_->bytes().data(); }
  std::size_t bytes() const;
  SegmentHeader& header() const;
  Bell& bell(int position) const;
  std::byte* word(std::uint32_t board, int position) const;
  std::size_t posts_at() const;
  std::size_t gates_at() const;
  std::size_t windows_at() const;
  std::size_t window_stride() const;
  std::size_t index_of(int rank, int slot) const;  // of a collective buffer

  MPI_Comm comm_;
  std::int64_t window_;
  bool has_all_ = false;
  int own_ = 0;                  // position of this rank among the members
  int members_ = 0;              // ranks that share the memory
  std::vector<int> position_;    // by rank: its position among the members; -1: it does not share
  std::vector<int> aggregator_;  // by rank: its position among the aggregators that share; -1: none of them
  int aggregators_ = 0;
  std::shared_ptr<transport::SharedSegment> segment_;
  std::uint32_t told_ = 0;  // calls of tell_all()
};

}  // namespace hocket::runtime::collective
