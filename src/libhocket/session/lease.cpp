#include "session/lease.hpp"

#include <poll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <system_error>

#include "base/clock.hpp"
#include "mpi_shim/depth.hpp"
#include "mpi_shim/signals_blocked.hpp"

namespace hocket::runtime {
namespace {

constexpr Duration shortest_interval = std::chrono::milliseconds{5};  // between renewals, however short the lease
// Delay before the thread begins to listen. A shorter operation never wakes the thread.
constexpr Duration listens_after = std::chrono::milliseconds{2};
// Time limit of one poll. Another thread may have closed the polled descriptor and opened a new connection meanwhile.
constexpr Duration longest_sleep = std::chrono::milliseconds{200};

// Returns true if the program has closed the timer, or uses its number.
bool has_been_closed(const KeptFd& timer) {
  itimerspec left{};
  return timer && (!timer.is_ours() || timerfd_gettime(timer.get(), &left) != 0);
}

timespec timespec_of(Duration duration) { return {duration.count() / 1'000'000'000, duration.count() % 1'000'000'000}; }

}  // namespace

void LeaseKeeper::hold(RequestId request, Duration lease) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  start();
  if (!listens()) set_alarm(listens_after);
  if (held_.empty()) renewed_ = node_now();
  if (std::find(held_.begin(), held_.end(), request) == held_.end()) held_.push_back(request);
  interval_ = std::max(lease / 3, shortest_interval);
}

void LeaseKeeper::release(RequestId request) {
  const std::lock_guard lock(mutex_);
  std::erase(held_, request);
  if (!listens()) set_alarm(Duration::zero());
}

void LeaseKeeper::expect(bool something) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  start();
  if (something && !listens()) set_alarm(listens_after);
  expecting_ += something ? 1 : -1;
}

void LeaseKeeper::wake() {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  set_alarm(Duration{1});
  woken_ = true;
}

void LeaseKeeper::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    woken_ = false;
    set_alarm(Duration{1});
    if (thread_.joinable() && has_been_closed(alarm_)) thread_.detach();  // nothing can wake it
  }
  if (thread_.joinable()) thread_.join();
}

void LeaseKeeper::start() {
  if (thread_.joinable() && !has_been_closed(alarm_)) return;
  if (thread_.joinable()) thread_.detach();  // it may sleep on the closed timer for ever; another thread replaces it
  alarm_ = KeptFd{timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)};
  const SignalsBlocked blocked;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    // Without a thread, the lease expires early. Other applications continue, and so does this one.
  }
}

// Sets the alarm to `from_now`; zero disarms it.
void LeaseKeeper::set_alarm(Duration from_now) const {
  const itimerspec once{{}, timespec_of(from_now)};
  if (alarm_ && !woken_) timerfd_settime(alarm_.get(), 0, &once, nullptr);  // fails if it is no timer any more
}

void LeaseKeeper::renew(Time now) {
  if (held_.empty() || now < renewed_ + interval_) return;
  renewed_ = now;
  for (const RequestId request : held_) duties_.renew(request);
}

// Sleeps until the alarm, a message on `listened` (-1: none), or `until`.
void LeaseKeeper::sleep(int listened, Time until) const {
  const Duration left = std::max(until - node_now(), Duration::zero());
  const timespec timeout = timespec_of(left);
  std::array<pollfd, 2> waited{{{alarm_.get(), POLLIN, 0}, {listened, POLLIN, 0}}};
  ppoll(waited.data(), waited.size(), until == Time::max() ? nullptr : &timeout, nullptr);
  std::uint64_t expirations = 0;
  if ((waited[0].revents & POLLIN) == 0 || has_been_closed(alarm_)) return;
  if (read(alarm_.get(), &expirations, sizeof expirations) < 0) return;
}

void LeaseKeeper::run() {
  const Inside inside;
  while (true) {
    bool listening = false;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_ || thread_.get_id() != std::this_thread::get_id()) return;
      woken_ = false;
      if (has_been_closed(alarm_)) alarm_ = KeptFd{};  // the thread then wakes up by itself
      listening = listens();
    }
    // The callbacks run without the lock: they take locks of their own, under which others call `hold` and `release`.
    const int listened = listening ? duties_.listen() : -1;
    const Time now = node_now();
    Time until = duties_.due(now);
    if (listening || !alarm_) until = std::min(until, now + longest_sleep);
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      renew(now);
      if (!held_.empty()) until = std::min(until, renewed_ + interval_);
    }
    sleep(listened, until);
  }
}

}  // namespace hocket::runtime
