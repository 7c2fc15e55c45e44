#include "malleable/blob.hpp"

#include "mpi_shim/calls.hpp"

namespace hocket::runtime {

// The function is not in the header: inlined, g++ 12 warns of an overflow that does not exist.
void Blob::append(const void* begin, std::size_t count) {
  const auto* first = static_cast<const std::byte*>(begin);
  bytes_.insert(bytes_.end(), first, first + count);
}

bool Blob::broadcast(MPI_Comm comm, int root) {
  std::int64_t size = static_cast<std::int64_t>(bytes_.size());
  if (!mpi::broadcast(comm, root, &size, sizeof size)) return false;
  bytes_.resize(static_cast<std::size_t>(size));
  read_ = 0;
  return mpi::broadcast(comm, root, bytes_.data(), size);
}

}  // namespace hocket::runtime
