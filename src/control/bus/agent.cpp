#include "bus/agent.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/clock.hpp"
#include "base/saturating.hpp"
#include "bus/epoll.hpp"
#include "bus/rights.hpp"
#include "bus/slurm_step.hpp"
#include "event/fields.hpp"

namespace hocket::bus {
namespace {

// Keys of epoll events: 0 is the listener, a member has its number, a watched descriptor has `watched_key` plus its
// index.
constexpr std::uint64_t listener_key = 0;
constexpr std::uint64_t watched_key = std::uint64_t{1} << 63U;

constexpr int most_accepted = 64;  // before other members are served

// Longest wait of new members after a descriptor has become free again.
constexpr Duration accept_pause = std::chrono::milliseconds{100};

// Moves all times of an event by `by`; 0 stands for no time.
void move_times(event::Body& body, Duration by) {
  const auto move = [by](const char*, auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Time>) {
      if (value != Time{}) value = saturating_sum(value, by);
    }
  };
  std::visit([&move](auto& e) { fields(e, move); }, body);
}

// Nobody joins an application of another user by naming its job, or changes the allocation of another user.
void name_job_of(uid_t user, event::Body& body) {
  const auto name = [user](std::string_view key, auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
      if ((key == "job" || key == "allocation") && !value.empty())
        value = "user " + std::to_string(user) + ": " + value;
    }
  };
  std::visit([&name](auto& e) { fields(e, name); }, body);
}

