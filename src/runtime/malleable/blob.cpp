#include "runtime/malleable/blob.hpp"

#include "runtime/mpi/calls.hpp"

namespace hocket::runtime {

bool Blob::broadcast(MPI_Comm comm, int root) {
  std::int64_t size = static_cast<std::int64_t>(bytes_.size());
  if (!mpi::broadcast(comm, root, &size, sizeof size)) return false;
  bytes_.resize(static_cast<std::size_t>(size));
  read_ = 0;
  return mpi::broadcast(comm, root, bytes_.data(), size);
}

}  // namespace hocket::runtime
