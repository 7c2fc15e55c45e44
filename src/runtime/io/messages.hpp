// Messages under way, and what is to be done when each has arrived or left.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace hocket::runtime::io {

class Messages {
 public:
  // A rank may be an aggregator of another that is one of its own: what goes to an aggregator is not what comes from
  // one.
  enum class Way : std::uint8_t {
    to_aggregator = 1,
    from_aggregator,
    answer_even,
    answer_odd,
    from_leader,  // rank 0's words about a stop, and what it is told (brake.hpp)
    to_leader,
  };
  // Of the n-th answer of an aggregator to a rank: the next may be ready before it, but the one after the next may not.
  static Way answer(std::size_t n) { return n % 2 == 0 ? Way::answer_even : Way::answer_odd; }

  explicit Messages(MPI_Comm comm) : comm_(comm) {}

  // At most 2^31 - 1 bytes. A send is not done before its receive has begun: so nobody is sent more than he asked for.
  // Messages of one way between two processes arrive in their order. `done` is called by `poll`. `rank` of a receive
  // may be MPI_ANY_SOURCE.
  void send(Way way, const std::byte* bytes, std::int64_t count, int rank, std::function<void()> done);
  void receive(Way way, std::byte* bytes, std::int64_t count, int rank, std::function<void()> done);

  bool empty() const { return requests_.empty(); }
  bool failed() const { return failed_; }
  // Calls what is to be done for those that are over; true: there were some.
  bool poll();
  // Until none is under way. False: MPI failed.
  bool finish();

 private:
  void add(MPI_Request request, int rc, std::function<void()> done);

  MPI_Comm comm_;
  bool failed_ = false;
  std::vector<MPI_Request> requests_;
  std::vector<std::function<void()>> done_;
  std::vector<int> over_;
};

}  // namespace hocket::runtime::io
