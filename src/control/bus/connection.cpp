#include "bus/connection.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace hocket::bus {

Connection::~Connection() {
  if (!share_) return;
  --share_->connections;
  share_->subscriptions -= subscriptions_.size();
  share_->unsent_bytes -= counted_bytes_;
}

void Connection::count_unsent() {
  if (!share_) return;
  share_->unsent_bytes += unsent();
  share_->unsent_bytes -= std::exchange(counted_bytes_, unsent());
}

bool Connection::has_room_for_events() const {
  return unsent() < event_limit_bytes && !(share_ && share_->unsent_bytes > user_event_limit_bytes);
}

bool Connection::is_unread() const {
  if (unsent() > answer_limit_bytes) return true;
  return share_ && share_->unsent_bytes > user_answer_limit_bytes && unsent() > unread_limit_bytes;
}

bool Connection::read() {
  const auto space = splitter_.space();
  const ssize_t n = recv(fd(), space.data, space.size, MSG_DONTWAIT);
  if (n > 0) splitter_.filled(static_cast<std::size_t>(n));
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

void Connection::put(std::string_view bytes) {
  come_ = bytes;
  if (!splitter_.is_empty()) keep_rest();
}

void Connection::keep_rest() {
  std::string_view bytes = std::exchange(come_, {});
  while (!bytes.empty()) {
    const auto space = splitter_.space();
    const std::size_t some = std::min(space.size, bytes.size());
    std::copy_n(bytes.data(), some, space.data);
    splitter_.filled(some);
    bytes.remove_prefix(some);
  }
}

bool Connection::queue(const event::Body& body) {
  if (deaf_) return true;
  if (is_unread()) return false;
  // A message that does not fit into a frame has oversized texts from its sender. The loss cannot be reported, since
  // any report would repeat them.
  (void)wire::encode(body, out_);
  count_unsent();
  return true;
}

void Connection::queue_if_subscribed(const event::Event& event) {
  if (deaf_) return;
  for (const MemberSubscription& subscription : subscriptions_) {
    if (!subscription.filter.matches(event)) continue;
    // Once an event is lost, all later ones are lost too, until EVENTS_LOST is queued: the subscriber sees where the
    // gap is.
    const bool room = events_lost_ == 0 && has_room_for_events();
    if (!room || !wire::encode(event, subscription.number, out_)) ++events_lost_;
  }
  count_unsent();
}

void Connection::report_lost() {
  if (events_lost_ == 0 || unsent() > event_limit_bytes / 2) return;
  (void)wire::encode(event::EventsLost{events_lost_}, out_);
  events_lost_ = 0;
}

bool Connection::flush() {
  report_lost();
  const bool is_open = is_remote() ? flush_to_sink() : flush_to_socket();
  count_unsent();
  return is_open;
}

bool Connection::flush_to_sink() {
  while (has_unsent()) {
    const std::size_t taken = sink_->take(member_, std::string_view{out_}.substr(sent_));
    if (taken == 0) break;
    sent_ += taken;
    report_lost();
  }
  forget_sent();
  return true;
}

bool Connection::flush_to_socket() {
  while (has_unsent()) {
    const ssize_t n = send(fd(), out_.data() + sent_, unsent(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    // The member has closed its end. What it sent before is still in the socket and must be handled.
    if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) {
      deaf_ = true;
      out_.clear();
      sent_ = 0;
      return true;
    }
    if (n < 0 && errno != EAGAIN) return false;
    if (n < 0) break;
    sent_ += static_cast<std::size_t>(n);
    report_lost();
  }
  forget_sent();
  return true;
}

// Erasing after each send would copy the rest again and again.
void Connection::forget_sent() {
  if (has_unsent() && sent_ <= event_limit_bytes) return;
  out_.erase(0, sent_);
  sent_ = 0;
}

Status Connection::subscribe(std::int64_t number, std::string_view filter) {
  if (number <= 0) return Error{"a subscription's number is at least 1, not " + std::to_string(number)};
  if (subscriptions_.size() >= max_subscriptions) {
    return Error{"a member has at most " + std::to_string(max_subscriptions) + " subscriptions; end one first"};
  }
  auto parsed = event::Filter::parse(filter);
  if (!parsed) return parsed.error();
  unsubscribe(number);
  if (share_ && share_->subscriptions >= max_user_subscriptions) {
    return Error{"the connections of a user have at most " + std::to_string(max_user_subscriptions) +
                 " subscriptions together; end one first"};
  }
  subscriptions_.push_back({number, std::move(parsed).value()});
  if (share_) ++share_->subscriptions;
  return success();
}

void Connection::unsubscribe(std::int64_t number) {
  const std::size_t ended =
      std::erase_if(subscriptions_, [&](const MemberSubscription& s) { return s.number == number; });
  if (share_) share_->subscriptions -= ended;
}

}  // namespace hocket::bus
