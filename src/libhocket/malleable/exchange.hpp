// Transfer methods of a redistribution: the messages or one-sided accesses that one rank has in flight. An
// implementation detail of redistribution.cpp and packing.hpp; no other file includes this header.
//
// All functions that return int return an MPI error code. Not thread-safe: one thread at a time.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace hocket::runtime {

// All bytes of an array that this rank sends to a peer, or receives from it.
struct SentMessage {
  int peer = 0;
  const std::byte* data = nullptr;
  std::int64_t bytes = 0;
};
struct ReceivedMessage {
  int peer = 0;
  std::byte* data = nullptr;
  std::int64_t bytes = 0;
};

// One array of this rank, in memory that stays in place until close().
struct ExchangedArray {
  const std::byte* sent = nullptr;  // memory that contains all that is sent
  std::int64_t sent_bytes = 0;
  std::byte* received = nullptr;          // start of the memory to which most of the received bytes go
  std::vector<SentMessage> sends;         // at most one to each peer
  std::vector<ReceivedMessage> receives;  // at most one from each peer
};

// One transfer of all arrays by one method; used once: post(), test() until it ends, close().
class ArrayExchange {
 public:
  virtual ~ArrayExchange() = default;

  // Starts all messages of this rank. Collective over `comm`. `arrays` and their memory must stay in place until
  // close().
  virtual int post(MPI_Comm comm, std::span<const ExchangedArray> arrays) = 0;

  // Sets `ended` if this rank's own messages have ended. Does not block.
  virtual int test(bool& ended);

  // True if other ranks may read this rank's memory after its own messages have ended.
  virtual bool is_read_by_others() const { return false; }

  // Frees the resources of post(). Call it after all of this rank's messages have ended; if is_read_by_others(), after
  // those of all ranks. Collective.
  virtual int close() = 0;

 protected:
  std::vector<MPI_Request> requests_;  // in flight; ArrayExchange::test() tests them all
};

// Make one exchange of each method: MPI_Alltoallv, point-to-point messages.
std::unique_ptr<ArrayExchange> collective_exchange();
std::unique_ptr<ArrayExchange> p2p_exchange();
// Makes a one-sided exchange, in which destination ranks read from the sources. `all` uses one epoch for all sources
// (MPI_Win_lock_all) instead of one for each.
std::unique_ptr<ArrayExchange> rma_exchange(bool all);

// Largest message in bytes: MPI's counts are int, and 1 GiB is enough for full speed.
inline constexpr std::int64_t largest_piece = std::int64_t{1} << 30;

// Calls `piece(offset, bytes)` for each chunk of a message of `bytes` bytes, until a call returns an error code.
template <class Piece>
int in_pieces(std::int64_t bytes, Piece piece) {
  int code = MPI_SUCCESS;
  for (std::int64_t at = 0; at < bytes && code == MPI_SUCCESS; at += largest_piece)
    code = piece(at, static_cast<int>(std::min(largest_piece, bytes - at)));
  return code;
}

}  // namespace hocket::runtime
