// Memory that the processes of a file on one node share: through it data go between a rank and an aggregator with one
// copy, and short words between all, without a message; who waits sleeps until it is rung.
//
// It is a segment of one of them, which the others open through /proc: it ends with the last of them, however they end.
// Where that cannot be done (other users, other namespaces of process numbers), nothing is shared, and messages do the
// same.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transport/staging.hpp"

namespace hocket::runtime::io {

// On how many nodes the processes are: as many as cannot see each other's processes. Collective; 1 where MPI fails.
int count_nodes(MPI_Comm comm);

class NodeMemory {
 public:
  static constexpr int slots = 2;                 // windows of an aggregator
  static constexpr std::size_t word_bytes = 128;  // of `tell_all`, at most

  // A window of an aggregator, as the ranks see it that move data of it.
  struct Gate {
    static constexpr std::int64_t closed = -1;
    std::atomic<std::int64_t> open;     // round whose data may be moved; or closed
    std::atomic<std::int64_t> arrived;  // ranks that have moved theirs
    std::int64_t origin;                // offset in the file of the window's first byte, while it is open
    std::int64_t end;                   // behind its last byte
  };

  // What a rank says to others while an access is under way: its last word (brake.hpp).
  struct Post {
    std::atomic<std::int64_t> stamp;  // which word, of which access: written last
    std::atomic<std::int64_t> round;
    std::atomic<std::int64_t> bytes;
  };

  // Collective over `comm`. `aggregators`: their ranks; `window`: bytes. None where this rank's node has nobody else of
  // the communicator, or its processes cannot share.
  static std::unique_ptr<NodeMemory> make(MPI_Comm comm, const std::vector<int>& aggregators, std::int64_t window);
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  bool shares(int rank) const { return position_[static_cast<std::size_t>(rank)] >= 0; }
  bool has_all() const { return has_all_; }

  // Of an aggregator (its rank) that shares. Coverage has one bit for each byte of the window.
  Gate& gate(int rank, int slot) const;
  std::byte* window(int rank, int slot) const;
  std::uint64_t* coverage(int rank, int slot) const;

  // Of a rank that shares.
  Post& post(int rank) const;

  // Wakes a rank that shares, or lets its next sleep be none.
  void ring(int rank);
  // How often this rank was rung; and a sleep until it is rung once more than `heard`, or some time is over, so that
  // what others wait for in MPI goes on.
  std::uint32_t heard() const;
  void sleep(std::uint32_t heard);

  // All ranks' words, of the same size at each rank, in the order of ranks. Collective over those who share.
  // Precondition: has_all().
  void tell_all(std::span<const std::byte> own, std::span<std::byte> all);

 private:
  struct Header;
  struct Bell;

  NodeMemory(MPI_Comm comm, std::int64_t window) : comm_(comm), window_(window) {}
  bool share(std::vector<int> members, const std::vector<int>& aggregators);
  std::byte* memory() const { return segment_->bytes().data(); }
  std::size_t bytes() const;
  Header& header() const;
  Bell& bell(int position) const;
  std::byte* word(std::uint32_t board, int position) const;
  std::size_t posts_at() const;
  std::size_t gates_at() const;
  std::size_t windows_at() const;
  std::size_t window_stride() const;
  std::size_t index_of(int rank, int slot) const;  // of a window

  MPI_Comm comm_;
  std::int64_t window_;
  bool has_all_ = false;
  int own_ = 0;  // position of this rank
  int members_ = 0;
  std::vector<int> position_;    // by rank, among those who share; -1: not
  std::vector<int> aggregator_;  // by rank, among the aggregators who share; -1: not
  int aggregators_ = 0;
  std::shared_ptr<transport::Segment> segment_;
  std::uint32_t told_ = 0;  // times of tell_all
};

}  // namespace hocket::runtime::io
