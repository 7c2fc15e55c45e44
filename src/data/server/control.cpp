#include "server/control.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/clock.hpp"

namespace hocket::server {
namespace {

// Intervals of the control thread: time limit of an attempt to connect, pause between attempts, and between reports.
constexpr Duration connect_limit = std::chrono::milliseconds{200};
constexpr Duration connect_again = std::chrono::seconds{1};
constexpr Duration load_every = std::chrono::milliseconds{50};
// A server whose oldest batch has been under way for `stuck_after` also reports without progress, at this interval.
constexpr Duration stuck_every = std::chrono::milliseconds{250};
constexpr Duration stuck_after = std::chrono::milliseconds{500};

}  // namespace

Control::Control(std::string socket, event::Server about, const LoadCounters& load, LogSink say)
    : socket_(std::move(socket)),
      about_(std::move(about)),
      load_(load),
      say_(std::move(say)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Control::leave() {
  leaving_ = true;
  const std::uint64_t one = 1;
  if (write(wake_.get(), &one, sizeof one) < 0) return;  // the thread has been woken already
  if (thread_.joinable()) thread_.join();
}

void Control::run() {
  while (!leaving_) {
    const Time now = node_now();
    if (!client_ && now >= connect_at_) connect();
    if (client_) tell_load(now);
    take_in(load_every);
  }
  if (!client_) return;
  tell_load(node_now());
  if (client_) (void)client_->send(event::Bye{});
}

void Control::connect() {
  connect_at_ = node_now() + connect_again;
  auto client = bus::Client::connect(socket_, connect_limit);
  if (!client) return lost(client.error().text);
  client_.emplace(std::move(client).value());
  event::Hello hello;
  hello.application = about_.server;
  hello.version = HOCKET_VERSION;
  hello.pid = getpid();
  Status said = client_->send(hello);
  if (said) said = client_->send(about_);
  if (!said) return lost(said.error().text);
  if (std::exchange(said_lost_, false)) say_("hocketd at " + socket_ + " answers again");
}

// Drops the connection, and logs one line for each time that hocketd is lost.
void Control::lost(std::string_view why) {
  client_.reset();
  if (!std::exchange(said_lost_, true)) say_("without hocketd: " + std::string{why});
}

// Reports the load if it has changed since the last report, or if the server is stuck.
void Control::tell_load(Time now) {
  const ReportedLoad seen{load_.operations.load(std::memory_order_relaxed), load_.bytes.load(std::memory_order_relaxed),
                          load_.service_ns.load(std::memory_order_relaxed), load_.queue.load(std::memory_order_relaxed),
                          load_.held_bytes.load(std::memory_order_relaxed)};
  const std::int64_t began = load_.oldest_start_ns.load(std::memory_order_relaxed);
  const Duration oldest = began > 0 ? std::max(now - time_from_ns(began), Duration::zero()) : Duration::zero();
  // A change of queue or buffers counts too: the last report then says that the server has become idle.
  const bool worked =
      seen.operations != told_.operations || seen.queue != told_.queue || seen.held_bytes != told_.held_bytes;
  const bool is_stuck = oldest >= stuck_after && now - told_at_ >= stuck_every;
  if (!worked && !is_stuck) return;
  const Status said = client_->send(event::ServerLoad{seen.operations - told_.operations, seen.bytes - told_.bytes,
                                                      Duration{seen.service_ns - told_.service_ns}, seen.queue,
                                                      seen.held_bytes, oldest});
  told_ = seen;
  told_at_ = now;
  if (!said) lost(said.error().text);
}

// Receives hocketd's messages until the timeout is over or `leave` is called. hocketd sends a server no commands, but
// it may refuse the registration.
void Control::take_in(Duration timeout) {
  const Time until = node_now() + timeout;
  while (!leaving_) {
    pollfd waited[2] = {{wake_.get(), POLLIN, 0}, {client_ ? client_->fd() : -1, POLLIN, 0}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - node_now()).count();
    if (poll(waited, 2, static_cast<int>(std::max<std::int64_t>(left, 0))) <= 0) return;
    if (waited[1].revents == 0) continue;
    const auto come = client_->receive(Duration::zero());
    if (!come) return lost(come.error().text);
    if (!come.value()) continue;
    const auto* refused = std::get_if<event::Refused>(&come.value()->body);
    if (refused != nullptr) {
      connect_at_ = node_now() + connect_again;
      return lost("hocketd refuses: " + refused->text);
    }
  }
}

}  // namespace hocket::server
