#include "link/node_agents.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/clock.hpp"
#include "bus/epoll.hpp"
#include "link/tcp.hpp"

namespace hocket::link {
namespace {

// Keys of epoll events: an agent has its number plus `first_agent`.
constexpr std::uint64_t listener_key = 0;
constexpr std::uint64_t timer_key = 1;
constexpr std::uint64_t again_key = 2;
constexpr std::uint64_t first_agent = 3;

constexpr long look_ns = 500'000'000;  // between two looks at beats, which fetch each agent from memory

}  // namespace

Result<std::unique_ptr<NodeAgents>> NodeAgents::listen(const std::string& address, std::unique_ptr<Tls> tls,
                                                       bus::Agent& agent, Introduction self, bus::Agent::Warn warn) {
  std::unique_ptr<NodeAgents> agents{new NodeAgents{std::move(tls), agent, std::move(self), std::move(warn)}};
  if (const Status opened = agents->open(address); !opened) return opened.error();
  return agents;
}

NodeAgents::~NodeAgents() = default;

Status NodeAgents::open(const std::string& address) {
  auto listeners = listen_at(address);
  if (!listeners) return listeners.error();
  listeners_ = std::move(listeners).value();
  spare_ = spare_descriptor();
  epoll_ = Fd{epoll_create1(EPOLL_CLOEXEC)};
  timer_ = Fd{timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
  again_ = Fd{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  if (!epoll_ || !timer_ || !again_) return Error{"cannot wait for agents: " + error_text(errno)};
  if (const Status watched = bus::add_to_epoll(epoll_, timer_.get(), EPOLLIN, timer_key); !watched)
    return watched.error();
  if (const Status watched = bus::add_to_epoll(epoll_, again_.get(), EPOLLIN, again_key); !watched)
    return watched.error();
  for (const Fd& listener : listeners_) {
    if (const Status watched = bus::add_to_epoll(epoll_, listener.get(), EPOLLIN, listener_key); !watched)
      return watched.error();
  }
  return success();
}

void NodeAgents::serve() {
  const Time now = node_now();
  std::array<epoll_event, 64> ready{};
  const int count = epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), 0);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t key = ready[static_cast<std::size_t>(i)].data.u64;
    if (key == listener_key) {
      accept_agents();
    } else if (key == timer_key) {
      keep_alive(now);
    } else if (key == again_key) {
      serve_unread(now);
    } else {
      serve(key - first_agent, now);
    }
  }
  bury();
  listen_or_not();
}

void NodeAgents::serve_unread(Time now) {
  std::uint64_t times = 0;
  (void)!read(again_.get(), &times, sizeof times);
  for (const std::uint64_t number : std::exchange(checks_, {})) {
    const auto found = agents_.find(number);
    if (found == agents_.end() || !found->second->lost.empty()) continue;
    finish_check(*found->second, now);
    if (found->second->checking) checks_.push_back(number);
  }
  for (const std::uint64_t number : std::exchange(unread_, {})) {
    const auto found = agents_.find(number);
    if (found == agents_.end()) continue;
    found->second->is_unread = false;
    serve(number, now);
  }
}

void NodeAgents::accept_agents() {
  const Time now = node_now();
  for (const Fd& listener : listeners_) {
    while (strangers_ < most_strangers) {
      Accepted accepted = accept_from(listener, spare_);
      if (!accepted.socket) break;
      if (accepted.is_over_limit) {
        repeats_.tell("", "an agent was refused: no descriptor is left; raise the limit", now, warn_);
        accepted.socket = Fd{};
        spare_ = spare_descriptor();
      } else {
        prepare(accepted.socket);
        take_in(std::move(accepted.socket), now);
      }
    }
  }
}

