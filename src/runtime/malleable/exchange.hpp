// What one method has under way for one redistribution. Inside of redistribution.cpp: nobody else includes this.
//
// All functions give an MPI error code. Not thread-safe: one thread at a time.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/malleable/redistribution.hpp"

namespace hocket::runtime {

class Exchange {
 public:
  virtual ~Exchange() = default;

  // Starts all that this rank sends and gets. Collective over `comm`. The arrays stay where they are until `close`.
  virtual int post(MPI_Comm comm, std::span<const Transfer> arrays) = 0;

  // Whether what was posted here has ended. Waits for nothing.
  virtual int test(bool& ended);

  // Whether others may still read this rank's memory when its own operations have ended.
  virtual bool is_read_by_others() const { return false; }

  // Gives back what `post` took, after all of this rank's operations have ended, and where the others read its memory,
  // after theirs have too. Collective.
  virtual int close() = 0;

 protected:
  std::vector<MPI_Request> requests_;
};

std::unique_ptr<Exchange> collective_exchange();
std::unique_ptr<Exchange> p2p_exchange();
// One-sided: the targets get what they need. `all`: one epoch for all sources instead of one for each.
std::unique_ptr<Exchange> rma_exchange(bool all);

// MPI's counts are int, and 1 GiB in one message is enough for full speed.
inline constexpr std::int64_t largest_piece = std::int64_t{1} << 30;

// Calls `piece(offset, bytes)`, which gives an error code, for pieces of a message of `bytes` bytes, until one fails.
template <class Piece>
int in_pieces(std::int64_t bytes, Piece piece) {
  int code = MPI_SUCCESS;
  for (std::int64_t at = 0; at < bytes && code == MPI_SUCCESS; at += largest_piece)
    code = piece(at, static_cast<int>(std::min(largest_piece, bytes - at)));
  return code;
}

// Where the elements of a message begin in the memory of this rank.
inline const std::byte* sent_from(const Transfer& array, const redistribute::Message& message) {
  return array.from + (message.elements.first - array.plan.before.first) * array.element_bytes;
}
inline std::byte* received_to(const Transfer& array, const redistribute::Message& message) {
  return array.to + (message.elements.first - array.plan.after.first) * array.element_bytes;
}
inline std::int64_t bytes_of(const Transfer& array, const redistribute::Message& message) {
  return message.elements.count() * array.element_bytes;
}

}  // namespace hocket::runtime
