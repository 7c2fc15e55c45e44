#include "event/server_map.hpp"

#include <algorithm>

#include "base/fnv.hpp"
#include "base/utf8.hpp"

namespace hocket::event {
namespace {

constexpr std::string_view digits = "0123456789ABCDEF";
constexpr std::string_view set_aside = " slow:";

// Spaces are escaped too, because they separate the three parts of a line.
void append_escaped(std::string_view text, std::string& out) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > ' ' && byte < 0x7f && c != '%') {
      out += c;
    } else {
      out += {'%', digits[byte >> 4U], digits[byte & 0xfU]};
    }
  }
}

// Appends the unescaped text to `out`. Returns false if a '%' is not followed by two upper-case hexadecimal digits.
bool unescape(std::string_view text, std::string& out) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const std::size_t high = i + 1 < text.size() ? digits.find(text[i + 1]) : std::string_view::npos;
    const std::size_t low = i + 2 < text.size() ? digits.find(text[i + 2]) : std::string_view::npos;
    if (high == std::string_view::npos || low == std::string_view::npos) return false;
    out += static_cast<char>(high << 4U | low);
    i += 2;
  }
  return true;
}

// Removes the text up to the next `end`, and that, from the front. Returns the removed text without `end`.
std::string_view take(std::string_view& text, char end) {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view word = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return word;
}

// Returns the weight of a server for a data set. The server with the highest weight is its home.
std::uint64_t weight(const ServerMap::MappedServer& server, std::string_view data_set) {
  std::uint64_t mixed = fnv1a(data_set, fnv1a(server.name) ^ 1U);
  mixed = (mixed ^ mixed >> 32U) * 0xd6e8feb86659fd93U;  // else names with different last letters get close weights
  return mixed ^ mixed >> 32U;
}

// Orders servers by their weights for a data set. Any fixed order breaks a tie.
struct Lighter {
  std::string_view data_set;

  bool operator()(const ServerMap::MappedServer& one, const ServerMap::MappedServer& other) const {
    const std::uint64_t first = weight(one, data_set), second = weight(other, data_set);
    return first != second ? first < second : one.name < other.name;
  }
};

}  // namespace

bool serves(const ServerMap::MappedServer& server, std::string_view path) {
  // The match must end at a '/', so that /scratch/a does not serve /scratch/ab.
  const std::string& directory = server.directory;
  return path.size() > directory.size() && path.starts_with(directory) &&
         (directory.ends_with('/') || path[directory.size()] == '/');
}

std::vector<ServerMap::MappedServer> servers_of(const ServerMap& map, std::string_view path) {
  std::vector<ServerMap::MappedServer> serving;
  for (const ServerMap::MappedServer& server : map.servers)
    if (!server.set_aside && serves(server, path)) serving.push_back(server);
  std::sort(serving.begin(), serving.end(), [](const auto& one, const auto& other) { return one.name < other.name; });
  if (serving.size() > most_servers_of_file) serving.resize(most_servers_of_file);
  return serving;
}

Placement placement_of(std::span<const std::string> names) {
  if (names.size() <= 1) return names.empty() ? unknown_placement : one_server;
  constexpr std::uint64_t bits = (std::uint64_t{1} << 60U) - 1;  // frames carry 62
  std::uint64_t mixed = fnv_basis;
  for (const std::string& name : names) mixed = fnv1a("\n", fnv1a(name, mixed));
  return static_cast<Placement>((mixed ^ mixed >> 60U) & bits) | 2;  // neither of the two special values
}

Placement placement_at(const ServerMap& map, std::string_view path, std::string_view server) {
  std::vector<std::string> names;
  for (const ServerMap::MappedServer& one : servers_of(map, path)) names.push_back(one.name);
  return std::find(names.begin(), names.end(), server) == names.end() ? unknown_placement : placement_of(names);
}

std::optional<std::string_view> data_set_of(std::string_view path) {
  if (!path.starts_with(data_set_prefix)) return std::nullopt;
  return path.substr(data_set_prefix.size());
}

const ServerMap::MappedServer* home_of(const ServerMap& map, std::string_view data_set) {
  const auto home = std::max_element(map.servers.begin(), map.servers.end(), Lighter{data_set});
  return home == map.servers.end() ? nullptr : &*home;
}

std::vector<ServerMap::MappedServer> by_weight(const ServerMap& map, std::string_view data_set) {
  std::vector<ServerMap::MappedServer> servers = map.servers;
  std::sort(servers.rbegin(), servers.rend(), Lighter{data_set});
  return servers;
}

std::vector<ServerMap::MappedServer> servers_of_data_set(const ServerMap& map, std::string_view data_set,
                                                         std::string_view home) {
  std::vector<ServerMap::MappedServer> servers = by_weight(map, data_set);
  const auto is_home = [home](const ServerMap::MappedServer& one) { return one.name == home; };
  const auto found = std::find_if(servers.begin(), servers.end(), is_home);
  if (found != servers.end()) std::rotate(servers.begin(), found, found + 1);
  if (!servers.empty()) {
    const auto is_aside = [](const ServerMap::MappedServer& one) { return one.set_aside; };
    servers.erase(std::remove_if(servers.begin() + 1, servers.end(), is_aside), servers.end());
  }
  if (servers.size() > most_servers_of_file) servers.resize(most_servers_of_file);
  return servers;
}

std::string text_of(const std::vector<ServerMap::MappedServer>& servers) {
  std::string text;
  for (const ServerMap::MappedServer& server : servers) {
    text += server.name + " ";
    append_escaped(server.directory, text);
    text += " " + server.addresses;
    if (server.set_aside) text += set_aside;
    text += "\n";
  }
  return text;
}

Result<ServerMap> parse_server_map(std::int64_t epoch, std::string_view text) {
  ServerMap map{epoch, {}};
  while (!text.empty()) {
    const std::string_view line = take(text, '\n');
    std::string_view rest = line;
    ServerMap::MappedServer server;
    server.name = take(rest, ' ');
    const bool whole = unescape(take(rest, ' '), server.directory);
    server.set_aside = rest.ends_with(set_aside);
    if (server.set_aside) rest.remove_suffix(set_aside.size());
    server.addresses = rest;
    if (!whole || server.name.empty() || server.directory.empty() || server.addresses.empty()) {
      return Error{"server map of epoch " + std::to_string(epoch) + ", line " + std::to_string(map.servers.size() + 1) +
                   ": '" + printable(line.substr(0, 80)) + "' is not NAME DIRECTORY ADDRESSES"};
    }
    map.servers.push_back(std::move(server));
  }
  return map;
}

}  // namespace hocket::event