void NodeAgents::take_in(Fd socket, Time now) {
  std::string from = other_end(socket);
  auto stream = tls_->accepted(std::move(socket));
  if (!stream) return warn_(stream.error().text);
  // An armed timer is left alone: to begin anew would put off the beats while agents arrive.
  if (agents_.empty()) look_at_beats(look_ns);
  const std::uint64_t number = ++last_agent_;
  const int fd = stream.value().fd();
  if (const Status watched = bus::add_to_epoll(epoll_, fd, EPOLLIN, first_agent + number); !watched)
    return warn_(watched.error().text);
  agents_[number] = std::unique_ptr<NodeAgent>(
      new NodeAgent{number, std::move(from), Link{LinkEnd::leader, std::move(stream).value(), now}, now});
  ++strangers_;
}

void NodeAgents::listen_or_not() {
  if (is_listening_ == (strangers_ < most_strangers)) return;
  is_listening_ = !is_listening_;
  const std::uint32_t wanted = is_listening_ ? EPOLLIN : 0U;
  for (const Fd& listener : listeners_) bus::change_in_epoll(epoll_, listener.get(), wanted, listener_key);
}

void NodeAgents::look_at_beats(long each_ns) {
  const itimerspec each{{0, each_ns}, {0, each_ns}};
  timerfd_settime(timer_.get(), 0, &each, nullptr);
}

void NodeAgents::serve(std::uint64_t number, Time now) {
  const auto found = agents_.find(number);
  if (found == agents_.end()) return;
  NodeAgent& one = *found->second;
  in_batch_ = true;
  const Status served = one.link.serve(now, [&](const LinkMessage& message) { return handle(one, message, now); });
  agent_.flush();
  in_batch_ = false;
  flush_batch();
  if (!served) return lose(one, served.error().text);
  watch_room(one);
  if (!one.link.has_unread() || one.is_unread) return;
  // Others come first. The descriptor need not say again that it is readable, as TLS has the bytes already.
  one.is_unread = true;
  unread_.push_back(number);
  constexpr std::uint64_t once = 1;
  (void)!write(again_.get(), &once, sizeof once);
}

void NodeAgents::keep_alive(Time now) {
  std::uint64_t ticks = 0;
  (void)!read(timer_.get(), &ticks, sizeof ticks);
  for (const auto& [number, one] : agents_) {
    if (one->lost.empty() && one->who.node.empty() && now >= one->since + silence)
      lose(*one, one->checking ? "munged of this node did not answer within 5 s"
                               : "the other end did not say who it is within 5 s");
    if (one->lost.empty() && one->checking) finish_check(*one, now);
    if (!one->lost.empty() || now < one->link.deadline()) continue;
    // Messages that came while this thread was busy show that the other end runs.
    if (one->link.is_silent(now)) serve(number, now);
    if (!one->lost.empty()) continue;
    if (const Status alive = one->link.keep_alive(now); !alive) lose(*one, alive.error().text);
    watch_room(*one);
  }
  if (agents_.empty()) look_at_beats(0);
}

Status NodeAgents::handle(NodeAgent& one, const LinkMessage& message, Time now) {
  note_clock(one, message, node_now());  // later than `now`, if others were served before
  if (one.who.node.empty()) return introduce(one, message, now);
  // While it awaits its welcome, an agent takes nothing else.
  if (!std::exchange(one.is_ready, true) && takes_orders(one)) news_.joined(one.who);
  switch (message.kind) {
    case MessageKind::beat: return success();
    case MessageKind::refused: return Error{std::string{message.bytes}};
    case MessageKind::place: return take_place(one, message);
    case MessageKind::report: {
      auto body = body_from(message.bytes);
      if (!body) return body.error();
      if (takes_orders(one)) news_.reported(one.who, std::move(body).value());
      return success();
    }
    case MessageKind::opened:
    case MessageKind::closed:
    case MessageKind::data:
    case MessageKind::taken: return handle_member(one, message, now);
    default: return Error{"the agent sent a message that only a leader may send"};
  }
}

Status NodeAgents::take_place(const NodeAgent& one, const LinkMessage& message) {
  const auto place = count_from(message.bytes);
  if (!place) return place.error();
  constexpr std::uint64_t most_leaders = 1'000'000;
  news_.found_at(one.who.node, static_cast<std::int64_t>(std::clamp<std::uint64_t>(place.value(), 1, most_leaders)));
  return success();
}

