#include "server/moved_name.hpp"

#include <algorithm>
#include <charconv>

#include "base/utf8.hpp"

namespace hocket::server {
namespace {

// Removes the text up to the next `end`, and that, from the front. Returns the removed text without `end`.
std::string_view take(std::string_view& text, char end) {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view word = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return word;
}

// Reads the next word as a number of this type. False if it is none.
template <class Number>
bool take_number(std::string_view& line, Number& number) {
  const std::string_view word = take(line, ' ');
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc{} && end == word.data() + word.size() && number >= 0;
}

// Adds what one line after the first says. False if it says nothing.
bool take_line(std::string_view line, MovedName& moved) {
  const std::string_view what = take(line, ' ');
  if (what == "last") return take_number(line, moved.last) && line.empty();
  if (what == "read") {
    std::uint32_t number = 0;
    return take_number(line, number) && !line.empty() && moved.read.emplace(line, number).second;
  }
  if (what == "version") {
    MovedVersion& version = moved.versions.emplace_back();
    return take_number(line, version.number) && take_number(line, version.copy) && take_number(line, version.readers) &&
           take_number(line, version.done) && line.empty();
  }
  return what == "given" && !moved.versions.empty() && !line.empty() &&
         moved.versions.back().given.emplace(line).second;
}

}  // namespace

std::string text_of(const MovedName& moved) {
  std::string text = moved.name + "\nlast " + std::to_string(moved.last) + "\n";
  for (const auto& [application, number] : moved.read)
    text += "read " + std::to_string(number) + " " + application + "\n";
  for (const MovedVersion& version : moved.versions) {
    text += "version " + std::to_string(version.number) + " " + std::to_string(version.copy) + " " +
            std::to_string(version.readers) + " " + std::to_string(version.done) + "\n";
    for (const std::string& application : version.given) text += "given " + application + "\n";
  }
  return text;
}

Result<MovedName> parse_moved_name(std::string_view text) {
  MovedName moved;
  moved.name = take(text, '\n');
  for (int number = 2; !text.empty(); ++number) {
    const std::string_view line = take(text, '\n');
    if (!take_line(line, moved))
      return Error{"line " + std::to_string(number) + " of a data set that moves: '" + printable(line.substr(0, 80)) +
                   "'"};
  }
  return moved;
}

}  // namespace hocket::server
