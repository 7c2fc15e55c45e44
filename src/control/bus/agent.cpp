#include "bus/agent.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/clock.hpp"
#include "event/fields.hpp"

namespace hocket::bus {
namespace {

// Keys of epoll events: 0 is the listener, a member has its number, a watched descriptor has `watched_key` plus its
// index.
constexpr std::uint64_t listener_key = 0;
constexpr std::uint64_t watched_key = std::uint64_t{1} << 63U;

// Longest wait of new members after a descriptor has become free again.
constexpr Duration accept_pause = std::chrono::milliseconds{100};

// True for events that members may send. Only agents and leaders send the others; a member that does is faulty or
// hostile.
template <class E>
constexpr bool is_for_members =
    std::is_same_v<E, event::Hello> || std::is_same_v<E, event::StartIo> || std::is_same_v<E, event::InformIo> ||
    std::is_same_v<E, event::FinishIo> || std::is_same_v<E, event::RenewIo> || std::is_same_v<E, event::PausedIo> ||
    std::is_same_v<E, event::IoPhase> || std::is_same_v<E, event::Iterations> || std::is_same_v<E, event::Malleable> ||
    std::is_same_v<E, event::Reconfiguration> || std::is_same_v<E, event::StartProcesses> ||
    std::is_same_v<E, event::ProcessReady> || std::is_same_v<E, event::StopProcesses> ||
    std::is_same_v<E, event::Bye> || std::is_same_v<E, event::SetPolicy> || std::is_same_v<E, event::Resize> ||
    std::is_same_v<E, event::WithdrawResize> || std::is_same_v<E, event::Subscribe> ||
    std::is_same_v<E, event::Unsubscribe> || std::is_same_v<E, event::List> || std::is_same_v<E, event::Explain> ||
    std::is_same_v<E, event::MapAdopted> || std::is_same_v<E, event::AskWait> || std::is_same_v<E, event::AskCores> ||
    std::is_same_v<E, event::Server> || std::is_same_v<E, event::ServerLoad> || std::is_same_v<E, event::MapStored> ||
    std::is_same_v<E, event::DataSetsLeft> || std::is_same_v<E, event::SetServer> ||
    std::is_same_v<E, event::SchedulerUsed> || std::is_same_v<E, event::AskApplication> ||
    std::is_same_v<E, event::SlowIoServer> || std::is_same_v<E, event::SlowAggregator> ||
    std::is_same_v<E, event::User>;

// Bound on each text of a member's event, so that every answer and listing that repeats such texts fits into a frame.
constexpr std::size_t longest_text_bytes = 8192;

// Returns the key of a text that is too long; nullptr if none is.
const char* too_long_text(const event::Body& body) {
  const char* too_long = nullptr;
  const auto look = [&too_long](const char* key, const auto& value) {
    if constexpr (std::is_base_of_v<std::string, std::decay_t<decltype(value)>>) {
      if (value.size() > longest_text_bytes) too_long = key;
    }
  };
  std::visit([&look](const auto& e) { fields(e, look); }, body);
  return too_long;
}

// Returns why a member may not send this event; "" if it may.
std::string what_is_wrong(const event::Body& body) {
  const bool allowed = std::visit([](const auto& e) { return is_for_members<std::decay_t<decltype(e)>>; }, body);
  if (!allowed) return "a member may not send " + std::string{type_name(body)} + ": the name is hocket's own";
  const char* text = too_long_text(body);
  if (text == nullptr) return {};
  return std::string{"'"}.append(text) + "' of " + std::string{type_name(body)} + " is too long: a text has at most " +
         std::to_string(longest_text_bytes) + " bytes";
}

// Returns the identity of the file at `path`; nothing if there is none.
std::optional<std::pair<dev_t, ino_t>> file_at(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return std::nullopt;
  return std::pair{status.st_dev, status.st_ino};
}

// Waits like epoll_wait, but with nanosecond precision. The fallback rounds up to milliseconds: a little late, never
// early.
int wait_for(const Fd& epoll, std::array<epoll_event, 64>& ready, std::optional<Duration> timeout) {
  timespec limit{};
  if (timeout) {
    const auto ns = std::max(timeout->count(), Duration::rep{0});
    limit = {ns / 1'000'000'000, ns % 1'000'000'000};
  }
  const auto size = static_cast<int>(ready.size());
  const int count = epoll_pwait2(epoll.get(), ready.data(), size, timeout ? &limit : nullptr, nullptr);
  // Kernels before 5.11 do not have epoll_pwait2, and some containers block it.
  if (count >= 0 || (errno != ENOSYS && errno != EPERM)) return count;
  constexpr std::int64_t a_day_ms = 86'400'000;
  const auto ms = std::min(limit.tv_sec * 1000 + (limit.tv_nsec + 999'999) / 1'000'000, a_day_ms);
  return epoll_wait(epoll.get(), ready.data(), size, timeout ? static_cast<int>(ms) : -1);
}

}  // namespace

Result<std::unique_ptr<Agent>> Agent::listen(std::string socket, std::string node, EventHandler leader, Warn warn) {
  std::unique_ptr<Agent> agent{new Agent{std::move(socket), std::move(node), std::move(leader), std::move(warn)}};
  if (const Status opened = agent->open(); !opened) return opened.error();
  return agent;
}

Agent::~Agent() {
  if (listener_ && is_reachable()) unlink(path_.c_str());
}

bool Agent::is_reachable() const { return file_at(path_) == socket_file_; }

Status Agent::open() {
  epoll_ = Fd{epoll_create1(EPOLL_CLOEXEC)};
  if (!epoll_) return Error{"cannot wait for events: " + error_text(errno)};
  auto listener = listen_at(path_);
  if (!listener) return listener.error();
  listener_ = std::move(listener).value();
  socket_file_ = file_at(path_).value_or(socket_file_);
  return add_to_epoll(listener_.get(), listener_key);
}

Status Agent::add_to_epoll(int fd, std::uint64_t key) {
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  wanted.data.u64 = key;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &wanted) == 0) return success();
  return Error{"cannot wait for a descriptor: " + error_text(errno)};
}

void Agent::watch(int fd, std::function<void()> ready) {
  watched_.push_back(std::move(ready));
  if (const Status added = add_to_epoll(fd, watched_key + watched_.size() - 1); !added) warn_(added.error().text);
}

Connection* Agent::find(std::uint64_t member) {
  const auto found = connections_.find(member);
  return found == connections_.end() ? nullptr : found->second.get();
}

bool Agent::run(std::optional<Duration> timeout) {
  if (bury()) return true;
  if (accept_again_) timeout = std::min(timeout.value_or(accept_pause), accept_pause);
  std::array<epoll_event, 64> ready{};
  const int count = wait_for(epoll_, ready, timeout);
  for (int i = 0; i < count; ++i) {
    const epoll_event& e = ready[static_cast<std::size_t>(i)];
    const std::uint64_t key = e.data.u64;
    if (key == listener_key) {
      accept_members();
    } else if (key >= watched_key) {
      watched_[key - watched_key]();
    } else if (Connection* connection = find(key)) {
      // Errors and hang-ups lead to a read as well, which reports them.
      if ((e.events & EPOLLOUT) != 0) unflushed_.push_back(key);
      if ((e.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) take_in(*connection);
    }
    flush();
  }
  bury();
  if (accept_again_ && *accept_again_ <= node_now()) listen_again();
  return count > 0;
}

void Agent::accept_members() {
  while (true) {
    Fd socket{accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
    if (!socket) {
      if (errno == EMFILE || errno == ENFILE) return pause_accepting(errno);
      said_full_ = false;
      return;
    }
    const auto peer = peer_of(socket.get());
    if (!peer || !is_trusted(peer.value().user)) {
      warn_("a connection was refused: " +
            (peer ? "user " + std::to_string(peer.value().user) + " is neither this daemon's nor root"
                  : peer.error().text));
      continue;
    }
    const MemberId member{++last_member_};
    if (const Status added = add_to_epoll(socket.get(), member.value); !added) {
      warn_(added.error().text);
      continue;
    }
    connections_[member.value] = std::make_unique<Connection>(member, std::move(socket));
  }
}

// The listener leaves epoll, else it would wake the agent continuously.
void Agent::pause_accepting(int error) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
  accept_again_ = node_now() + accept_pause;
  if (said_full_) return;
  said_full_ = true;
  warn_("no descriptor is left for another member: " + error_text(error) + "; raise the limit of open files");
}

void Agent::listen_again() {
  accept_again_.reset();
  if (!add_to_epoll(listener_.get(), listener_key)) accept_again_ = node_now() + accept_pause;
}

void Agent::take_in(Connection& connection) {
  if (!connection.doomed.empty()) return;
  const bool open = connection.read();
  const Time now = node_now();
  while (connection.doomed.empty()) {
    const auto payload = connection.next_payload();
    if (!payload) return doom(connection, payload.error().text);
    if (!payload.value()) break;
    auto message = wire::decode(*payload.value());
    if (!message) return doom(connection, message.error().text);
    event::Event& event = message.value().event;
    // The agent stamps time and origin. A member cannot claim to be another one.
    event.time = now;
    event.origin = {node_, connection.application, connection.member()};
    handle(connection, std::move(event));
  }
  if (!open) doom(connection, std::string{closed_by_member});
}

void Agent::handle(Connection& connection, event::Event event) {
  if (const std::string wrong = what_is_wrong(event.body); !wrong.empty()) {
    warn_("member " + std::to_string(connection.member().value) + ": " + wrong);
    return send(connection.member(), event::Refused{wrong});
  }
  if (const auto* subscribe = std::get_if<event::Subscribe>(&event.body)) return on_subscribe(connection, *subscribe);
  if (const auto* unsubscribe = std::get_if<event::Unsubscribe>(&event.body)) {
    connection.unsubscribe(unsubscribe->subscription);
    return update_subscribers(connection);
  }
  const auto pid_of = [](const Connection& asking) {
    const auto peer = peer_of(asking.fd());
    return peer ? peer.value().process : 0;
  };
  if (auto* hello = std::get_if<event::Hello>(&event.body)) hello->peer_pid = pid_of(connection);
  if (auto* start = std::get_if<event::StartProcesses>(&event.body)) start->pid = pid_of(connection);
  if (auto* server = std::get_if<event::Server>(&event.body)) server->pid = pid_of(connection);
  // The end of these members is reported with LOST.
  if (std::holds_alternative<event::Hello>(event.body)) connection.is_application = true;
  if (std::holds_alternative<event::Server>(event.body)) connection.is_application = true;
  if (std::holds_alternative<event::Bye>(event.body)) connection.is_application = false;
  if (std::holds_alternative<event::Resize>(event.body)) ++connection.resizes_asked;
  leader_(std::move(event));
}

void Agent::on_subscribe(Connection& connection, const event::Subscribe& subscribe) {
  const Status subscribed = connection.subscribe(subscribe.subscription, subscribe.filter);
  if (!subscribed) send(connection.member(), event::Refused{subscribed.error().text});
  update_subscribers(connection);
}

void Agent::update_subscribers(Connection& connection) {
  std::erase(subscribers_, &connection);
  if (connection.subscribes()) subscribers_.push_back(&connection);
}

void Agent::send(MemberId to, const event::Body& body) {
  Connection* connection = find(to.value);
  if (connection == nullptr || !connection->doomed.empty()) return;
  if (const auto* welcome = std::get_if<event::Welcome>(&body)) connection->application = welcome->application;
  // The count tells `bury` whether a tool that is lost still has a resize to be withdrawn.
  const bool answers =
      std::holds_alternative<event::Reconfiguration>(body) || std::holds_alternative<event::Refused>(body);
  if (answers && connection->resizes_asked > 0) --connection->resizes_asked;
  if (!connection->queue(body)) return doom(*connection, "it did not read its answers");
  unflushed_.push_back(to.value);
}

void Agent::publish(const event::Event& event) {
  for (Connection* connection : subscribers_) {
    connection->queue_if_subscribed(event);
    if (!connection->wants_writable) unflushed_.push_back(connection->member().value);
  }
}

void Agent::flush() {
  for (const std::uint64_t member : unflushed_) {
    Connection* connection = find(member);
    if (connection == nullptr) continue;
    if (connection->flush()) {
      wait_for_room(*connection);
    } else {
      doom(*connection, std::string{closed_by_member});
    }
  }
  unflushed_.clear();
}

void Agent::wait_for_room(Connection& connection) {
  if (connection.wants_writable == connection.has_unsent()) return;
  connection.wants_writable = connection.has_unsent();
  epoll_event wanted{};
  wanted.events = EPOLLIN | (connection.wants_writable ? EPOLLOUT : 0U);
  wanted.data.u64 = connection.member().value;
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.fd(), &wanted);
}

event::Origin Agent::origin_of(MemberId member) const {
  const auto found = connections_.find(member.value);
  return {node_, found == connections_.end() ? std::string{} : found->second->application, member};
}

// Only `bury` closes connections, so callers may use the connection until then.
void Agent::doom(Connection& connection, std::string reason) {
  if (!connection.doomed.empty()) return;
  connection.doomed = std::move(reason);
  doomed_.push_back(connection.member().value);
}

bool Agent::bury() {
  const bool any = !doomed_.empty();
  // The leader's answers to LOST may mark further connections.
  while (!doomed_.empty()) {
    const auto found = connections_.find(doomed_.back());
    doomed_.pop_back();
    const std::unique_ptr<Connection> connection = std::move(found->second);
    connections_.erase(found);
    std::erase(subscribers_, connection.get());
    if (connection->doomed != closed_by_member) {
      warn_("member " + std::to_string(connection->member().value) + " " + connection->application +
            " was dropped: " + connection->doomed);
      (void)connection->queue(event::Refused{connection->doomed});
      (void)connection->flush();
    }
    if (connection->is_application || connection->resizes_asked > 0) {
      leader_({node_now(), {node_, connection->application, connection->member()}, event::Lost{connection->doomed}});
    }
    flush();
  }
  return any;
}

}  // namespace hocket::bus
