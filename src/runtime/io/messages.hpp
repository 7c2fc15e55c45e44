// Messages under way, and what is to be done when each has arrived or left.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace hocket::runtime::io {

class Messages {
 public:
  explicit Messages(MPI_Comm comm) : comm_(comm) {}

  // At most 2^31 - 1 bytes. A send is not done before its receive has begun: so nobody is sent more than he asked for.
  // Messages between two processes arrive in their order. `done` is called by `poll`.
  void send(const std::byte* bytes, std::int64_t count, int rank, std::function<void()> done);
  void receive(std::byte* bytes, std::int64_t count, int rank, std::function<void()> done);

  bool empty() const { return requests_.empty(); }
  bool failed() const { return failed_; }
  // Calls what is to be done for those that are over; true: there were some.
  bool poll();

 private:
  void add(MPI_Request request, int rc, std::function<void()> done);

  MPI_Comm comm_;
  bool failed_ = false;
  std::vector<MPI_Request> requests_;
  std::vector<std::function<void()>> done_;
  std::vector<int> over_;
};

}  // namespace hocket::runtime::io
