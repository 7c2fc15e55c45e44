#include "link/relay.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/clock.hpp"
#include "bus/epoll.hpp"
#include "bus/local_socket.hpp"
#include "link/tcp.hpp"

namespace hocket::link {
namespace {

// Keys of epoll events: a watched descriptor has `watched_key` plus its index, a member its number.
constexpr std::uint64_t members_key = 0;
constexpr std::uint64_t link_key = std::uint64_t{1} << 62U;
constexpr std::uint64_t call_key = link_key + 1;
constexpr std::uint64_t watched_key = std::uint64_t{1} << 63U;

// Between two rounds through the leaders, and after one in which a leader has refused this agent.
constexpr Duration pause_between = std::chrono::seconds{1};
constexpr Duration pause_refused = std::chrono::seconds{10};
// While a leader serves that is not the first one, earlier ones are asked so often.
constexpr Duration look_back = std::chrono::seconds{5};
constexpr std::size_t tell_taken_bytes = 64 << 10;  // less than the leader's window for a member
constexpr Duration refused_lasts = std::chrono::seconds{2};
constexpr std::size_t most_refused = 256;
constexpr int most_accepted = 64;  // before other members are served

// Agents that have lost their leader at one time do not come back at one time.
Duration spread(Time now) { return Duration{to_ns(now) % 500'000'000}; }

}  // namespace

Result<std::unique_ptr<Relay>> Relay::start(std::string socket, const std::vector<std::string>& leaders,
                                            std::unique_ptr<Tls> tls, const Introduction& self, Tell tell,
                                            bus::Users users) {
  std::unique_ptr<Relay> relay{new Relay{std::move(socket), std::move(tls), std::move(tell), users}};
  for (const std::string& leader : leaders) relay->leaders_.emplace_back(leader, *relay->tls_, self);
  if (const Status opened = relay->open(); !opened) return opened.error();
  return relay;
}

Relay::~Relay() {
  if (listener_ && is_reachable()) unlink(path_.c_str());
}

bool Relay::is_reachable() const { return bus::file_at(path_) == socket_file_; }

std::size_t Relay::members() const { return members_.size() - refused_; }

Status Relay::open() {
  epoll_ = Fd{epoll_create1(EPOLL_CLOEXEC)};
  spare_ = spare_descriptor();
  return epoll_ ? success() : Status{Error{"cannot wait for events: " + error_text(errno)}};
}

Status Relay::listen() {
  auto listener = bus::listen_at(path_, users_.all);
  if (!listener) return listener.error();
  listener_ = std::move(listener).value();
  socket_file_ = bus::file_at(path_).value_or(socket_file_);
  return bus::add_to_epoll(epoll_, listener_.get(), EPOLLIN, members_key);
}

void Relay::watch(int fd, std::function<void()> ready) {
  watched_.push_back(std::move(ready));
  if (const Status added = bus::add_to_epoll(epoll_, fd, EPOLLIN, watched_key + watched_.size() - 1); !added)
    tell_(added.error().text);
}

Time Relay::deadline(Time now) const {
  Time due = leaders_[asked_].is_under_way() ? leaders_[asked_].deadline() : again_;
  if (link_) due = linked_to_ > 0 ? std::min(due, link_->deadline()) : link_->deadline();
  if (refused_ > 0) due = std::min(due, now + refused_lasts);
  return due;
}

void Relay::run(Duration most) {
  Time now = node_now();
  call_if_due(now);
  const bool has_unread = link_ && link_->has_unread();
  const Duration until = has_unread ? Duration::zero() : deadline(now) - now;
  const Duration wait = std::clamp(until, Duration::zero(), std::max(most, Duration::zero()));
  std::array<epoll_event, 64> ready{};
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
  const int count = epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), static_cast<int>(ms));
  now = node_now();
  for (int i = 0; i < count; ++i) {
    const epoll_event& one = ready[static_cast<std::size_t>(i)];
    serve(one.data.u64, one.events, now);
  }
  if (has_unread) serve_link(now);
  Calling& asked = leaders_[asked_];
  if (asked.is_under_way() && now >= asked.deadline()) go_on_calling(asked.go_on(now), now);
  end_refused(now);
  if (!link_) return;
  if (const Status alive = link_->keep_alive(now); !alive) return lose_link(alive.error().text, now);
  watch_link();
  pause_if_full();
}

void Relay::serve(std::uint64_t key, unsigned events, Time now) {
  if (key == members_key) {
    accept_members(now);
  } else if (key >= watched_key) {
    watched_[key - watched_key]();
  } else if (key == link_key) {
    serve_link(now);
  } else if (key == call_key) {
    if (leaders_[asked_].is_under_way()) go_on_calling(leaders_[asked_].go_on(now), now);
  } else {
    serve_member(key, events, now);
  }
}

// ---- the link ------------------------------------------------------------------------------------------------------

void Relay::call_if_due(Time now) {
  if (leaders_[asked_].is_under_way() || now < again_ || (link_ && linked_to_ == 0)) return;
  go_on_calling(leaders_[asked_].begin(now), now);
}

