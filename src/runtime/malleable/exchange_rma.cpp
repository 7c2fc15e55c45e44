// One-sided: each array of the sources is a window, from which the targets get what they need.
#include "runtime/malleable/exchange.hpp"
#include "runtime/mpi/pmpi.hpp"

namespace hocket::runtime {
namespace {

class Windows final : public Exchange {
 public:
  explicit Windows(bool lock_all) : lock_all_(lock_all) {}

  int post(MPI_Comm comm, std::span<const Transfer> arrays) override {
    arrays_ = arrays;
    for (const Transfer& array : arrays) {
      if (const int code = create(comm, array); code != MPI_SUCCESS) return code;
    }
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
  // MPI writes nothing to a window that is only read.
  int create(MPI_Comm comm, const Transfer& array) {
    MPI_Win& window = windows_.emplace_back(mpi::no_window());
    const std::int64_t bytes = array.plan.before.count() * array.element_bytes;
    const int code =
        HOCKET_PMPI(Win_create)(const_cast<std::byte*>(array.from), bytes, 1, mpi::no_info(), comm, &window);
    return code == MPI_SUCCESS ? HOCKET_PMPI(Win_set_errhandler)(window, mpi::errors_return()) : code;
  }

  // Nobody locks a window for itself alone, so no lock need be asked for.
  int lock(MPI_Win window, const Transfer& array) const {
    if (lock_all_) return HOCKET_PMPI(Win_lock_all)(MPI_MODE_NOCHECK, window);
    int code = MPI_SUCCESS;
    for (const redistribute::Message& m : array.plan.receives) {
      if (code == MPI_SUCCESS) code = HOCKET_PMPI(Win_lock)(MPI_LOCK_SHARED, m.peer, MPI_MODE_NOCHECK, window);
    }
    return code;
  }

  int unlock(MPI_Win window, const Transfer& array) const {
    if (array.plan.receives.empty()) return MPI_SUCCESS;
    if (lock_all_) return HOCKET_PMPI(Win_unlock_all)(window);
    int code = MPI_SUCCESS;
    for (const redistribute::Message& m : array.plan.receives) {
      if (code == MPI_SUCCESS) code = HOCKET_PMPI(Win_unlock)(m.peer, window);
    }
    return code;
  }

  int get(MPI_Win window, const Transfer& array) {
    if (array.plan.receives.empty()) return MPI_SUCCESS;
    int code = lock(window, array);
    for (const redistribute::Message& m : array.plan.receives) {
      if (code != MPI_SUCCESS) return code;
      std::byte* to = received_to(array, m);
      const MPI_Aint from = (m.elements.first - m.first_of_peer) * array.element_bytes;
      code = in_pieces(bytes_of(array, m), [&](std::int64_t at, int bytes) {
        return HOCKET_PMPI(Rget)(to + at, bytes, mpi::byte_type(), m.peer, from + at, bytes, mpi::byte_type(), window,
                                 &requests_.emplace_back(mpi::no_request()));
      });
    }
    return code;
  }

  bool lock_all_;
  std::span<const Transfer> arrays_;
  std::vector<MPI_Win> windows_;
};

}  // namespace

std::unique_ptr<Exchange> rma_exchange(bool all) { return std::make_unique<Windows>(all); }

}  // namespace hocket::runtime