// A message that waited on its way makes the clock seem late, so the earliest of a minute counts. A clock may stand
// still while its machine sleeps, so the minute ends.
void NodeAgents::note_clock(NodeAgent& one, const LinkMessage& message, Time now) {
  constexpr Duration valid = std::chrono::minutes{1};
  const Duration ahead = clock_ahead(message, now);
  if (ahead < one.clock_ahead && one.clock_seen != Time{} && now - one.clock_seen < valid) return;
  one.clock_ahead = ahead;
  one.clock_seen = now;
}

Status NodeAgents::introduce(NodeAgent& one, const LinkMessage& message, Time now) {
  if (message.kind == MessageKind::beat) return success();  // its munged takes its time, or this node's does
  if (one.checking || message.kind != MessageKind::hello) return Error{"the agent did not say who it is"};
  auto who = introduction_from(message.bytes);
  if (!who) return refuse(one, who.error(), now);
  one.claimed = std::move(who).value();
  if (!tls_->munge()) {
    admit(one, {}, now);
  } else if (checking_now_->load() < static_cast<int>(most_strangers)) {
    check(one);
  } else {
    return refuse(one, Error{"too many credentials are being checked"}, now);
  }
  return success();
}

Status NodeAgents::refuse(NodeAgent& one, const Error& why, Time now) {
  one.link.send(MessageKind::refused, 0, why.text, now);
  (void)one.link.flush();
  return why;
}

// munged may take its time, and this thread decides about grants.
void NodeAgents::check(NodeAgent& one) {
  checks_.push_back(one.number);
  const auto wake = std::make_shared<Fd>(fcntl(again_.get(), F_DUPFD_CLOEXEC, 0));
  ++*checking_now_;
  one.checking = Later<std::string>::begin(
      [munge = tls_->munge(), credential = one.claimed.credential,
       binding = one.link.binding()]() -> Result<std::string> {
        const Status checked = check_credential(*munge, credential, payload_of_agent(binding));
        return checked ? munge->make(payload_of_leader(binding)) : checked.error();
      },
      [wake, count = checking_now_] {
        constexpr std::uint64_t once = 1;
        (void)!write(wake->get(), &once, sizeof once);
        --*count;
      });
}

void NodeAgents::finish_check(NodeAgent& one, Time now) {
  const auto own = one.checking ? one.checking->take() : std::nullopt;
  if (!own) return;
  one.checking.reset();
  if (!*own) {
    const Error why{"node " + self_.node + " does not admit this agent: " + own->error().text};
    return lose(one, refuse(one, why, now).error().text);
  }
  admit(one, own->value(), now);
  flush(one);
}

void NodeAgents::admit(NodeAgent& one, const std::string& credential, Time now) {
  one.who = std::move(one.claimed);
  one.who.node = name_for(one.who);
  names_.emplace(one.who.node, one.who.identity);
  --strangers_;
  one.link.send(MessageKind::welcome, 0, text_of(Admission{one.who.node, credential, self_.user, self_.serves_alone}),
                now);
  warn_("the agent of node " + one.who.node + " (" + one.from + ", hocket " + one.who.hocket + ") has joined");
  if (own_host_.empty()) own_host_ = link::own_host(one.link.fd());
  if (has_own_cores(one.who.node)) news_.cores(one.who.node, one.who.cores);
}

bool NodeAgents::takes_orders(const NodeAgent& one) const {
  return one.is_ready && self_.serves_alone && one.who.serves_alone && one.who.user == self_.user && one.lost.empty();
}

// While the end of an earlier link is not noticed, a node has two agents: the later one is meant.
const NodeAgents::NodeAgent* NodeAgents::agent_of(const std::string& node) const {
  const NodeAgent* latest = nullptr;
  for (const auto& [number, one] : agents_) {
    const bool is_it = takes_orders(*one) && (one->who.node == node || one->who.identity == node);
    if (is_it && (latest == nullptr || latest->number < number)) latest = one.get();
  }
  return latest;
}