void Relay::go_on_calling(Calling::Result result, Time now) {
  Calling& asked = leaders_[asked_];
  if (result == Calling::Result::linked) return take_link(now);
  if (result != Calling::Result::undecided) return next_leader(result == Calling::Result::refused, now);
  // A name with several addresses has a new descriptor for each, which epoll does not know yet.
  const unsigned wanted = EPOLLIN | (asked.wants_room() ? unsigned{EPOLLOUT} : 0U);
  if (!bus::set_in_epoll(epoll_, EPOLL_CTL_MOD, asked.fd(), wanted, call_key))
    bus::set_in_epoll(epoll_, EPOLL_CTL_ADD, asked.fd(), wanted, call_key);
}

// While this agent is linked, only leaders before its own are asked.
void Relay::next_leader(bool is_refused, Time now) {
  if (!link_) {
    if (leaders_[asked_].has_new_reason())
      tell_("no link to the leader at " + leaders_[asked_].why() + "; trying again");
    why_ = leaders_[asked_].why();
    all_refused_ = all_refused_ && is_refused;
  }
  ++asked_;
  again_ = now;
  if (asked_ < (link_ ? linked_to_ : leaders_.size())) return;
  asked_ = 0;
  again_ = now + (link_ ? look_back : all_refused_ ? pause_refused : pause_between) + spread(now);
  all_refused_ = true;
  if (!link_) ++rounds_;
}

void Relay::take_link(Time now) {
  Calling& asked = leaders_[asked_];
  if (link_) lose_link("an earlier leader of the list, " + asked.leader() + ", has answered", now);
  tell_("linked to the leader at " + asked.leader() + " as node " + asked.own_name());
  takes_orders_ = asked.takes_orders();
  link_.emplace(asked.take_link());
  linked_to_ = asked_;
  link_->send(MessageKind::place, 0, std::to_string(linked_to_ + 1), now);
  linked_since_ = now;
  rounds_ = 0;
  asked_ = 0;
  again_ = now + look_back;
  watched_link_ = EPOLLIN;
  is_paused_ = false;
  bus::change_in_epoll(epoll_, link_->fd(), watched_link_, link_key);
  link_->send(MessageKind::beat, 0, {}, now);  // so that the leader sees that it may send orders
  if (duties_ != nullptr) duties_->linked(tls_->munge() ? std::string{} : own_host(link_->fd()));
  serve_link(now);
}

void Relay::serve_link(Time now) {
  if (!link_) return;
  const Status served = link_->serve(now, [&](const LinkMessage& message) { return handle(message, now); });
  if (!served) lose_link(served.error().text, now);
}

Status Relay::handle(const LinkMessage& message, Time now) {
  if (message.kind == MessageKind::refused) return Error{std::string{message.bytes}};
  if (message.kind == MessageKind::beat) return success();
  if (message.kind == MessageKind::order) return carry_out(message);
  if (message.kind != MessageKind::data && message.kind != MessageKind::closed)
    return Error{"the leader sent a message that only an agent may send"};
  const auto found = members_.find(message.member);
  // It has ended, and the leader did not know that yet.
  if (found == members_.end() || found->second.refused) return success();
  if (message.kind == MessageKind::closed) {
    members_.erase(found);
    if (duties_ != nullptr) duties_->left(message.member, false);
  } else {
    found->second.out.append(message.bytes);
    give_to(found->first, found->second, now);
  }
  return success();
}

Status Relay::carry_out(const LinkMessage& message) {
  const auto order = body_from(message.bytes);
  if (!order) return order.error();
  if (duties_ != nullptr && takes_orders_) duties_->carry_out(message.member, order.value());
  return success();
}

bool Relay::report(const event::Body& body) {
  std::string bytes;
  if (!link_) return false;
  if (const Status encoded = encode(body, bytes); !encoded) {
    tell_(encoded.error().text);
    return true;  // it will not be shorter later
  }
  link_->send(MessageKind::report, 0, bytes, node_now());
  return true;  // `keep_alive` sends it
}

// A link that ends as soon as it has begun is not made anew at once.
void Relay::lose_link(const std::string& reason, Time now) {
  tell_("the link to the leader at " + leaders_[linked_to_].leader() + " has ended: " + reason + "; " +
        std::to_string(members()) + " members continue uncoordinated");
  why_ = leaders_[linked_to_].leader() + ": " + reason;
  link_.reset();
  std::erase_if(members_, [](const auto& one) { return !one.second.refused; });
  if (duties_ != nullptr) duties_->unlinked();
  if (leaders_[asked_].is_under_way()) return;
  asked_ = 0;
  again_ = std::max(now, linked_since_ + pause_between) + spread(now);
}

void Relay::watch_link() {
  const unsigned wanted = EPOLLIN | (link_->wants_room() ? unsigned{EPOLLOUT} : 0U);
  if (wanted != watched_link_) bus::change_in_epoll(epoll_, link_->fd(), watched_link_ = wanted, link_key);
}

// ---- members -------------------------------------------------------------------------------------------------------