// Queues a command. That of a resize has the time at which it was requested, which the member compares with its clock.
bool queue_for(Connection& connection, const event::Body& body) {
  if (!connection.is_remote() || !std::holds_alternative<event::Reconfigure>(body)) return connection.queue(body);
  event::Body moved = body;
  move_times(moved, connection.clock_ahead);
  return connection.queue(moved);
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

Result<std::unique_ptr<Agent>> Agent::listen(std::string socket, std::string node, EventHandler leader, Warn warn,
                                             Users users) {
  std::unique_ptr<Agent> agent{
      new Agent{std::move(socket), std::move(node), std::move(leader), std::move(warn), users}};
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
  auto listener = listen_at(path_, users_.all);
  if (!listener) return listener.error();
  listener_ = std::move(listener).value();
  socket_file_ = file_at(path_).value_or(socket_file_);
  return add_to_epoll(epoll_, listener_.get(), EPOLLIN, listener_key);
}

void Agent::watch(int fd, std::function<void()> ready) {
  watched_.push_back(std::move(ready));
  if (const Status added = add_to_epoll(epoll_, fd, EPOLLIN, watched_key + watched_.size() - 1); !added)
    warn_(added.error().text);
}

Connection* Agent::find(std::uint64_t member) {
  const auto found = connections_.find(member);
  return found == connections_.end() ? nullptr : found->second.get();
}

bool Agent::run(std::optional<Duration> timeout) {
  woke_ = node_now();
  if (bury()) return true;
  if (accept_again_) timeout = std::min(timeout.value_or(accept_pause), accept_pause);
  std::array<epoll_event, 64> ready{};
  const int count = wait_for(epoll_, ready, timeout);
  woke_ = node_now();
  for (int i = 0; i < count; ++i) {
    const epoll_event& e = ready[static_cast<std::size_t>(i)];
    const std::uint64_t key = e.data.u64;
    if (key == listener_key) {
      accept_members();
    } else if (key >= watched_key) {
      watched_[key - watched_key]();
    } else if (Connection* connection = find(key)) {
      // Errors and hang-ups lead to a read as well, which reports them.
      if ((e.events & EPOLLOUT) != 0) unflushed_.push_back(connection);
      if ((e.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) take_in(*connection);
    }
    flush();
  }
  bury();
  if (accept_again_ && *accept_again_ <= node_now()) listen_again();
  return count > 0;
}

void Agent::accept_members() {
  // Some at a time: whoever connects again and again must not keep the others waiting.
  for (int i = 0; i < most_accepted; ++i) {
    Fd socket{accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
    if (!socket) {
      if (errno == EMFILE || errno == ENFILE) return pause_accepting(errno);
      said_full_ = false;
      return;
    }
    const auto caller = caller_of(socket.get(), users_);
    if (!caller) {
      warn_("a connection was refused: " + caller.error().text);
      continue;
    }
    if (!has_room_for(caller.value())) continue;
    const MemberId member{++last_member_};
    if (const Status added = add_to_epoll(epoll_, socket.get(), EPOLLIN, member.value); !added) {
      warn_(added.error().text);
      continue;
    }
    connections_[member.value] =
        std::make_unique<Connection>(member, node_, caller.value(), share_of(caller.value().user), std::move(socket));
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
  if (!add_to_epoll(epoll_, listener_.get(), EPOLLIN, listener_key)) accept_again_ = node_now() + accept_pause;
}

void Agent::take_in(Connection& connection) {
  if (!connection.doomed.empty()) return;
  const bool open = connection.read();
  handle_messages(connection);
  if (!open) doom(connection, std::string{closed_by_member});
}

void Agent::handle_messages(Connection& connection) {
  const Time now = node_now();
  while (connection.doomed.empty()) {
    const auto payload = connection.next_payload();
    if (!payload) return doom(connection, payload.error().text);
    if (!payload.value()) return;
    auto message = wire::decode(*payload.value());
    if (!message) return doom(connection, message.error().text);
    event::Event& event = message.value().event;
    // The agent stamps time and origin. A member cannot claim to be another one.
    event.time = now;
    event.origin = {connection.node, connection.application, connection.member()};
    if (connection.is_remote())
      move_times(event.body, Duration{saturating_difference(0, connection.clock_ahead.count())});
    handle(connection, event);
  }
}

std::shared_ptr<UserShare> Agent::share_of(uid_t user) {
  if (is_trusted(user)) return nullptr;
  auto& share = shares_[user];
  if (!share) share = std::make_shared<UserShare>();
  return share;
}

// Others must be able to connect, however many connections a user has. Those of the daemon's own user are not counted.
Status Agent::has_room_for(const Caller& caller) {
  const auto found = shares_.find(caller.user);
  if (found == shares_.end() || found->second->connections < users_.most_connections) return success();
  const Error full{"user " + std::to_string(caller.user) + " has " + std::to_string(found->second->connections) +
                   " connections, and gets no more"};
  warn_of(caller, full.text);
  return full;
}

void Agent::warn_of(const Caller& caller, const std::string& line) {
  if (is_trusted(caller.user)) return warn_(line);
  repeats_.tell("user " + std::to_string(caller.user), line, node_now(), warn_);
}

Result<MemberId> Agent::open(const std::string& node, const Caller& caller, MemberSink& sink, bool may_serve) {
  if (const Status allowed = may_connect(caller, users_); !allowed) {
    warn_of(caller, "a connection from node " + node + " was refused: " + allowed.error().text);
    return allowed.error();
  }
  if (const Status room = has_room_for(caller); !room) return room.error();
  const MemberId member{++last_member_};
  connections_[member.value] = std::make_unique<Connection>(member, node, caller, share_of(caller.user), sink);
  connections_[member.value]->may_serve = may_serve;
  return member;
}

void Agent::take_in(MemberId member, std::string_view bytes, Duration clock_ahead) {
  Connection* const connection = find(member.value);
  if (connection == nullptr || !connection->doomed.empty()) return;
  connection->clock_ahead = clock_ahead;
  connection->put(bytes);
  handle_messages(*connection);
  connection->keep_rest();
}

void Agent::close(MemberId member, std::string reason) {
  Connection* const connection = find(member.value);
  if (connection == nullptr) return;
  connection->is_closed_elsewhere = true;
  doom(*connection, std::move(reason));
}

void Agent::has_room(MemberId member) {
  if (Connection* const connection = find(member.value)) unflushed_.push_back(connection);
}

bool Agent::is_foreign(MemberId member) const {
  const auto found = connections_.find(member.value);
  return found != connections_.end() && (found->second->is_remote() || !found->second->is_of_own_user());
}

// A member that has said BYE keeps its name in the trace, but must not stand for whoever has the name now.
void Agent::note_application(Connection& connection) {
  const std::string_view now = connection.is_application ? std::string_view{connection.application} : "";
  if (now == connection.stands_for) return;
  if (const auto before = owners_.find(connection.stands_for); before != owners_.end() && --before->second.members == 0)
    owners_.erase(before);
  connection.stands_for = now;
  if (now.empty()) return;
  Owner& owner = owners_[connection.stands_for];
  if (owner.members == 0) owner.user = connection.caller().user;
  ++owner.members;
}

// An operator steers all applications, another user its own ones.
bool Agent::owns(const Connection& connection, std::string_view application) const {
  if (connection.caller().is_operator) return true;
  const auto owner = owners_.find(std::string{application});
  return owner != owners_.end() && owner->second.user == connection.caller().user;
}

std::string Agent::what_is_wrong(const event::Body& body, const Connection& connection) const {
  if (std::string wrong = why_not_sent(body); !wrong.empty()) return wrong;
  // Only an agent of this daemon's user confirms the end of a server's process there.
  if (connection.is_remote() && !connection.may_serve && std::holds_alternative<event::Server>(body))
    return "an I/O server of " + connection.node + " cannot join: the leader and the agent of its node must be " +
           "daemons of its user alone";
  if (connection.caller().is_operator) return {};
  if (const auto* held = std::get_if<event::HeldNodes>(&body)) {
    const std::string_view job = slurm_job_of(connection.caller().step);
    if (!job.empty() && !held->allocation.empty() && held->allocation != job)
      return "HELD_NODES is about Slurm job " + held->allocation + ", but its sender is in job " + std::string{job};
  }
  const auto steered = steers(body);
  if (!steered) return {};
  if (!steered->empty() && owns(connection, *steered)) return {};
  return std::string{event::type_name(body)} + " is for operators" +
         (steered->empty() ? std::string{} : ", and for the user of " + *steered);
}

void Agent::handle(Connection& connection, event::Event& event) {
  if (const std::string wrong = what_is_wrong(event.body, connection); !wrong.empty()) {
    warn_of(connection.caller(), "member " + std::to_string(connection.member().value) + ": " + wrong);
    return send(connection.member(), event::Refused{wrong});
  }
  if (const auto* subscribe = std::get_if<event::Subscribe>(&event.body)) return on_subscribe(connection, *subscribe);
  if (const auto* unsubscribe = std::get_if<event::Unsubscribe>(&event.body)) {
    connection.unsubscribe(unsubscribe->subscription);
    return update_subscribers(connection);
  }
  if (auto* hello = std::get_if<event::Hello>(&event.body)) {
    hello->peer_pid = connection.caller().process;
    hello->user = connection.caller().user;
    hello->slurm_step = connection.caller().step;
  }
  if (!connection.is_of_own_user()) name_job_of(connection.caller().user, event.body);
  if (auto* start = std::get_if<event::StartProcesses>(&event.body)) start->pid = connection.caller().process;
  if (auto* server = std::get_if<event::Server>(&event.body)) server->pid = connection.caller().process;
  // The end of these members is reported with LOST.
  if (std::holds_alternative<event::Hello>(event.body)) connection.is_application = true;
  if (std::holds_alternative<event::Server>(event.body)) connection.is_application = true;
  if (std::holds_alternative<event::Bye>(event.body)) {
    connection.is_application = connection.holds_nodes = false;
    note_application(connection);  // a HELLO is noted with the name that its answer gives
  }
  if (std::holds_alternative<event::Resize>(event.body)) ++connection.resizes_asked;
  if (std::holds_alternative<event::HeldNodes>(event.body)) connection.holds_nodes = true;
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
  if (const auto* welcome = std::get_if<event::Welcome>(&body)) {
    connection->application = welcome->application;
    note_application(*connection);
  }
  // The count tells `bury` whether a tool that is lost still has a resize to be withdrawn.
  const bool answers =
      std::holds_alternative<event::Reconfiguration>(body) || std::holds_alternative<event::Refused>(body);
  if (answers && connection->resizes_asked > 0) --connection->resizes_asked;
  if (!queue_for(*connection, body)) return doom(*connection, "it did not read its answers");
  unflushed_.push_back(connection);
}

// Events have names of files and programs: an operator sees all, another user those of its own applications.
bool Agent::may_see(const Connection& connection, const event::Event& event) const {
  if (connection.caller().is_operator) return true;
  const auto found = connections_.find(event.origin.member.value);
  if (found != connections_.end()) return found->second->caller().user == connection.caller().user;
  const auto decided_for = concerns(event.body);
  return decided_for && owns(connection, *decided_for);
}

bool Agent::may_hear(MemberId member, const event::Body& body) const {
  const auto found = connections_.find(member.value);
  const auto application = concerns(body);
  return found == connections_.end() || !application || owns(*found->second, *application);
}

void Agent::publish(const event::Event& event) {
  for (Connection* connection : subscribers_) {
    if (!may_see(*connection, event)) continue;
    connection->queue_if_subscribed(event);
    if (!connection->wants_writable) unflushed_.push_back(connection);
  }
}

void Agent::flush() {
  for (Connection* const connection : unflushed_) {
    if (connection->flush()) {
      wait_for_room(*connection);
    } else {
      doom(*connection, std::string{closed_by_member});
    }
  }
  unflushed_.clear();
}

void Agent::wait_for_room(Connection& connection) {
  if (connection.is_remote()) return;  // its sink says when it has room
  if (connection.wants_writable == connection.has_unsent()) return;
  connection.wants_writable = connection.has_unsent();
  const std::uint32_t wanted = EPOLLIN | (connection.wants_writable ? EPOLLOUT : 0U);
  change_in_epoll(epoll_, connection.fd(), wanted, connection.member().value);
}

event::Origin Agent::origin_of(MemberId member) const {
  const auto found = connections_.find(member.value);
  if (found == connections_.end()) return {node_, {}, member};
  return {found->second->node, found->second->application, member};
}

std::string_view Agent::application_of(MemberId member) const {
  const auto found = connections_.find(member.value);
  return found == connections_.end() ? std::string_view{} : found->second->application;
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
    std::unique_ptr<Connection> connection = std::move(found->second);
    connections_.erase(found);
    std::erase(subscribers_, connection.get());
    std::erase(unflushed_, connection.get());
    if (connection->doomed != closed_by_member && !connection->is_closed_elsewhere) {
      warn_("member " + std::to_string(connection->member().value) + " " + connection->application +
            " was dropped: " + connection->doomed);
      (void)connection->queue(event::Refused{connection->doomed});
      (void)connection->flush();
    }
    if (connection->is_remote()) connection->sink()->dropped(connection->member(), connection->doomed);
    if (connection->is_application || connection->holds_nodes || connection->resizes_asked > 0) {
      leader_({node_now(),
               {connection->node, connection->application, connection->member()},
               event::Lost{connection->doomed}});
    }
    connection->is_application = false;
    note_application(*connection);
    const uid_t user = connection->caller().user;
    connection.reset();
    if (const auto share = shares_.find(user); share != shares_.end() && share->second->connections == 0)
      shares_.erase(share);
    flush();
  }
  return any;
}

}  // namespace hocket::bus
