// Frames over a connected socket, for both ends. Outgoing frames wait in a queue. Incoming frames are delivered one
// by one, and a payload is received directly into its destination.
//
// The caller names the destination of a payload before it is received. Until then nothing more is read, and the
// sender waits: if there is no memory, data stay in the kernel's buffers. Does not block or throw; not thread-safe.
// After an error the stream stays ended.
//
// After `authenticate`, a tag follows each frame, which covers its header, meta bytes, and payload (frame_tag.hpp). A
// frame is complete only if its tag is right; else the stream ends. So what was altered, repeated, left out, or sent
// back by somebody on the way is never delivered as a frame.
#pragma once

#include <sys/uio.h>

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/kept_descriptor.hpp"
#include "transport/frame.hpp"
#include "transport/frame_tag.hpp"

namespace hocket::transport {

// One connection. It owns the socket.
class Stream {
 public:
  // Makes the socket non-blocking. The second is for a process of somebody else, which may close the descriptor: then
  // the stream ends.
  explicit Stream(Fd socket) : Stream(KeptFd::unchecked(std::move(socket))) {}
  explicit Stream(KeptFd socket);

  enum class Got : std::uint8_t {
    nothing,  // no complete frame for now
    // header() and meta() are there, but not authenticated yet; name the payload's destination with take_payload()
    announced,
    frame,  // a complete frame
    ended,  // see error() and reason()
  };
  // Receives until it can return one of these.
  Got receive();
  // The frame announced or completed last. Valid until the next call of receive().
  const Header& header() const { return header_; }
  std::string_view meta() const { return meta_; }
  // Sets the payload's destination. Precondition: receive() has just returned `announced`, and memory.size() ==
  // header().payload. The memory must stay valid until the frame is complete or the stream has ended.
  void take_payload(std::span<std::byte> memory);
  // Returns the descriptor that was received last, if any came since the last call.
  Fd take_descriptor() { return std::exchange(passed_, Fd{}); }
  // Ends the connection for frames with a payload or with more meta bytes than this. It protects against peers that
  // have not authenticated. `most_meta` lifts the limit.
  void limit_meta(std::uint32_t bytes) { most_meta_ = bytes; }
  // Expects and sends a tag with each frame after those that were received and queued before. The session keys are of
  // the two directions.
  void authenticate(const FrameKey& receives, const FrameKey& sends);

  // Queues a frame. The payload is not copied; `owner` keeps it alive until it is sent.
  void send(Header header, std::string meta = {}, std::span<const std::byte> payload = {},
            std::shared_ptr<const void> owner = {});
  // Passes a descriptor with the next bytes, over a Unix socket. The caller keeps it open until they are sent.
  void pass_descriptor(int descriptor) { passing_ = descriptor; }
  // Sends as much as the socket accepts. Returns true if anything was sent. If the peer has gone, the stream ends only
  // when everything that it sent before has been received.
  bool flush();
  bool has_unsent() const { return !unsent_.empty(); }
  std::size_t unsent_frames() const { return unsent_.size(); }
  // Bytes that have come and are not taken yet.
  std::size_t waiting_bytes() const;
  // Bytes received and sent so far.
  std::uint64_t moved_bytes() const { return moved_bytes_; }

  // Ends the stream. It accesses no caller's memory afterwards. The socket stays open until release() or close().
  void end_here() { end(0, "closed here"); }
  // Ends the stream and closes the socket.
  void close();
  // Ends the stream and gives up its socket, also after the other end has closed its own. Empty if the descriptor is no
  // longer ours.
  KeptFd release();
  bool ended() const { return ended_; }
  // True if the other end has closed the connection, and not this one or the network.
  bool closed_by_peer() const { return closed_by_peer_; }
  int error() const { return error_; }  // number of errno; 0: closed by either end, or a violation of the protocol
  const std::string& reason() const { return reason_; }
  int descriptor() const { return ended_ ? -1 : socket_.get(); }

 private:
  enum class ReceiveStage : std::uint8_t { header, meta, announced, payload, tag };
  struct Unsent {
    HeaderBytes header;
    std::string meta;
    std::span<const std::byte> payload;
    std::shared_ptr<const void> owner;
    std::uint64_t sequence = 0;
    std::size_t tag_bytes = 0;  // 0: the frame has no tag
    FrameTag tag{};             // computed when the frame is about to be sent
    bool has_tag = false;
    std::size_t bytes() const { return header.size() + meta.size() + payload.size() + tag_bytes; }
  };

  bool is_usable();
  bool fill();
  bool take_header();
  bool check_tag();
  void note_received(std::span<const std::byte> bytes);
  std::size_t take_buffered(std::byte* to, std::size_t most);
  void keep_descriptors(const msghdr& message);
  std::size_t gather(std::span<iovec> parts, std::size_t& bytes);
  void complete(Unsent& frame) const;
  void drop_sent(std::size_t bytes);
  void end(int error, std::string reason);

  KeptFd socket_;
  bool ended_ = false;
  bool closed_by_peer_ = false;
  int error_ = 0;
  int broken_ = 0;  // errno of a send to a peer that has gone; 0: none
  std::string reason_;

  std::uint64_t moved_bytes_ = 0;
  std::vector<std::byte> buffer_;  // received bytes first_ … last_ - 1 are not consumed yet
  std::size_t first_ = 0;
  std::size_t last_ = 0;
  bool drained_ = false;  // the last read got less than requested, so the socket is empty: skip one read
  ReceiveStage stage_ = ReceiveStage::header;
  Header header_;
  std::string meta_;
  std::span<std::byte> payload_;         // rest of its destination
  std::uint64_t received_ = 0;           // frames received
  std::uint32_t most_meta_ = most_meta;  // see limit_meta()
  Fd passed_;                            // descriptor that was received
  std::optional<FrameKey> receives_;     // session key of the incoming frames; nothing: they have no tags
  std::optional<Poly1305> expected_;     // tag of the current frame

  std::deque<Unsent> unsent_;
  std::size_t sent_ = 0;           // bytes of the first frame that are sent
  std::uint64_t queued_ = 0;       // frames queued so far
  int passing_ = -1;               // descriptor to pass; -1: none
  std::optional<FrameKey> sends_;  // session key of the outgoing frames
};

}  // namespace hocket::transport
