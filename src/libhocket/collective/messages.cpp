#include "collective/messages.hpp"

#include <algorithm>
#include <utility>

#include "mpi_shim/calls.hpp"

namespace hocket::runtime::collective {

void Messages::send(Way way, const std::byte* bytes, std::int64_t count, int rank, std::function<void()> done) {
  MPI_Request request = mpi::no_request();
  const int rc = HOCKET_PMPI(Issend)(bytes, static_cast<int>(count), mpi::byte_type(), rank, static_cast<int>(way),
                                     comm_, &request);
  add(request, rc, std::move(done));
}

void Messages::receive(Way way, std::byte* bytes, std::int64_t count, int rank, std::function<void()> done) {
  MPI_Request request = mpi::no_request();
  const int rc = HOCKET_PMPI(Irecv)(bytes, static_cast<int>(count), mpi::byte_type(), rank, static_cast<int>(way),
                                    comm_, &request);
  add(request, rc, std::move(done));
}

void Messages::receive_from_any(Way way, std::span<std::byte> memory, std::function<void()> done) {
  expected_ = Expected{way, memory, std::move(done)};
}

void Messages::look_for_expected() {
  if (!expected_) return;
  MPI_Request request = mpi::no_request();
  failed_ |= !mpi::receive_from_any(comm_, static_cast<int>(expected_->way), expected_->memory, request);
  if (request == mpi::no_request()) return;
  add(request, MPI_SUCCESS, std::move(expected_->done));
  expected_.reset();
}

void Messages::add(MPI_Request request, int rc, std::function<void()> done) {
  failed_ |= rc != MPI_SUCCESS;
  requests_.push_back(request);
  done_.push_back(std::move(done));
}

bool Messages::poll() {
  look_for_expected();
  if (requests_.empty()) return false;
  int count = 0;
  over_.resize(requests_.size());
  if (HOCKET_PMPI(Testsome)(static_cast<int>(requests_.size()), requests_.data(), &count, over_.data(),
                            MPI_STATUSES_IGNORE) != MPI_SUCCESS) {
    failed_ = true;
    return false;
  }
  if (count == 0 || count == MPI_UNDEFINED) return false;
  std::sort(over_.begin(), over_.begin() + count);  // callbacks run in the order of the calls
  // Callbacks are moved out first, because they may begin further messages, which changes both vectors.
  std::vector<std::function<void()>> now;
  now.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) now.push_back(std::move(done_[static_cast<std::size_t>(over_[i])]));
  std::erase_if(done_, [](const auto& done) { return !done; });
  std::erase(requests_, mpi::no_request());
  for (const std::function<void()>& done : now) done();
  return true;
}

bool Messages::finish() {
  for (mpi::Patience patience = mpi::Patience::for_data(); !empty() && !failed();)
    if (!poll()) patience.pause();
  return !failed();
}

}  // namespace hocket::runtime::collective
