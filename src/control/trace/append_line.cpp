#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/utf8.hpp"
#include "event/fields.hpp"
#include "trace/line.hpp"

namespace hocket::trace {
namespace {

// JSON requires escapes for control characters.
void append_escaped(char c, std::string& out) {
  constexpr std::string_view digits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  out += "\\u00";
  out += digits[byte >> 4U];
  out += digits[byte & 0xfU];
}

// std::to_chars writes the shortest text that reads back as the same number.
template <class Number>
void append_number(Number v, std::string& out) {
  std::array<char, 40> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), v).ptr;
  out.append(digits.data(), end);
}

// Each `append_value` writes a field's value by its type. Times and durations are integers in nanoseconds.
void append_value(const std::string& v, std::string& out) { append_json(v, out); }
void append_value(std::int64_t v, std::string& out) { append_number(v, out); }
void append_value(bool v, std::string& out) { out += v ? "true" : "false"; }
void append_value(double v, std::string& out) {
  if (!std::isfinite(v)) {
    out += "null";
    return;
  }
  const std::size_t start = out.size();
  append_number(v, out);
  // A whole number gets a fraction, so that it is read back as a floating-point number.
  if (out.find_first_of(".e", start) == std::string::npos) out += ".0";
}
void append_value(Duration v, std::string& out) { append_number(static_cast<std::int64_t>(v.count()), out); }
void append_value(Time v, std::string& out) { append_number(to_ns(v), out); }
template <class Tag>
void append_value(Id<Tag> v, std::string& out) {
  append_number(v.value, out);
}

void append_value(const event::Properties& v, std::string& out) { append_json(v, out); }
void append_value(const event::Reason& v, std::string& out) { append_json(event::properties_of(v), out); }

// Appends the key of a field of hocket's own, which needs no escape, with what stands around it. One append for all is
// what makes a line cheap.
void append_own_key(std::string_view key, std::string& out) {
  constexpr std::size_t longest = 58;
  std::array<char, longest + 6> text;
  key = key.substr(0, longest);
  char* const begin = text.data();
  char* end = std::copy_n(", \"", 3, begin);
  end = std::copy(key.begin(), key.end(), end);
  end = std::copy_n("\": ", 3, end);
  out.append(begin, end);
}

void append_own_field(std::string_view key, const auto& value, std::string& out) {
  append_own_key(key, out);
  append_value(value, out);
}

void append_field(std::string_view key, const auto& value, std::string& out) {
  // No counter of fields is needed: only the first one follows a brace.
  out += out.back() == '{' ? "" : ", ";
  append_json(key, out);
  out += ": ";
  append_value(value, out);
}

// Returns the number of bytes at the begin of `text` that JSON has as they are, of ASCII alone.
std::size_t plain_bytes(std::string_view text) {
  const auto is_special = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte >= 0x80 || c == '"' || c == '\\';
  };
  return static_cast<std::size_t>(std::find_if(text.begin(), text.end(), is_special) - text.begin());
}

}  // namespace

void append_json(std::string_view text, std::string& out) {
  out += '"';
  while (true) {
    const std::size_t plain = plain_bytes(text);
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const std::size_t length = utf8_length(text);
    const char c = text.front();
    // Only invalid bytes and the characters that JSON reserves are changed.
    if (length == 0) {
      out += "\xef\xbf\xbd";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      append_escaped(c, out);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

void append_json(const event::Properties& properties, std::string& out) {
  out += '{';
  for (const auto& [key, value] : properties) {
    std::visit([&, &k = key](const auto& v) { append_field(k, v, out); }, value);
  }
  out += '}';
}

namespace {

// Appends a line of the fields that `is_wanted(key, value)` selects.
template <class IsWanted>
void append(Direction direction, const event::Event& event, IsWanted is_wanted, std::string& out) {
  out += direction == Direction::in ? "{\"in\": " : "{\"out\": ";
  append_json(type_name(event.body), out);
  append_own_field("time_ns", event.time, out);
  // Commands have no node: their addressee is a member.
  if (direction == Direction::in) append_own_field("node", event.origin.node, out);
  append_own_field("application", event.origin.application, out);
  append_own_field("member", event.origin.member, out);
  std::visit(
      [&](const auto& body) {
        fields(body, [&](const char* key, const auto& value) {
          if (is_wanted(key, value)) append_own_field(key, value, out);
        });
      },
      event.body);
  out += '}';
}

}  // namespace

void append_line(Direction direction, const event::Event& event, std::string& out) {
  const auto everything = [](const char*, const auto&) { return true; };
  append(direction, event, everything, out);
  out += '\n';
}

void append_facts(const event::Event& command, const std::vector<std::string_view>& without, std::string& out) {
  const auto is_fact = [&without]<class Field>(std::string_view key, const Field&) {
    return !std::is_same_v<Field, event::Prose> && std::find(without.begin(), without.end(), key) == without.end();
  };
  append(Direction::out, command, is_fact, out);
}

}  // namespace hocket::trace
