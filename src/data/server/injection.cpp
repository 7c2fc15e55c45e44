#include "server/injection.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string>

namespace hocket::server {
namespace {

// A word of the syntax, and the number that it stands for.
struct NamedNumber {
  std::string_view name;
  std::int64_t value;
};
constexpr std::array errors = {NamedNumber{"ENOSPC", ENOSPC}, NamedNumber{"EIO", EIO}, NamedNumber{"EDQUOT", EDQUOT},
                               NamedNumber{"EFBIG", EFBIG}};
constexpr std::array units = {NamedNumber{"us", 1'000}, NamedNumber{"ms", 1'000'000}, NamedNumber{"s", 1'000'000'000}};

template <std::size_t count>
std::optional<std::int64_t> value_of(const std::array<NamedNumber, count>& known, std::string_view name) {
  for (const NamedNumber& one : known) {
    if (one.name == name) return one.value;
  }
  return std::nullopt;
}

// A number of at most a million, and the text behind it.
struct Counted {
  std::int64_t number = -1;  // -1: no number
  std::string_view rest;
};
Counted counted(std::string_view text) {
  Counted read;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read.number);
  constexpr std::int64_t most = 1'000'000;
  if (error != std::errc{} || read.number < 0 || read.number > most) return {};
  read.rest = text.substr(static_cast<std::size_t>(end - text.data()));
  return read;
}

bool take(Injection& injection, std::string_view key, std::string_view value) {
  if (key == "errno") {
    const auto error = value_of(errors, value);
    injection.error = static_cast<int>(error.value_or(0));
    return error.has_value();
  }
  const Counted read = counted(value);
  if (key == "after") {
    injection.after = read.number;
    return read.number >= 1 && read.rest.empty();
  }
  const auto unit = value_of(units, read.rest);
  if (key != "delay" || read.number < 0 || !unit) return false;
  injection.delay = Duration{read.number * *unit};
  return true;
}

}  // namespace

Result<Injection> read_injection(std::string_view text) {
  Injection injection;
  for (std::size_t at = 0; (at = text.find_first_not_of(' ', at)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    const std::size_t equals = std::min(word.find('='), word.size());
    if (equals == word.size() || !take(injection, word.substr(0, equals), word.substr(equals + 1))) {
      return Error{"'" + std::string{word} +
                   "' cannot be injected; write delay=512us, errno=ENOSPC (EIO, EDQUOT, EFBIG), after=3"};
    }
    at = end;
  }
  return injection;
}

}  // namespace hocket::server
