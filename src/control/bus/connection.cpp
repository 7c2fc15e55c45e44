#include "bus/connection.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace hocket::bus {

bool Connection::read() {
  const auto space = splitter_.space();
  const ssize_t n = recv(fd(), space.data, space.size, MSG_DONTWAIT);
  if (n > 0) splitter_.filled(static_cast<std::size_t>(n));
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

bool Connection::queue(const event::Body& body) {
  if (deaf_) return true;
  if (unsent() > answer_limit_bytes) return false;
  // A message that does not fit into a frame has oversized texts from its sender. The loss cannot be reported, since
  // any report would repeat them.
  (void)wire::encode(body, out_);
  return true;
}

void Connection::queue_if_subscribed(const event::Event& event) {
  if (deaf_) return;
  for (const MemberSubscription& subscription : subscriptions_) {
    if (!subscription.filter.matches(event)) continue;
    // Once an event is lost, all later ones are lost too, until EVENTS_LOST is queued: the subscriber sees where the
    // gap is.
    const bool room = events_lost_ == 0 && unsent() < event_limit_bytes;
    if (!room || !wire::encode(event, subscription.number, out_)) ++events_lost_;
  }
}

void Connection::report_lost() {
  if (events_lost_ == 0 || unsent() > event_limit_bytes / 2) return;
  (void)wire::encode(event::EventsLost{events_lost_}, out_);
  events_lost_ = 0;
}

bool Connection::flush() {
  report_lost();
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
  // The sent part is erased if it is everything, or large: erasing after each send would copy the rest again and again.
  if (!has_unsent() || sent_ > event_limit_bytes) {
    out_.erase(0, sent_);
    sent_ = 0;
  }
  return true;
}

Status Connection::subscribe(std::int64_t number, std::string_view filter) {
  if (number <= 0) return Error{"a subscription's number is at least 1, not " + std::to_string(number)};
  if (subscriptions_.size() >= max_subscriptions) {
    return Error{"a member has at most " + std::to_string(max_subscriptions) + " subscriptions; end one first"};
  }
  auto parsed = event::Filter::parse(filter);
  if (!parsed) return parsed.error();
  unsubscribe(number);
  subscriptions_.push_back({number, std::move(parsed).value()});
  return success();
}

void Connection::unsubscribe(std::int64_t number) {
  std::erase_if(subscriptions_, [&](const MemberSubscription& s) { return s.number == number; });
}

}  // namespace hocket::bus
