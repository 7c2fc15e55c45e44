// Texts from outside are made valid UTF-8 on entry. File names may contain any bytes, but JSON and MessagePack may
// not, and the coordinator must decide on exactly the text in the trace. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hocket {

// Returns the length of the UTF-8 sequence at the start of `text`; 0 if there is none. Precondition: not empty.
constexpr std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xc2 && first < 0xe0 ? 2
                             : (first & 0xf0) == 0xe0      ? 3
                             : (first & 0xf8) == 0xf0      ? 4
                                                           : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // These are overlong encodings, surrogates, and values beyond the last code point.
  const bool wrong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) >= 0xa0) ||
                     (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) >= 0x90) || first > 0xf4;
  return wrong ? 0 : length;
}

// Appends the byte as \xNN.
inline void append_hexadecimal(char c, std::string& out) {
  constexpr std::string_view digits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  out += {'\\', 'x', digits[byte >> 4U], digits[byte & 0xfU]};
}

// Returns the text with each byte outside a valid sequence written as \xNN, so that different texts stay different.
inline std::string to_utf8(std::string_view text) {
  unsigned char bits = 0;
  for (const char c : text) bits |= static_cast<unsigned char>(c);
  if (bits < 0x80) return std::string{text};  // most texts are ASCII; each START_IO comes here

  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      append_hexadecimal(text.front(), out);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

// Returns the text as one line that a log or a terminal can show: each byte of a control character, and each byte
// outside a valid sequence, is written as \xNN. A name from outside can then neither forge a line nor move the cursor.
inline std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const bool is_control = byte(0) < 0x20 || byte(0) == 0x7f || (length == 2 && byte(0) == 0xc2 && byte(1) < 0xa0);
    if (length == 0 || is_control) {
      for (const char c : text.substr(0, length == 0 ? 1 : length)) append_hexadecimal(c, out);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace hocket
