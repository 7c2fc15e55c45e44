// One-sided transfer: each array of the source ranks is an MPI window, from which the destination ranks read with
// MPI_Rget. Source ranks need not take part while the data move.
#include "malleable/exchange.hpp"
#include "mpi_shim/pmpi.hpp"

namespace hocket::runtime {
namespace {

// One MPI window for each array, made collectively, and the epochs in which this rank reads.
class Windows final : public ArrayExchange {
 public:
  explicit Windows(bool lock_all) : lock_all_(lock_all) {}

  int post(MPI_Comm comm, std::span<const ArrayTransfer> arrays) override {
    arrays_ = arrays;
    for (const ArrayTransfer& array : arrays) {
      if (const int code = create(comm, array); code != MPI_SUCCESS) return code;
    }
    // All windows exist before the first read: making one blocks until all ranks are there.
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      if (const int code = get(windows_[i], arrays[i]); code != MPI_SUCCESS) return code;
    }
    return MPI_SUCCESS;
  }

  bool is_read_by_others() const override { return true; }

  int close() override {
    int code = MPI_SUCCESS;
    for (std::size_t i = 0; i < windows_.size() && code == MPI_SUCCESS; ++i) {
      code = unlock(windows_[i], arrays_[i]);
      if (code == MPI_SUCCESS) code = HOCKET_PMPI(Win_free)(&windows_[i]);
    }
    return code;
  }

 private:
  // Makes the window over this rank's part. The const_cast is safe, because no rank writes to the window.
  int create(MPI_Comm comm, const ArrayTransfer& array) {
    MPI_Win& window = windows_.emplace_back(mpi::no_window());
    const std::int64_t bytes = array.plan.before.count() * array.element_bytes;
    const int code =
        HOCKET_PMPI(Win_create)(const_cast<std::byte*>(array.from), bytes, 1, mpi::no_info(), comm, &window);
    return code == MPI_SUCCESS ? HOCKET_PMPI(Win_set_errhandler)(window, mpi::errors_return()) : code;
  }

  // Opens the epochs. No rank locks a window exclusively, so MPI_MODE_NOCHECK saves the lock's round trip.
  int lock(MPI_Win window, const ArrayTransfer& array) const {
    if (lock_all_) return HOCKET_PMPI(Win_lock_all)(MPI_MODE_NOCHECK, window);
    int code = MPI_SUCCESS;
    for (const redistribute::Message& m : array.plan.receives) {
      if (code == MPI_SUCCESS) code = HOCKET_PMPI(Win_lock)(MPI_LOCK_SHARED, m.peer, MPI_MODE_NOCHECK, window);
    }
    return code;
  }

  // Closes the epochs; all reads in them have ended before.
  int unlock(MPI_Win window, const ArrayTransfer& array) const {
    if (array.plan.receives.empty()) return MPI_SUCCESS;
    if (lock_all_) return HOCKET_PMPI(Win_unlock_all)(window);
    int code = MPI_SUCCESS;
    for (const redistribute::Message& m : array.plan.receives) {
      if (code == MPI_SUCCESS) code = HOCKET_PMPI(Win_unlock)(m.peer, window);
    }
    return code;
  }

  int get(MPI_Win window, const ArrayTransfer& array) {
    if (array.plan.receives.empty()) return MPI_SUCCESS;
    int code = lock(window, array);
    for (const redistribute::Message& m : array.plan.receives) {
      if (code != MPI_SUCCESS) return code;
      std::byte* to = received_to(array, m);
      // The window starts at the first element that the source rank holds.
      const MPI_Aint from = (m.elements.first - m.first_of_peer) * array.element_bytes;
      code = in_pieces(bytes_of(array, m), [&](std::int64_t at, int bytes) {
        return HOCKET_PMPI(Rget)(to + at, bytes, mpi::byte_type(), m.peer, from + at, bytes, mpi::byte_type(), window,
                                 &requests_.emplace_back(mpi::no_request()));
      });
    }
    return code;
  }

  bool lock_all_;
  std::span<const ArrayTransfer> arrays_;
  std::vector<MPI_Win> windows_;
};

}  // namespace

std::unique_ptr<ArrayExchange> rma_exchange(bool all) { return std::make_unique<Windows>(all); }

}  // namespace hocket::runtime
