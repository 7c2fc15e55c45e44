#include "process/deputy.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

#include "base/clock.hpp"
#include "mpi_shim/depth.hpp"
#include "mpi_shim/signals_blocked.hpp"
#include "session/heartbeat.hpp"

namespace hocket::runtime {
namespace {

// Time without a heartbeat after which the deputy counts as stuck. It may wait for a processor for long.
constexpr Duration stuck_after = std::chrono::seconds{1};

enum DeputyState : std::uint32_t {
  idle,
  claimed,    // a thread writes its errand
  sent,       // the errand is complete
  serving,    // the deputy does it
  served,     // the result is complete
  abandoned,  // the thread gave up; the deputy becomes idle as soon as it can
};

// Sleeps while the state has this value, at most `longest`, if that is not nullptr.
void sleep_on(std::atomic<std::uint32_t>& state, std::uint32_t value, const timespec* longest) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&state), FUTEX_WAIT_PRIVATE, value, longest, nullptr, 0);
}

void wake_all(std::atomic<std::uint32_t>& state) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&state), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

bool move(std::atomic<std::uint32_t>& state, std::uint32_t from, std::uint32_t to) {
  return state.compare_exchange_strong(from, to, std::memory_order_acq_rel);
}

}  // namespace

void Deputy::start() noexcept {
  const SignalsBlocked blocked;
  state_ = idle;
  if (pthread_create(&thread_, nullptr, run, this) != 0) state_ = stopped;
}

void Deputy::stop() noexcept {
  if ((state_.fetch_or(stopped) & stopped) != 0) return;
  wake_all(state_);
  pthread_join(thread_, nullptr);
}

bool Deputy::claim() noexcept { return move(state_, idle, claimed); }

bool Deputy::await_turn() noexcept {
  waiting_.fetch_add(1);
  bool alive = true;
  for (std::uint32_t now = state_; alive && now != idle; now = state_) alive = await_change(now);
  waiting_.fetch_sub(1);
  return alive;
}

bool Deputy::send() noexcept {
  if (!move(state_, claimed, sent)) return false;
  wake_all(state_);
  for (std::uint32_t now = sent; (now & ~stopped) != served; now = state_.load(std::memory_order_acquire))
    if (!await_change(now) && move(state_, now, now & stopped ? now : abandoned)) return false;
  return true;
}

void Deputy::release() noexcept { be_free(); }

void Deputy::be_free() {
  std::uint32_t now = state_;
  while (!state_.compare_exchange_weak(now, (now & stopped) | idle, std::memory_order_acq_rel)) {
  }
  if (waiting_ > 0) wake_all(state_);
}

// Waits until the state is no longer `seen`. Returns false if the deputy does not run or is stuck.
bool Deputy::await_change(std::uint32_t seen) {
  constexpr timespec between_looks{0, between_beats.count()};
  std::uint64_t heard = heartbeat_;
  Time since = node_now();
  while (state_ == seen) {
    if ((seen & stopped) != 0) return false;
    sleep_on(state_, seen, &between_looks);
    const Time now = node_now();
    if (const std::uint64_t beats = heartbeat_; beats != heard) {
      heard = beats;
      since = now;
    } else if (now - since >= stuck_after) {
      return false;
    }
  }
  return true;
}

void* Deputy::run(void* deputy) {
  static_cast<Deputy*>(deputy)->work();
  return nullptr;
}

void Deputy::work() {
  const Inside inside;
  own_heartbeat = &heartbeat_;
  for (std::uint32_t now = state_; (now & stopped) == 0; now = state_) {
    if (now == abandoned)
      be_free();
    else if (now != sent)
      sleep_on(state_, now, nullptr);
    else if (move(state_, sent, serving))
      do_errand();
  }
}

void Deputy::do_errand() {
  beat();
  serve_();
  if (!move(state_, serving, served)) {
    drop_();
    be_free();
  }
  wake_all(state_);
}

}  // namespace hocket::runtime