void NodeAgents::send_order(NodeAgent& one, std::uint64_t member, const event::Body& order) {
  std::string bytes;
  if (const Status encoded = encode(order, bytes); !encoded) return warn_(encoded.error().text);
  one.link.send(MessageKind::order, member, bytes, node_now());
  flush(one);
}

bool NodeAgents::order(const std::string& node, const event::Body& order) {
  const NodeAgent* const one = agent_of(node);
  if (one != nullptr) send_order(*agents_.at(one->number), 0, order);
  return one != nullptr;
}

bool NodeAgents::hears(const std::string& node) const {
  constexpr Duration lately = beat + std::chrono::seconds{1};
  const NodeAgent* const one = agent_of(node);
  return one != nullptr && node_now() - one->link.heard() < lately;
}

void NodeAgents::order_all(const event::Body& order) {
  for (const auto& [number, one] : agents_)
    if (takes_orders(*one)) send_order(*one, 0, order);
}

bool NodeAgents::order_about(MemberId member, const event::Body& order) {
  const auto found = members_.find(member.value);
  if (found == members_.end() || found->second->agent == nullptr || !takes_orders(*found->second->agent)) return false;
  send_order(*found->second->agent, found->second->number, order);
  return true;
}

std::string NodeAgents::identity_of(MemberId member) const {
  const auto found = members_.find(member.value);
  const bool is_there = found != members_.end() && found->second->agent != nullptr;
  return is_there && takes_orders(*found->second->agent) ? found->second->agent->who.identity : std::string{};
}

std::string NodeAgents::identity_of(const std::string& node) const {
  const NodeAgent* const one = agent_of(node);
  return one == nullptr ? std::string{} : one->who.identity;
}

std::string NodeAgents::nodes() const {
  std::set<std::string_view> names;
  for (const auto& [number, one] : agents_)
    if (!one->who.node.empty()) names.insert(one->who.node);
  std::string text;
  for (const std::string_view name : names) text.append(text.empty() ? "" : " ").append(name);
  return text;
}

// Host names are no identity: two nodes may have the same one.
std::string NodeAgents::name_for(const Introduction& who) const {
  const auto [begin, end] = names_.equal_range(who.node);
  const bool taken = (self_.node == who.node && self_.identity != who.identity) ||
                     std::any_of(begin, end, [&](const auto& other) { return other.second != who.identity; });
  constexpr std::size_t enough = 8;
  return taken ? who.node + "~" + who.identity.substr(0, enough) : who.node;
}

Status NodeAgents::handle_member(NodeAgent& one, const LinkMessage& message, Time now) {
  const auto found = one.members.find(message.member);
  if (message.kind == MessageKind::opened) {
    const auto caller = caller_from(message.bytes);
    if (!caller) return caller.error();
    if (found != one.members.end()) return Error{"the agent gave two members one number"};
    open_member(one, message.member, caller.value(), now);
    return success();
  }
  if (found == one.members.end()) return success();  // it was dropped, and its agent did not know that yet
  Elsewhere& there = *found->second;
  if (message.kind == MessageKind::data) {
    agent_.take_in(there.member, message.bytes, one.clock_ahead);
  } else if (message.kind == MessageKind::closed) {
    there.agent = nullptr;  // it knows already
    one.members.erase(found);
    agent_.close(there.member, std::string{bus::Agent::closed_by_member});
  } else {
    const auto count = count_from(message.bytes);
    if (!count) return count.error();
    there.under_way_bytes -= std::min<std::size_t>(there.under_way_bytes, count.value());
    agent_.has_room(there.member);
  }
  return success();
}

void NodeAgents::open_member(NodeAgent& one, std::uint64_t number, const bus::Caller& caller, Time now) {
  auto there = std::make_unique<Elsewhere>(*this, one, number);
  const auto member = one.members.size() < most_members
                          ? agent_.open(one.who.node, caller, *there, takes_orders(one) && !has_no_key())
                          : Result<MemberId>{Error{"node " + one.who.node + " has too many members"}};
  if (!member) {
    std::string refusal;
    (void)wire::encode(event::Refused{member.error().text}, refusal);
    one.link.send(MessageKind::data, number, refusal, now);
    return one.link.send(MessageKind::closed, number, {}, now);
  }
  there->member = member.value();
  one.members.emplace(number, there.get());
  members_[member.value().value] = std::move(there);
}

