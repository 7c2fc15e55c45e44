#include "server/turn_taker.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/clock.hpp"
#include "event/applicant.hpp"
#include "server/connecting.hpp"

namespace hocket::server {
namespace {

constexpr Duration longest_sleep = std::chrono::seconds{1};

void raise(const bus::Fd& event) {
  constexpr std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(event.get(), &one, sizeof one);  // fails only if it is raised already
}

void lower(const bus::Fd& event) {
  std::uint64_t times = 0;
  [[maybe_unused]] const ssize_t taken = read(event.get(), &times, sizeof times);
}

bus::Fd make_event() { return bus::Fd{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)}; }

}  // namespace

TurnTaker::TurnTaker(std::string socket, TurnLimits limits, LogSink say)
    : socket_(std::move(socket)),
      limits_(limits),
      say_(std::move(say)),
      wake_(std::make_shared<const bus::Fd>(make_event())),
      come_(make_event()) {}

WriteBackTurnPtr TurnTaker::turn_of(const event::Applicant& whose) {
  const std::lock_guard lock(mutex_);
  const auto wake = [event = wake_] { raise(*event); };
  auto found = std::find_if(all_.begin(), all_.end(), [&](const auto& one) { return one->turn->whose == whose; });
  if (found == all_.end()) {
    all_.push_back(std::make_unique<Applying>(whose, wake, limits_));
    found = std::prev(all_.end());
  }
  Applying& one = **found;
  if (WriteBackTurnPtr handed = one.handed.lock()) return handed;
  WriteBackTurnPtr handed{one.turn.get(), [turn = one.turn, wake](WriteBackTurn*) { wake(); }};
  one.handed = handed;
  if (leaving_) {
    one.turn->set_may_store(true);
  } else if (!thread_.joinable()) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  return handed;
}

void TurnTaker::reap() const { lower(come_); }

void TurnTaker::leave() {
  leaving_ = true;
  raise(*wake_);
  if (thread_.joinable()) thread_.join();
}

// ---- the thread ----------------------------------------------------------------------------------------------------

void TurnTaker::run() {
  while (!leaving_) {
    const std::vector<Applying*> all = present();
    const Time now = node_now();
    Time until = now + longest_sleep;
    for (Applying* const one : all) {
      look(*one, now);
      until = std::min(until, one->course.due());
      if (one->course.has_lease()) until = std::min(until, one->renew_at);
    }
    forget_unused();
    sleep(present(), until);
  }
  for (Applying* const one : present()) {
    one->turn->set_may_store(true);
    if (one->client) (void)one->client->send(event::Bye{});
  }
  raise(come_);
}

std::vector<TurnTaker::Applying*> TurnTaker::present() {
  const std::lock_guard lock(mutex_);
  std::vector<Applying*> all;
  for (const auto& one : all_) all.push_back(one.get());
  return all;
}

// Leaves applications of which the server has no file open and holds nothing.
void TurnTaker::forget_unused() {
  const std::lock_guard lock(mutex_);
  std::erase_if(all_, [](const std::unique_ptr<Applying>& one) {
    const bool is_used = !one->handed.expired() || one->turn->holds() || one->course.state() != TurnState::idle;
    if (!is_used && one->client) (void)one->client->send(event::Bye{});
    return !is_used;
  });
}

// Sleeps until a message has come, the loop holds or has stored something, or the time has come.
void TurnTaker::sleep(const std::vector<Applying*>& all, Time until) {
  std::vector<pollfd> waited{{wake_->get(), POLLIN, 0}};
  for (const Applying* const one : all) waited.push_back({one->client ? one->client->fd() : -1, POLLIN, 0});
  const auto left = std::max(until - node_now(), Duration::zero());
  const timespec timeout{std::chrono::duration_cast<std::chrono::seconds>(left).count(),
                         (left % std::chrono::seconds{1}).count()};
  if (ppoll(waited.data(), waited.size(), &timeout, nullptr) <= 0) return;
  if (waited.front().revents != 0) lower(*wake_);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (waited[i + 1].revents != 0) hear(*all[i]);
}

