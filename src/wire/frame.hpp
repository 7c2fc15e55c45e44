// The frames in which the parts of hocket speak: 4 bytes little-endian length of the payload, then one MessagePack map
// (ARCHITECTURE.md, "Frames"). Both directions read the fields of event/fields.hpp.
//
// No function throws (but for memory that runs out) or keeps what it was given. Thread-safe: nothing is shared.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "event/event.hpp"

namespace hocket::wire {

inline constexpr std::int64_t protocol_version = 1;
inline constexpr std::size_t max_payload_bytes = 1 << 16;

// Appends one frame to `out`. Fails, with `out` as it was, where the payload would be longer than the bound.
Status encode(const event::Body& body, std::string& out);

// The same with time and origin, for the subscriber's `subscription`. Where a field of the event has the key of a stamp
// (APPLICATION's `application`), the field is sent.
Status encode(const event::Event& event, std::int64_t subscription, std::string& out);

struct Message {
  event::Event event;             // time and origin only as far as they were sent
  std::int64_t subscription = 0;  // 0: not sent because of a subscription
};

// The event in one payload. Unknown keys are ignored, missing ones keep their defaults; texts become valid UTF-8
// (base/utf8.hpp). Errors say what was wrong with
// which field; the sender is then not one of ours, or broken, and its connection should be closed.
Result<Message> decode(std::string_view payload);

// Cuts a stream of bytes into payloads. Holds at most one frame and what was read behind it.
class Splitter {
 public:
  struct Space {
    char* data;
    std::size_t size;
  };

  // Where to read the next bytes to; valid until the next call. Never empty.
  Space space();
  // `size` bytes were read there.
  void filled(std::size_t size) { end_ += size; }

  // The next whole payload, valid until `space` is called; nothing where more bytes are needed; an error where the
  // length is out of bounds, after which the stream cannot be understood any more.
  Result<std::optional<std::string_view>> next();

 private:
  std::vector<char> bytes_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace hocket::wire
