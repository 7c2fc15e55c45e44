#include "link/link.hpp"

namespace hocket::link {
namespace {

// The reads of one call, so that one busy link does not keep others waiting.
constexpr int most_reads = 16;

}  // namespace

Status Link::serve(Time now, const TakeMessage& handle) {
  if (!greeted_) {
    const auto greeted = stream_.greet();
    if (!greeted) return greeted.error();
    if (!greeted.value()) return success();
    greeted_ = true;
  }
  has_unread_ = true;
  for (int i = 0; i < most_reads && has_unread_; ++i) {
    const auto came = take_in(now, handle);
    if (!came) return came.error();
    // A last read that finds nothing can be spared: bytes that are still in the socket make it readable again.
    has_unread_ = came.value() && stream_.has_unread();
  }
  if (owes_beat_) send(MessageKind::beat, 0, {}, now);
  return flush();
}

Result<bool> Link::take_in(Time now, const TakeMessage& handle) {
  const auto space = splitter_.space();
  const auto n = stream_.read(space.data, space.size);
  if (!n) return n.error();
  if (n.value() == 0) return false;
  heard_ = now;
  asked_.reset();
  splitter_.filled(n.value());
  while (true) {
    const auto payload = splitter_.next();
    if (!payload) return payload.error();
    if (!payload.value()) return true;
    const auto message = decode(*payload.value());
    if (!message) return message.error();
    owes_beat_ |= end_ == LinkEnd::leader && message.value().kind == MessageKind::beat;
    if (const Status handled = handle(message.value()); !handled) return handled.error();
  }
}

void Link::send(MessageKind kind, std::uint64_t member, std::string_view bytes, Time now) {
  encode({kind, member, now, bytes}, out_);
  spoke_ = now;
  owes_beat_ = false;
  if (!asked_) {
    asked_ = now;
    asked_by_beat_ = false;
  }
  asked_by_beat_ |= kind == MessageKind::beat;
}

Status Link::flush() {
  if (!greeted_) return success();
  while (has_unsent()) {
    const auto n = stream_.write(out_.data() + sent_, unsent());
    if (!n) return n.error();
    if (n.value() == 0) break;
    sent_ += n.value();
  }
  // Erasing after each write would copy the rest again and again.
  if (!has_unsent() || sent_ > full_bytes) {
    out_.erase(0, sent_);
    sent_ = 0;
  }
  return success();
}

Status Link::keep_alive(Time now) {
  if (is_silent(now)) {
    if (!greeted_) return Error{"the other end did not complete the greeting within 5 s"};
    return Error{end_ == LinkEnd::leader ? "the other end was silent for 7 s" : "the other end was silent for 5 s"};
  }
  if (greeted_ && now >= beat_at()) send(MessageKind::beat, 0, {}, now);
  return flush();
}

}  // namespace hocket::link
