#include "runtime/member.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.hpp"

namespace hocket::runtime {
namespace {

// hocketd is on this node: where it accepts, it does so at once. A stopped one with a full backlog must not hold us up.
constexpr Duration connect_limit = std::chrono::milliseconds{200};

}  // namespace

Member::Member(const Settings& settings, event::Hello hello, std::function<void(std::string_view)> lost)
    : settings_(settings),
      hello_(std::move(hello)),
      lost_(std::move(lost)),
      leases_([this](RequestId request) { send(event::RenewIo{request}); }) {}

void Member::join() {
  const std::lock_guard asking(asking_);
  may_retry_ = false;
  if (!connect()) give_up("no hocketd answers at " + settings_.socket);
}

bool Member::connect() {
  auto client = bus::Client::connect(settings_.socket, connect_limit);
  if (!client) return false;
  {
    const std::lock_guard lock(connection_);
    client_.emplace(std::move(client).value());
    fd_ = client_->fd();
  }
  silent_ = false;
  ++connections_;
  return send(hello_);
}

void Member::disconnect() {
  const std::lock_guard lock(connection_);
  client_.reset();
  fd_ = -1;
}

bool Member::send(const event::Body& body) {
  const std::lock_guard lock(connection_);
  return client_ && client_->connected() && client_->send(body).ok();
}

void Member::give_up(std::string_view why) {
  alone_ = true;
  lost_(why);
}

// Whether START_IO can be sent: connected, and hocketd speaks. Once a phase, tries to make it so.
bool Member::ready() {
  const bool retry = may_retry_.exchange(false);
  if (retry) alone_ = false;
  if (alone_) return false;
  if (silent_) {
    // It did not answer in time before. Do not wait again before it has said something.
    if (const auto heard = next_event(node_now())) {
      take(heard->body);
      silent_ = false;
    } else if (fd_ < 0) {
      silent_ = false;  // it has gone: there may be a new one
    }
    alone_ = silent_;
  }
  if (fd_ < 0 && !connect())
    give_up(connections_ > 0 ? "hocketd at " + settings_.socket + " has gone"
                             : "no hocketd answers at " + settings_.socket);
  return !alone_;
}

RequestId Member::ask(event::StartIo start) {
  const std::lock_guard asking(asking_);
  const bool phase_begins = may_retry_;
  if (!ready()) return {};
  start.request = RequestId{++last_request_};
  Outcome outcome = send(start) ? wait_for_grant(start.request) : Outcome::closed;
  if (outcome == Outcome::closed && phase_begins) {
    // The daemon of the phase before has gone; there may be a new one.
    disconnect();
    if (connect() && send(start)) outcome = wait_for_grant(start.request);
  }
  if (outcome == Outcome::closed) {
    disconnect();
    give_up("hocketd at " + settings_.socket + " has gone");
  }
  if (outcome != Outcome::granted) return {};
  leases_.hold(start.request, lease_);
  return start.request;
}

Member::Outcome Member::wait_for_grant(RequestId request) {
  const Time begun = node_now();
  const Time end = begun + settings_.max_wait;
  Time answer_by = begun + settings_.answer;
  while (true) {
    const auto event = next_event(std::min(answer_by, end));
    if (!event && fd_ < 0) return Outcome::closed;
    if (!event) break;
    take(event->body);
    if (const auto* grant = std::get_if<event::GrantIo>(&event->body); grant && grant->request == request)
      return Outcome::granted;
    if (const auto* queued = std::get_if<event::QueuedIo>(&event->body); queued && queued->request == request)
      answer_by = node_now() + settings_.answer;
    if (const auto* refused = std::get_if<event::Refused>(&event->body)) {
      give_up("hocketd refuses: " + refused->text);
      return Outcome::alone;
    }
  }
  send(event::FinishIo{request, {}, 0, false});
  silent_ = node_now() < end;
  if (silent_)
    give_up("hocketd at " + settings_.socket + " has not answered for " + std::to_string(to_s(settings_.answer)) +
            " s (HOCKET_ANSWER_S)");
  else
    give_up("no grant within " + std::to_string(to_s(settings_.max_wait)) + " s (HOCKET_MAX_WAIT_S)");
  return Outcome::alone;
}

// The next event for us; nothing where none came by the deadline, or (fd_ < 0) the connection has ended. Waits without
// the lock, so that other threads can send meanwhile.
std::optional<event::Event> Member::next_event(Time deadline) {
  // A send that fails in another thread closes the descriptor under poll(): look again now and then.
  constexpr Duration slice = std::chrono::milliseconds{200};
  while (true) {
    {
      const std::lock_guard lock(connection_);
      auto event = client_ && client_->connected() ? client_->receive(Duration::zero()) : Error{"not connected"};
      if (!event) fd_ = -1;
      if (!event || event.value()) return event ? std::move(event).value() : std::nullopt;
    }
    const Duration left = deadline - node_now();
    if (left <= Duration::zero()) return std::nullopt;
    const Duration wait = std::min(left, slice);
    const timespec timeout{0, wait.count()};
    pollfd waited{fd_, POLLIN, 0};
    ppoll(&waited, 1, &timeout, nullptr);
  }
}

void Member::take(const event::Body& body) {
  if (const auto* welcome = std::get_if<event::Welcome>(&body); welcome && welcome->lease > Duration::zero())
    lease_ = welcome->lease;
  if (std::holds_alternative<event::Reconfigure>(body) || std::holds_alternative<event::WithdrawResize>(body) ||
      std::holds_alternative<event::ProcessesReady>(body))
    commands_.push_back(body);
  if (const auto* told = std::get_if<event::NewServerMap>(&body)) {
    auto map = event::parse_server_map(told->epoch, told->text);
    if (!map) return lost_("hocketd sent no server map: " + map.error().text);
    auto shared = std::make_shared<const event::ServerMap>(std::move(map).value());
    const std::lock_guard lock(map_mutex_);
    map_ = std::move(shared);
  }
}

// `asking_` is held.
void Member::take_what_came() {
  while (fd_ >= 0) {
    const auto event = next_event(node_now());
    if (!event) break;
    take(event->body);
    silent_ = false;
  }
}

std::shared_ptr<const event::ServerMap> Member::server_map() {
  {
    const std::unique_lock asking(asking_, std::try_to_lock);
    if (asking) take_what_came();
  }
  const std::lock_guard lock(map_mutex_);
  return map_;
}

std::optional<event::Body> Member::next_command() {
  const std::unique_lock asking(asking_, std::try_to_lock);
  if (!asking) return std::nullopt;
  take_what_came();
  if (commands_.empty()) return std::nullopt;
  std::optional<event::Body> first = std::move(commands_.front());
  commands_.pop_front();
  return first;
}

bool Member::reconnect() {
  const std::unique_lock asking(asking_, std::try_to_lock);
  if (!asking) return false;
  disconnect();
  return connect();
}

void Member::report(const event::IoPhase& phase) {
  if (send(phase) || settings_.coordinate) return;
  const std::lock_guard asking(asking_);
  disconnect();
  if (connect())
    send(phase);
  else
    give_up("no hocketd answers at " + settings_.socket);
}

void Member::finish(event::FinishIo finish) {
  leases_.release(finish.request);
  send(finish);
}

void Member::leave(const event::Bye& bye) {
  leases_.stop();
  const std::lock_guard asking(asking_);
  if (fd_ < 0) return;
  if (!send(bye) && !alone_) lost_("hocketd at " + settings_.socket + " has gone");
  disconnect();
}

void Member::abandon() noexcept {
  const int fd = fd_.exchange(-1);
  if (fd >= 0) close(fd);
}

}  // namespace hocket::runtime
