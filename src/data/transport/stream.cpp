#include "transport/stream.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cstring>

namespace hocket::transport {
namespace {

constexpr std::size_t buffer_bytes = 64 << 10;
constexpr std::size_t limited_bytes = 2 << 10;  // the same, while the frames of the peer are limited
constexpr std::size_t parts_of_frame = 4;       // header, meta, payload, and tag
constexpr std::size_t most_parts = 96;          // elements of one I/O vector
// Frames with tags are gathered up to this size: their bytes are still in the cache when the kernel copies them.
constexpr std::size_t tagged_bytes = 64 << 10;

iovec part_of(const void* at, std::size_t bytes) { return {const_cast<void*>(at), bytes}; }

template <class Bytes>
std::span<const std::byte> bytes_of(const Bytes& bytes) {
  return std::as_bytes(std::span{bytes.data(), bytes.size()});
}

}  // namespace

Stream::Stream(KeptFd socket) : socket_(std::move(socket)) {
  fcntl(socket_.get(), F_SETFL, fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
}

void Stream::end(int error, std::string reason) {
  if (ended_) return;
  ended_ = true;
  error_ = error;
  reason_ = std::move(reason);
  unsent_.clear();
}

void Stream::close() {
  end_here();
  socket_ = KeptFd{};
}

KeptFd Stream::release() {
  end_here();
  return std::move(socket_);
}

// Ends the stream and returns false if its descriptor is no longer its own.
bool Stream::is_usable() {
  if (!socket_.is_ours()) end(EBADF, "closed by the program");
  return !ended_;
}

// ---- receiving -----------------------------------------------------------------------------------------------------

std::size_t Stream::take_buffered(std::byte* to, std::size_t most) {
  const std::size_t count = std::min(most, last_ - first_);
  std::memcpy(to, buffer_.data() + first_, count);
  first_ += count;
  return count;
}

// Reads from the socket into the rest of the payload, and what follows into the buffer, with one system call. Returns
// false if nothing is available or the stream has ended.
bool Stream::fill() {
  if (std::exchange(drained_, false) || !is_usable()) return false;
  const std::size_t size = most_meta_ < most_meta ? limited_bytes : buffer_bytes;
  if (buffer_.size() < size) buffer_.resize(size);
  std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(first_), buffer_.begin() + static_cast<std::ptrdiff_t>(last_),
            buffer_.begin());
  last_ -= std::exchange(first_, 0);
  std::array<iovec, 2> parts{part_of(payload_.data(), payload_.size()),
                             part_of(buffer_.data() + last_, buffer_.size() - last_)};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(4 * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = payload_.empty() ? &parts[1] : parts.data();
  message.msg_iovlen = payload_.empty() ? 1 : 2;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t n = recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (n <= 0) {
    const int error = n < 0 ? errno : broken_;
    closed_by_peer_ = n == 0 || error == ECONNRESET || error == EPIPE;
    end(error, error != 0 ? error_text(error) : "closed by the other end");
    return false;
  }
  keep_descriptors(message);
  const auto count = static_cast<std::size_t>(n);
  moved_bytes_ += count;
  drained_ = count < payload_.size() + parts[1].iov_len;
  const std::size_t direct = std::min(count, payload_.size());
  note_received(payload_.first(direct));
  payload_ = payload_.subspan(direct);
  last_ += count - direct;
  return true;
}

// Takes the descriptors that came with a message, so that a peer cannot leak descriptors into this process.
void Stream::keep_descriptors(const msghdr& message) {
  auto* head = const_cast<msghdr*>(&message);
  for (cmsghdr* part = CMSG_FIRSTHDR(head); part != nullptr; part = CMSG_NXTHDR(head, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= part->cmsg_len; at += sizeof(int)) {
      int descriptor = -1;
      std::memcpy(&descriptor, reinterpret_cast<const char*>(part) + at, sizeof descriptor);
      passed_ = Fd{descriptor};  // one is enough; this closes an earlier one
    }
  }
}

// Decodes and checks the header in the buffer. Ends the stream and returns false if it is invalid.
bool Stream::take_header() {
  HeaderBytes bytes;
  take_buffered(reinterpret_cast<std::byte*>(bytes.data()), bytes.size());
  const auto header = decode({bytes.data(), bytes.size()});
  if (!header) {
    end(0, "sent " + header.error().text);
    return false;
  }
  header_ = header.value();
  if (header_.sequence != received_ + 1) {
    end(0, "sent frame " + std::to_string(header_.sequence) + " after frame " + std::to_string(received_));
    return false;
  }
  ++received_;
  if (receives_) {
    expected_ = tag_of_frame(*receives_, received_);
    note_received(bytes_of(bytes));
  }
  if (header_.meta > most_meta_ || (most_meta_ < most_meta && header_.payload > 0)) {
    end(0, "sent more than a client may that has not identified itself");
    return false;
  }
  meta_.clear();
  return true;
}

Stream::Got Stream::receive() {
  while (!ended_) {
    if (stage_ == ReceiveStage::header) {
      if (last_ - first_ < header_bytes) {
        if (!fill()) break;
        continue;
      }
      if (!take_header()) break;
      stage_ = ReceiveStage::meta;
    }
    if (stage_ == ReceiveStage::meta) {
      const std::size_t had = meta_.size();
      meta_.resize(header_.meta);
      meta_.resize(had + take_buffered(reinterpret_cast<std::byte*>(meta_.data()) + had, header_.meta - had));
      if (meta_.size() < header_.meta) {
        if (!fill()) break;
        continue;
      }
      note_received(bytes_of(meta_));
      stage_ = header_.payload > 0 ? ReceiveStage::announced : ReceiveStage::tag;
    }
    if (stage_ == ReceiveStage::announced) return Got::announced;
    if (stage_ == ReceiveStage::payload) {
      const std::size_t buffered = take_buffered(payload_.data(), payload_.size());
      note_received(payload_.first(buffered));
      payload_ = payload_.subspan(buffered);
      if (payload_.empty()) stage_ = ReceiveStage::tag;
    }
    if (stage_ == ReceiveStage::tag) {
      if (!expected_ || last_ - first_ >= sizeof(FrameTag)) {
        if (!check_tag()) break;
        stage_ = ReceiveStage::header;
        return Got::frame;
      }
    }
    if (!fill()) break;
  }
  return ended_ ? Got::ended : Got::nothing;
}

// Adds bytes of the current frame to the tag that it must have.
void Stream::note_received(std::span<const std::byte> bytes) {
  if (expected_) expected_->update(bytes);
}

// Compares the tag in the buffer. Ends the stream and returns false if it is wrong.
bool Stream::check_tag() {
  if (!expected_) return true;
  FrameTag tag;
  take_buffered(reinterpret_cast<std::byte*>(tag.data()), tag.size());
  const bool is_right = is_same(tag, expected_->finish());
  expected_.reset();
  if (!is_right) end(0, "sent a frame that was altered on the way: its tag is wrong");
  return is_right;
}

void Stream::authenticate(const FrameKey& receives, const FrameKey& sends) {
  receives_ = receives;
  sends_ = sends;
}

void Stream::take_payload(std::span<std::byte> memory) {
  payload_ = memory;
  stage_ = ReceiveStage::payload;
}

std::size_t Stream::waiting_bytes() const {
  int in_socket = 0;
  if (ioctl(socket_.get(), FIONREAD, &in_socket) != 0) in_socket = 0;
  return last_ - first_ + static_cast<std::size_t>(std::max(in_socket, 0));
}

// ---- sending -------------------------------------------------------------------------------------------------------

void Stream::send(Header header, std::string meta, std::span<const std::byte> payload,
                  std::shared_ptr<const void> owner) {
  if (ended_ || broken_ != 0) return;
  header.sequence = ++queued_;
  header.meta = static_cast<std::uint32_t>(meta.size());
  header.payload = static_cast<std::uint32_t>(payload.size());
  unsent_.push_back({encode(header), std::move(meta), payload, std::move(owner), header.sequence});
  if (sends_) unsent_.back().tag_bytes = sizeof(FrameTag);
}

void Stream::drop_sent(std::size_t bytes) {
  sent_ += bytes;
  while (!unsent_.empty() && sent_ >= unsent_.front().bytes()) {
    sent_ -= unsent_.front().bytes();
    unsent_.pop_front();
  }
}

// Computes the tag of a frame that has one.
void Stream::complete(Unsent& frame) const {
  if (frame.tag_bytes == 0 || std::exchange(frame.has_tag, true)) return;
  Poly1305 tag = tag_of_frame(*sends_, frame.sequence);
  tag.update(bytes_of(frame.header));
  tag.update(bytes_of(frame.meta));
  tag.update(frame.payload);
  frame.tag = tag.finish();
}

// Fills `parts` with the unsent bytes of the next frames, as many as one system call accepts.
std::size_t Stream::gather(std::span<iovec> parts, std::size_t& bytes) {
  std::size_t count = 0;
  std::size_t skip = sent_;
  for (auto frame = unsent_.begin(); frame != unsent_.end() && count + parts_of_frame <= parts.size(); ++frame) {
    if (sends_ && bytes >= tagged_bytes) break;
    complete(*frame);
    for (const iovec part :
         {part_of(frame->header.data(), frame->header.size()), part_of(frame->meta.data(), frame->meta.size()),
          part_of(frame->payload.data(), frame->payload.size()), part_of(frame->tag.data(), frame->tag_bytes)}) {
      const std::size_t before = std::min(skip, part.iov_len);
      skip -= before;
      if (before == part.iov_len) continue;
      parts[count++] = part_of(static_cast<const char*>(part.iov_base) + before, part.iov_len - before);
      bytes += part.iov_len - before;
    }
  }
  return count;
}

bool Stream::flush() {
  bool moved = false;
  while (!ended_ && !unsent_.empty() && is_usable()) {
    std::array<iovec, most_parts> parts;
    std::size_t wanted = 0;
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = gather(parts, wanted);
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    if (passing_ >= 0) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(sizeof passing_);
      std::memcpy(CMSG_DATA(head), &passing_, sizeof passing_);
    }
    // MSG_NOSIGNAL: a closed connection must not raise SIGPIPE in the application.
    const ssize_t n = sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) {
      broken_ = errno;
      unsent_.clear();
      break;
    }
    if (n < 0) {
      end(errno, error_text(errno));
      break;
    }
    passing_ = -1;
    moved = true;
    moved_bytes_ += static_cast<std::uint64_t>(n);
    drop_sent(static_cast<std::size_t>(n));
    if (static_cast<std::size_t>(n) < wanted) break;
  }
  return moved;
}

}  // namespace hocket::transport
