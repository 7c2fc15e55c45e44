// Frames over a connected socket, for both ends: what is to be sent waits in a queue, what comes is given frame by
// frame, and a payload goes straight to where it belongs.
//
// The caller says where a payload goes before it is taken in; until then nothing more is read, and the sender waits: so
// memory that has run out holds nobody's data but in the kernel's buffers. Does not block, is not thread-safe, does not
// throw. After an error it stays ended.
#pragma once

#include <sys/uio.h>

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.hpp"
#include "transport/frame.hpp"

namespace hocket::transport {

class Stream {
 public:
  // Makes the socket non-blocking.
  explicit Stream(Fd socket);

  enum class Got : std::uint8_t {
    nothing,    // there is no more for now
    announced,  // header() and meta() are there; say where the payload goes with take_payload()
    frame,      // a whole one
    ended,      // see error() and reason()
  };
  Got receive();
  // Of the frame that was announced or given last, until the next call of receive().
  const Header& header() const { return header_; }
  std::string_view meta() const { return meta_; }
  // Precondition: receive() has just given `announced`; memory.size() == header().payload.
  void take_payload(std::span<std::byte> memory);
  // A descriptor that came with a frame since the last call.
  Fd take_descriptor() { return std::exchange(passed_, Fd{}); }
  // Frames of the other end that are longer in sum than so many bytes end the connection: for those who have not
  // proved yet who they are.
  void limit_meta(std::uint32_t bytes) { most_meta_ = bytes; }

  // The payload stays where it is until it was sent; `owner` keeps it there.
  void send(Header header, std::string meta = {}, std::span<const std::byte> payload = {},
            std::shared_ptr<const void> owner = {});
  // Sends a descriptor with the next bytes, over a Unix socket. It stays the caller's, and open until they are sent.
  void pass_descriptor(int descriptor) { passing_ = descriptor; }
  // Sends as much as the socket takes; true: something was sent.
  bool flush();
  bool has_unsent() const { return !unsent_.empty(); }
  std::size_t unsent_frames() const { return unsent_.size(); }

  // Ends it: no memory that it was given is looked at any more.
  void close() { end(0, "closed here"); }
  bool ended() const { return ended_; }
  int error() const { return error_; }  // of errno; 0: the other end has closed, or broke the protocol
  const std::string& reason() const { return reason_; }
  int descriptor() const { return socket_.get(); }

 private:
  enum class Stage : std::uint8_t { header, meta, announced, payload };
  struct Unsent {
    HeaderBytes header;
    std::string meta;
    std::span<const std::byte> payload;
    std::shared_ptr<const void> owner;
    std::size_t bytes() const { return header.size() + meta.size() + payload.size(); }
  };

  bool fill();
  bool take_header();
  std::size_t take_buffered(std::byte* to, std::size_t most);
  void keep_descriptors(const msghdr& message);
  std::size_t gather(std::span<iovec> parts, std::size_t& bytes) const;
  void drop_sent(std::size_t bytes);
  void end(int error, std::string reason);

  Fd socket_;
  bool ended_ = false;
  int error_ = 0;
  std::string reason_;

  std::vector<std::byte> buffer_;  // bytes first_ … last_ - 1 are not taken yet
  std::size_t first_ = 0;
  std::size_t last_ = 0;
  bool drained_ = false;  // the socket had less than there was room for: asking again would be in vain
  Stage stage_ = Stage::header;
  Header header_;
  std::string meta_;
  std::span<std::byte> payload_;  // what is left of it
  std::uint64_t received_ = 0;    // frames
  std::uint32_t most_meta_ = most_meta;
  Fd passed_;

  std::deque<Unsent> unsent_;
  std::size_t sent_ = 0;  // bytes of the first of them
  std::uint64_t queued_ = 0;
  int passing_ = -1;
};

}  // namespace hocket::transport