std::size_t NodeAgents::Elsewhere::take(MemberId, std::string_view bytes) {
  if (agent == nullptr) return bytes.size();  // nobody is there any more
  const std::size_t room = window_bytes - std::min(window_bytes, under_way_bytes);
  const std::size_t taken = std::min(room, bytes.size());
  const Time now = node_now();
  for (std::size_t at = 0; at < taken; at += most_bytes)
    agent->link.send(MessageKind::data, number, bytes.substr(at, std::min(most_bytes, taken - at)), now);
  under_way_bytes += taken;
  all.flush(*agent);
  return taken;
}

void NodeAgents::Elsewhere::dropped(MemberId gone, const std::string& reason) {
  if (agent != nullptr) {
    agent->link.send(MessageKind::closed, number, std::string_view{reason}.substr(0, most_bytes), node_now());
    all.flush(*agent);
    agent->members.erase(number);
  }
  all.members_.erase(gone.value);  // ends this object
}

// Only `bury` removes agents, so callers may use the agent until then. Its descriptor reports the end again, if it was
// noticed outside of `serve`.
void NodeAgents::lose(NodeAgent& one, std::string reason) {
  if (!one.lost.empty()) return;
  one.lost = std::move(reason);
  lost_.push_back(one.number);
}

void NodeAgents::tell_lost(const NodeAgent& one) {
  if (!one.who.node.empty()) return warn_("the link to " + one.who.node + " (" + one.from + ") has ended: " + one.lost);
  repeats_.tell(one.from, "the link to " + one.from + " has ended: " + one.lost, node_now(), warn_);
}

void NodeAgents::bury() {
  for (const std::uint64_t number : std::exchange(lost_, {})) {
    const auto at = agents_.find(number);
    NodeAgent& one = *at->second;
    forget_name(one.who);
    tell_lost(one);
    for (const auto& [number_there, member] : one.members) {
      member->agent = nullptr;
      agent_.close(member->member, "the link to node " + one.who.node + " has ended");
    }
    const std::string node = std::move(one.who.node);
    agents_.erase(at);
    // An agent that was cut off may have joined anew before the loss of its old link was noticed.
    if (has_own_cores(node) && !names_.contains(node)) news_.cores(node, 0);
  }
}

// An agent may run beside the leader, whose cores are told already.
bool NodeAgents::has_own_cores(const std::string& node) const { return !node.empty() && node != self_.node; }

void NodeAgents::forget_name(const Introduction& who) {
  if (who.node.empty()) {
    --strangers_;
    return;
  }
  const auto [begin, end] = names_.equal_range(who.node);
  const auto found = std::find_if(begin, end, [&](const auto& other) { return other.second == who.identity; });
  if (found != end) names_.erase(found);
}

// A batch has the answers to many members of a node. One write for all costs much less than one each, and none of them
// waits longer than for the handling of what has come already.
void NodeAgents::flush(NodeAgent& one) {
  if (!one.is_unflushed) unflushed_.push_back(&one);
  one.is_unflushed = true;
  if (!in_batch_) flush_batch();
}

void NodeAgents::flush_batch() {
  for (NodeAgent* const one : std::exchange(unflushed_, {})) {
    one->is_unflushed = false;
    if (const Status sent = one->link.flush(); !sent) lose(*one, sent.error().text);
    watch_room(*one);
  }
}

void NodeAgents::watch_room(NodeAgent& one) {
  if (one.watches_room == one.link.wants_room()) return;
  one.watches_room = one.link.wants_room();
  const std::uint32_t wanted = EPOLLIN | (one.watches_room ? EPOLLOUT : 0U);
  bus::change_in_epoll(epoll_, one.link.fd(), wanted, first_agent + one.number);
}

}  // namespace hocket::link
