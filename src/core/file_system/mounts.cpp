#include "file_system/mounts.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <tuple>

namespace hocket::file_system {
namespace {

constexpr std::string_view blanks = " \t\r";

// Takes the text up to the separator, or all that is left.
std::string_view take(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

template <class Number>
bool read_number(std::string_view text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc{} && read.ptr == end;
}

bool is_octal(char c) { return c >= '0' && c <= '7'; }

// Decodes the octal escapes, "\040" for a blank.
std::string decoded(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const bool is_escape =
        text.size() > 3 && text[0] == '\\' && is_octal(text[1]) && is_octal(text[2]) && is_octal(text[3]);
    plain += is_escape ? static_cast<char>((text[1] - '0') * 64 + (text[2] - '0') * 8 + (text[3] - '0')) : text[0];
    text.remove_prefix(is_escape ? 4 : 1);
  }
  return plain;
}

// A line is "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG…] - TYPE SOURCE OPTIONS".
std::optional<Mount> parse_mount(std::string_view line) {
  Mount mount;
  std::string_view minor_text;
  if (!read_number(take(line, ' '), mount.id)) return std::nullopt;
  take(line, ' ');
  minor_text = take(line, ' ');
  const std::string_view major_text = take(minor_text, ':');
  if (!read_number(major_text, mount.device.major_number) || !read_number(minor_text, mount.device.minor_number))
    return std::nullopt;
  mount.root = decoded(take(line, ' '));
  mount.point = decoded(take(line, ' '));
  while (!line.empty() && take(line, ' ') != "-") {
  }
  mount.type = decoded(take(line, ' '));
  mount.source = decoded(take(line, ' '));
  mount.options = decoded(take(line, ' '));
  if (mount.type.empty()) return std::nullopt;
  return mount;
}

// True if the path is the directory, or below it.
bool is_below(std::string_view path, std::string_view directory) {
  while (directory.ends_with('/')) directory.remove_suffix(1);
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(blanks), text.size());
  return text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

}  // namespace

std::vector<Mount> parse_mounts(std::string_view text) {
  std::vector<Mount> mounts;
  while (!text.empty())
    if (auto mount = parse_mount(take(text, '\n'))) mounts.push_back(std::move(*mount));
  return mounts;
}

const Mount* mount_of(const std::vector<Mount>& mounts, DeviceNumber device) {
  const auto rank = [](const Mount& mount) {
    return std::tuple(mount.root != "/", mount.point.size(), std::string_view{mount.point});
  };
  const Mount* best = nullptr;
  for (const Mount& mount : mounts)
    if (mount.device == device && (!best || rank(mount) < rank(*best))) best = &mount;
  return best;
}

const Mount* mount_with_id(const std::vector<Mount>& mounts, std::uint64_t id) {
  const auto found = std::find_if(mounts.begin(), mounts.end(), [id](const Mount& mount) { return mount.id == id; });
  return found == mounts.end() ? nullptr : &*found;
}

const Mount* mount_at(const std::vector<Mount>& mounts, std::string_view path) {
  const Mount* best = nullptr;
  for (const Mount& mount : mounts) {
    // The later of two mounts at one place hides the other.
    if (is_below(path, mount.point) && (!best || mount.point.size() >= best->point.size())) best = &mount;
  }
  return best;
}

std::string_view option_of(std::string_view options, std::string_view name) {
  while (!options.empty()) {
    std::string_view value = take(options, ',');
    if (take(value, '=') == name) return value;
  }
  return {};
}

std::string_view setting_in(std::string_view text, std::string_view name) {
  std::string_view found;
  while (!text.empty()) {
    std::string_view value = take(text, '\n');
    value = value.substr(0, value.find_first_of("#;"));
    if (trimmed(take(value, '=')) == name) found = trimmed(value);
  }
  return found;
}

}  // namespace hocket::file_system
