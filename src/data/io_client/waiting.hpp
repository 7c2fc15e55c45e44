// Waits for the answers of I/O servers. The caller says how: a process without MPI sleeps in poll(2), a rank also lets
// MPI make progress (collective/mpi_wait.hpp).
#pragma once

#include <poll.h>

#include <span>

#include "base/function_ref.hpp"
#include "io_client/served_file.hpp"

namespace hocket::io_client {

// Passes the time of one wait.
class WaitStrategy {
 public:
  virtual ~WaitStrategy() = default;

  // Notes that something has moved: a back-off begins anew.
  virtual void moved() {}
  // Blocks until a connection is ready or `left` is over; may return earlier. `idle` is the time since something moved.
  // `awaits_messages`: messages are awaited that no descriptor announces.
  virtual void pause(std::span<pollfd> connections, Duration idle, Duration left, bool awaits_messages) = 0;
};

// Sleeps in poll(2) until a connection is ready.
class DescriptorWait final : public WaitStrategy {
 public:
  void pause(std::span<pollfd> connections, Duration idle, Duration left, bool awaits_messages) override;
};

// Result of one step of a wait.
struct StepResult {
  bool done = false;             // nothing is left to wait for
  bool moved = false;            // something moved that was no request
  bool awaits_messages = false;  // as in WaitStrategy::pause
};

std::size_t pending(std::span<const ServedFile> files);
bool any_lost(std::span<const ServedFile> files);
// Returns the first error of requests that ended since the last call, as ServedFile::take_error does; ECANCELED only if
// there is no other.
int take_error(std::span<ServedFile> files);

// Makes progress until `go_on` reports that it is done. `go_on` may queue further requests. A server is lost if an
// answer is due, but nothing at all comes from it for 30 s, or only signs of life for ten minutes. It may still write
// then (ServedFile::may_still_write). After this has returned or thrown, nothing uses the
// caller's memory any more: files with requests that are still pending are lost.
void wait(std::span<ServedFile> files, WaitStrategy&& how, FunctionRef<StepResult()> go_on);
// Waits until nothing is pending.
void await_answers(std::span<ServedFile> files, WaitStrategy&& how = DescriptorWait());

}  // namespace hocket::io_client