// Lets the course see what is held. No batch may begin while it decides to give the turn back.
void TurnTaker::look(Applying& one, Time now) {
  if (one.course.has_lease() && now >= one.renew_at) {
    one.renew_at = now + one.lease / 3;
    post(one, event::RenewIo{one.request, 0});
  }
  if (one.course.may_store() && now >= one.course.due()) one.turn->set_may_store(false);
  if (one.course.waited_too_long(now))
    complain(one, fmt::format("no turn at {} came for {:g} s", one.turn->whose.target, to_s(limits_.longest)));
  send(one, one.course.look({one.turn->holds(), one.turn->is_under_way()}, now));
  publish(one);
}

void TurnTaker::hear(Applying& one) {
  while (one.client) {
    auto come = one.client->receive(Duration::zero());
    if (!come) {
      one.client.reset();
      return feed(one, TurnInput::lose);
    }
    if (!come.value()) return;
    take(one, come.value()->body);
  }
}

void TurnTaker::take(Applying& one, const event::Body& said) {
  if (const auto* welcome = std::get_if<event::Welcome>(&said); welcome && welcome->lease > Duration::zero())
    one.lease = welcome->lease;
  // The server has other ways to learn of maps. By this one, hocketd counts it among the application's members.
  if (const auto* map = std::get_if<event::NewServerMap>(&said)) post(one, event::MapAdopted{map->epoch});
  if (const auto* grant = std::get_if<event::GrantIo>(&said); grant && grant->request == one.request) {
    one.complained = false;
    one.granted = node_now();
    one.renew_at = one.granted + one.lease / 3;
    feed(one, TurnInput::grant);
  }
  if (const auto* queued = std::get_if<event::QueuedIo>(&said); queued && queued->request == one.request)
    one.course.hear(node_now());
  if (const auto* pause = std::get_if<event::PauseIo>(&said); pause && pause->request == one.request)
    feed(one, TurnInput::preempt);
  if (const auto* expired = std::get_if<event::LeaseExpired>(&said); expired && expired->request == one.request)
    feed(one, TurnInput::expire);
  if (const auto* refused = std::get_if<event::Refused>(&said)) {
    complain(one, "hocketd refuses a turn: " + refused->text);
    feed(one, TurnInput::give_up);
  }
}

void TurnTaker::feed(Applying& one, TurnInput input) {
  send(one, one.course.take(input, node_now()));
  publish(one);
}

void TurnTaker::send(Applying& one, const TurnCourse::Messages& messages) {
  for (const TurnMessage message : messages) {
    switch (message) {
      case TurnMessage::none: break;
      case TurnMessage::finish: post(one, event::FinishIo{one.request, node_now() - one.granted}); break;
      case TurnMessage::paused: post(one, event::PausedIo{one.request}); break;
      case TurnMessage::start: {
        if (!connect(one)) return feed(one, TurnInput::lose);
        ++one.request.value;
        one.granted = node_now();
        event::StartIo start;
        start.request = one.request;
        start.target = one.turn->whose.target;
        start.operation = event::write_back;
        start.bytes = one.turn->bytes();
        start.parts = one.turn->whose.parts;
        post(one, start);
        break;
      }
    }
  }
}

// Joins the application, unless the server is a member of it already.
bool TurnTaker::connect(Applying& one) {
  if (one.client) return true;
  const Time now = node_now();
  if (now < one.connect_at) return false;
  one.connect_at = now + connect_again;
  auto client = bus::Client::connect(socket_, connect_limit);
  if (!client) return false;
  one.client.emplace(std::move(client).value());
  one.request = {};
  event::Hello hello;
  hello.job = one.turn->whose.job;
  hello.application = one.turn->whose.application;
  hello.program = hello.mpi = "hocket-server";
  hello.version = HOCKET_VERSION;
  hello.pid = getpid();
  post(one, hello);
  return one.client.has_value();
}

// Sends an event. If that fails, the connection has ended.
void TurnTaker::post(Applying& one, const event::Body& body) {
  if (!one.client || one.client->send(body)) return;
  one.client.reset();
  feed(one, TurnInput::lose);
}

// Shows the loop if it may store.
void TurnTaker::publish(Applying& one) const {
  const bool before = one.turn->may_store();
  one.turn->set_may_store(one.course.may_store());
  if (one.course.may_store() && !before) raise(come_);
}

void TurnTaker::complain(Applying& one, const std::string& why) const {
  if (!std::exchange(one.complained, true))
    say_(why + "; stores what it holds for '" + one.turn->whose.application + "' without");
}

}  // namespace hocket::server