void Relay::accept_members(Time now) {
  for (int i = 0; i < most_accepted; ++i) {
    Accepted accepted = accept_from(listener_, spare_);
    if (!accepted.socket) break;
    if (accepted.is_over_limit) {
      const std::string why = "no descriptor is left for another member: raise the agent's limit of open files";
      repeats_.tell("descriptors", why, now, tell_);
      refuse(std::move(accepted.socket), why, now);
      end_refused(now + refused_lasts);  // at once: the descriptors are for those who are served
      spare_ = spare_descriptor();
    } else {
      accept_member(std::move(accepted.socket), now);
    }
  }
}

void Relay::accept_member(Fd socket, Time now) {
  const auto caller = bus::caller_of(socket.get(), users_);
  if (!caller) return repeats_.tell("refused", "a connection was refused: " + caller.error().text, now, tell_);
  if (!is_linked())
    return refuse(std::move(socket),
                  "no leader of this cluster answers: " + (why_.empty() ? leaders_[asked_].leader() : why_), now);
  const std::uint64_t number = ++last_member_;
  if (const Status added = bus::add_to_epoll(epoll_, socket.get(), EPOLLIN, number); !added)
    return tell_(added.error().text);
  link_->send(MessageKind::opened, number, text_of(caller.value()), now);
  members_[number] = LocalMember{.socket = std::move(socket), .watched = EPOLLIN};
}

// A socket that is closed with something unread loses what was sent, so the member may first say what it wants.
void Relay::refuse(Fd socket, const std::string& reason, Time now) {
  std::string frame;
  if (!wire::encode(event::Refused{reason}, frame)) return;
  (void)!send(socket.get(), frame.data(), frame.size(), MSG_NOSIGNAL);
  if (refused_ >= most_refused) return;
  shutdown(socket.get(), SHUT_WR);
  const std::uint64_t number = ++last_member_;
  if (!bus::add_to_epoll(epoll_, socket.get(), EPOLLIN, number)) return;
  members_[number] = LocalMember{.socket = std::move(socket), .watched = EPOLLIN, .refused = now + refused_lasts};
  ++refused_;
}

void Relay::end_refused(Time now) {
  if (refused_ > 0)
    refused_ -=
        std::erase_if(members_, [now](const auto& one) { return one.second.refused && *one.second.refused <= now; });
}

void Relay::serve_member(std::uint64_t number, unsigned events, Time now) {
  const auto found = members_.find(number);
  if (found == members_.end()) return;
  if ((events & EPOLLOUT) != 0) give_to(number, found->second, now);
  if ((events & ~unsigned{EPOLLOUT}) != 0 && !take_from(number, found->second, now)) return end(number, now);
  watch_member(number, found->second);
}

bool Relay::take_from(std::uint64_t number, LocalMember& member, Time now) {
  std::array<char, most_bytes> bytes;  // not cleared, which would take longer than most reads
  const ssize_t n = recv(member.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  if (n == 0) return false;
  if (member.refused) return true;
  if (!link_) return false;
  link_->send(MessageKind::data, number, {bytes.data(), static_cast<std::size_t>(n)}, now);
  return true;  // `keep_alive` sends it, with what other members have sent meanwhile
}

void Relay::give_to(std::uint64_t number, LocalMember& member, Time now) {
  while (member.sent < member.out.size()) {
    const ssize_t n = send(member.socket.get(), member.out.data() + member.sent, member.out.size() - member.sent,
                           MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    // The member reads no more. What it has sent before still counts, and its end comes after that.
    const std::size_t gone = n < 0 ? member.out.size() - member.sent : static_cast<std::size_t>(n);
    member.sent += gone;
    member.taken_bytes += gone;
  }
  // Erasing after each send would copy the rest again and again.
  if (member.sent == member.out.size() || member.sent >= tell_taken_bytes) {
    member.out.erase(0, member.sent);
    member.sent = 0;
  }
  if (member.taken_bytes >= tell_taken_bytes && link_) {
    link_->send(MessageKind::taken, number, std::to_string(std::exchange(member.taken_bytes, 0)), now);
  }
  watch_member(number, member);
}

void Relay::watch_member(std::uint64_t number, LocalMember& member) {
  const bool reads = !is_paused_ || member.refused;
  const unsigned wanted =
      (reads ? unsigned{EPOLLIN} : 0U) | (member.sent < member.out.size() ? unsigned{EPOLLOUT} : 0U);
  if (wanted != member.watched) bus::change_in_epoll(epoll_, member.socket.get(), member.watched = wanted, number);
}

void Relay::pause_if_full() {
  if (is_paused_ == link_->is_full()) return;
  is_paused_ = !is_paused_;
  for (auto& [number, member] : members_) watch_member(number, member);
}

void Relay::end(std::uint64_t number, Time now) {
  const auto found = members_.find(number);
  if (found->second.refused) {
    --refused_;
  } else if (link_) {
    link_->send(MessageKind::closed, number, {}, now);
    if (duties_ != nullptr) duties_->left(number, true);
  }
  members_.erase(found);
}

}  // namespace hocket::link
