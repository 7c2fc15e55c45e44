// MPI messages in flight, each with a callback that runs when it has arrived or left. Used by one thread at a time,
// within one access; callbacks run inside poll() or finish(), in that thread, and may send and receive further
// messages.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace hocket::runtime::collective {

// A set of nonblocking sends and receives on one communicator, which must outlive it.
class Messages {
 public:
  // Message tag. A rank and an aggregator may each be the other's aggregator too, so each direction has tags of its
  // own.
  enum class Way : std::uint8_t {
    to_aggregator = 1,
    from_aggregator,
    answer_even,
    answer_odd,
    from_leader,  // rank 0's stop messages, and the answers to it (brake.hpp)
    to_leader,
  };
  // Returns the tag of the n-th answer of an aggregator to a rank. The answer after it may be ready earlier, but
  // never the one after the next, so two tags suffice.
  static Way answer(std::size_t n) { return n % 2 == 0 ? Way::answer_even : Way::answer_odd; }

  explicit Messages(MPI_Comm comm) : comm_(comm) {}

  // Begin a message of at most 2^31 - 1 bytes; the memory must stay valid until poll() has called `done`. A send
  // completes only after its receive has begun (synchronous mode), so that unexpected data do not pile up at the
  // receiver. Messages of one way between two processes arrive in order.
  void send(Way way, const std::byte* bytes, std::int64_t count, int rank, std::function<void()> done);
  void receive(Way way, std::byte* bytes, std::int64_t count, int rank, std::function<void()> done);
  // Begins to receive the next message of a way from any rank. At most one such receive is in flight at a time.
  void receive_from_any(Way way, std::span<std::byte> memory, std::function<void()> done);

  bool empty() const { return requests_.empty() && !expected_; }
  bool failed() const { return failed_; }
  // Tests all messages, and calls the callbacks of those that are complete, in the order of the calls. Returns true
  // if there were any. Does not block.
  bool poll();
  // Polls until no message is in flight. Returns false if MPI failed.
  bool finish();

 private:
  // A receive from any rank whose message has not been seen yet.
  struct Expected {
    Way way;
    std::span<std::byte> memory;
    std::function<void()> done;
  };

  void add(MPI_Request request, int rc, std::function<void()> done);
  void look_for_expected();

  MPI_Comm comm_;
  bool failed_ = false;
  std::optional<Expected> expected_;
  std::vector<MPI_Request> requests_;
  std::vector<std::function<void()>> done_;  // by request
  std::vector<int> over_;                    // scratch of poll()
};

}  // namespace hocket::runtime::collective
