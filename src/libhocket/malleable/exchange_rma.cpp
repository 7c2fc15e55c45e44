// One-sided transfer: each array of the source ranks is an MPI window, from which the destination ranks read with
// MPI_Rget. Source ranks need not take part while the data move.
#include "malleable/exchange.hpp"
#include "mpi_shim/calls.hpp"

namespace hocket::runtime {
namespace {

// One MPI window for each array, made collectively, and the epochs in which this rank reads.
class Windows final : public ArrayExchange {
 public:
  explicit Windows(bool lock_all) : lock_all_(lock_all) {}

  int post(MPI_Comm comm, std::span<const ExchangedArray> arrays) override {
    arrays_ = arrays;
    for (const ExchangedArray& array : arrays) {
      if (const int code = create(comm, array); code != MPI_SUCCESS) return code;
    }
    // All windows exist before the first read: making one blocks until all ranks are there.
    int code = exchange_places(comm);
    for (std::size_t i = 0; i < arrays.size() && code == MPI_SUCCESS; ++i) code = get(i);
    return code;
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
  int create(MPI_Comm comm, const ExchangedArray& array) {
    MPI_Win& window = windows_.emplace_back(mpi::no_window());
    const int code =
        HOCKET_PMPI(Win_create)(const_cast<std::byte*>(array.sent), array.sent_bytes, 1, mpi::no_info(), comm, &window);
    return code == MPI_SUCCESS ? HOCKET_PMPI(Win_set_errhandler)(window, mpi::errors_return()) : code;
  }

  // Gives each destination rank the place of its message in each window of this rank. Collective.
  int exchange_places(MPI_Comm comm) {
    const auto ranks = static_cast<std::size_t>(mpi::size_of(comm));
    const std::size_t arrays = arrays_.size();
    std::vector<std::int64_t> own(ranks * arrays);
    for (std::size_t i = 0; i < arrays; ++i)
      for (const SentMessage& m : arrays_[i].sends)
        own[static_cast<std::size_t>(m.peer) * arrays + i] = m.data - arrays_[i].sent;
    places_.resize(own.size());
    const int bytes = static_cast<int>(arrays * sizeof(std::int64_t));
    return HOCKET_PMPI(Alltoall)(own.data(), bytes, mpi::byte_type(), places_.data(), bytes, mpi::byte_type(), comm);
  }

  // Opens the epochs. No rank locks a window exclusively, so MPI_MODE_NOCHECK saves the lock's round trip.
  int lock(MPI_Win window, const ExchangedArray& array) const {
    if (lock_all_) return HOCKET_PMPI(Win_lock_all)(MPI_MODE_NOCHECK, window);
    int code = MPI_SUCCESS;
    for (const ReceivedMessage& m : array.receives) {
      if (code == MPI_SUCCESS) code = HOCKET_PMPI(Win_lock)(MPI_LOCK_SHARED, m.peer, MPI_MODE_NOCHECK, window);
    }
    return code;
  }

  // Closes the epochs; all reads in them have ended before.
  int unlock(MPI_Win window, const ExchangedArray& array) const {
    if (array.receives.empty()) return MPI_SUCCESS;
    if (lock_all_) return HOCKET_PMPI(Win_unlock_all)(window);
    int code = MPI_SUCCESS;
    for (const ReceivedMessage& m : array.receives) {
      if (code == MPI_SUCCESS) code = HOCKET_PMPI(Win_unlock)(m.peer, window);
    }
    return code;
  }

  int get(std::size_t index) {
    const ExchangedArray& array = arrays_[index];
    MPI_Win window = windows_[index];
    if (array.receives.empty()) return MPI_SUCCESS;
    int code = lock(window, array);
    for (const ReceivedMessage& m : array.receives) {
      if (code != MPI_SUCCESS) return code;
      const MPI_Aint from = places_[static_cast<std::size_t>(m.peer) * arrays_.size() + index];
      code = in_pieces(m.bytes, [&](std::int64_t at, int bytes) {
        return HOCKET_PMPI(Rget)(m.data + at, bytes, mpi::byte_type(), m.peer, from + at, bytes, mpi::byte_type(),
                                 window, &requests_.emplace_back(mpi::no_request()));
      });
    }
    return code;
  }

  bool lock_all_;
  std::span<const ExchangedArray> arrays_;
  std::vector<MPI_Win> windows_;
  std::vector<std::int64_t> places_;  // of this rank's message in the window of each source rank and array
};

}  // namespace

std::unique_ptr<ArrayExchange> rma_exchange(bool all) { return std::make_unique<Windows>(all); }

}  // namespace hocket::runtime
