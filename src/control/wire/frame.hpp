// Frames carry every message between the parts of hocket. A frame is the payload's length in 4 bytes, little-endian,
// then one MessagePack map (docs/design/bus.md). Encoder and decoder both use the field lists of
// event/fields.hpp.
//
// No function throws, except if memory runs out, and none keeps its arguments. Thread-safe: nothing is shared.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "event/event.hpp"

namespace hocket::wire {

// Version of the protocol (key `v`), and the largest payload in bytes. The decoder refuses any other version. In
// version 1, DECISION and OUTCOME had sentences in place of facts.
inline constexpr std::int64_t protocol_version = 2;
inline constexpr std::size_t max_payload_bytes = 1 << 16;

// Appends one frame to `out`. Fails if the payload would exceed the bound; `out` is then unchanged.
Status encode(const event::Body& body, std::string& out);

// Appends a frame with time, origin and `subscription`, for a subscriber. If a field of the event has the same key as
// one of these stamps (APPLICATION's `application`), only the field is sent.
Status encode(const event::Event& event, std::int64_t subscription, std::string& out);

// A decoded frame.
struct DecodedFrame {
  event::Event event;             // time and origin only if they were sent
  std::int64_t subscription = 0;  // 0: not sent because of a subscription
};

// Decodes one payload, without its length. Unknown keys are ignored, missing keys keep their defaults, and texts become
// valid UTF-8 (base/utf8.hpp). An error says what is wrong with which field. The sender is then foreign or broken, and
// the caller should close its connection.
Result<DecodedFrame> decode(std::string_view payload);

// Returns the payload of the frame at the begin of `bytes`, and removes that frame from them. Returns nothing if it is
// incomplete, and an error if its length is out of bounds.
Result<std::optional<std::string_view>> take_payload(std::string_view& bytes);

// Splits a byte stream into payloads. Its memory is bounded: if the caller takes all payloads before the next read, it
// holds at most one incomplete frame and the bytes of one read. One splitter belongs to one connection; not
// thread-safe.
class Splitter {
 public:
  // A buffer for the next read.
  struct Space {
    char* data;
    std::size_t size;
  };

  // Returns the buffer for the next read, valid until the next call and never empty. Invalidates the payloads of
  // `next`.
  Space space();
  // Records that `size` bytes were read into that buffer.
  void filled(std::size_t size) { end_ += size; }

  // Returns the next complete payload, valid until `space` is called, or nothing if more bytes are needed. Returns an
  // error if a length is out of bounds; the rest of the stream is then unreadable.
  Result<std::optional<std::string_view>> next();
  // True if it holds no byte that `next` has not returned.
  bool is_empty() const { return begin_ == end_; }

 private:
  std::vector<char> bytes_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace hocket::wire
