// A thread that asks hocketd on behalf of threads which may be in a signal handler. Such a thread must not allocate,
// and must not wait for a lock whose holder may need what the interrupted code holds. So it hands over one errand of
// fixed size, and waits on a futex.
//
// The wait is bounded. The deputy shows with a heartbeat that it works or waits for hocketd, which has time limits of
// its own. If the heartbeat stops, the deputy probably waits for memory whose lock the waiting thread itself holds;
// then that thread gives up. There is one errand at a time, and other threads wait until the deputy is free.
//
// Thread-safe and async-signal-safe, but `start` and `stop`. The object is never destroyed, so a program may exit
// without `stop`.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "base/time.hpp"

namespace hocket::runtime {

class Deputy {
 public:
  using Duty = void (*)();
  // The deputy's thread calls `serve` to do the errand, and `drop` after it if nobody waits for the result any more.
  // The errand and its result are in memory that belongs to the thread which has claimed the deputy, until `release`.
  constexpr Deputy(Duty serve, Duty drop) : serve_(serve), drop_(drop) {}

  // Starts the thread, with all signals blocked. If that fails, `claim` always fails.
  void start() noexcept;
  // Ends the thread, after its errand, and waits for its end. Threads that wait for it give up.
  void stop() noexcept;

  // Claims the deputy for an errand. Returns false if another thread has it.
  bool claim() noexcept;
  // Waits until the deputy may be free. Returns false if it does not run or is stuck.
  bool await_turn() noexcept;
  // Hands over the errand and waits. Returns true if it is done; the caller must then call `release`. After false, the
  // errand no longer belongs to the caller. Precondition: `claim` has succeeded.
  bool send() noexcept;
  void release() noexcept;

 private:
  static constexpr std::uint32_t stopped = 1U << 31U;
  static void* run(void* deputy);
  void work();
  void do_errand();
  void be_free();
  bool await_change(std::uint32_t seen);

  const Duty serve_;
  const Duty drop_;
  std::atomic<std::uint32_t> state_ = stopped;  // DeputyState, and `stopped` if the thread does not run or is to end
  std::atomic<std::uint32_t> waiting_ = 0;      // threads in `await_turn`
  std::atomic<std::uint64_t> heartbeat_ = 0;
  pthread_t thread_{};
};

}  // namespace hocket::runtime
