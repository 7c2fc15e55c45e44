#include <algorithm>
#include <cstring>

#include "wire/frame.hpp"

namespace hocket::wire {
namespace {

// The length field, and the smallest buffer offered for a read.
constexpr std::size_t header_bytes = 4;
constexpr std::size_t least_space_bytes = 4096;

}  // namespace

Splitter::Space Splitter::space() {
  // The incomplete frame moves to the front, so the buffer grows only if little room is left behind it.
  if (begin_ > 0) {
    std::memmove(bytes_.data(), bytes_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (bytes_.size() - end_ < least_space_bytes) bytes_.resize(std::max(2 * bytes_.size(), end_ + least_space_bytes));
  return {bytes_.data() + end_, bytes_.size() - end_};
}

Result<std::optional<std::string_view>> take_payload(std::string_view& bytes) {
  if (bytes.size() < header_bytes) return std::optional<std::string_view>{};
  std::size_t length = 0;
  for (std::size_t i = header_bytes; i-- > 0;) {
    length = length << 8U | static_cast<unsigned char>(bytes[i]);
  }
  // A wrong length makes the position of the next frame unknown, so there is no recovery.
  if (length == 0 || length > max_payload_bytes) {
    return Error{"a frame of " + std::to_string(length) + " bytes was announced; frames have 1 to " +
                 std::to_string(max_payload_bytes)};
  }
  if (bytes.size() - header_bytes < length) return std::optional<std::string_view>{};
  const std::string_view payload = bytes.substr(header_bytes, length);
  bytes.remove_prefix(header_bytes + length);
  return std::optional{payload};
}

Result<std::optional<std::string_view>> Splitter::next() {
  std::string_view rest{bytes_.data() + begin_, end_ - begin_};
  auto payload = take_payload(rest);
  begin_ = end_ - rest.size();
  return payload;
}

}  // namespace hocket::wire
