#include "event/server_map.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/fnv.hpp"
#include "base/utf8.hpp"

namespace hocket::event {
namespace {

constexpr std::string_view digits = "0123456789ABCDEF";
constexpr std::string_view set_aside = " slow:";
constexpr std::string_view weighed = " weight:";

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

// Removes a weight from the end of the addresses, if there is one. Returns false if it is invalid.
bool take_weight(std::string_view& addresses, int& weight) {
  const std::size_t at = addresses.rfind(weighed);
  if (at == std::string_view::npos) return true;
  const char* const end = addresses.data() + addresses.size();
  const auto [rest, error] = std::from_chars(addresses.data() + at + weighed.size(), end, weight);
  addresses = addresses.substr(0, at);
  return error == std::errc{} && rest == end && weight >= 1 && weight <= full_weight;
}

// Returns the rank of a server for a data set. The server with the highest rank is its home.
std::uint64_t rank_of(const ServerMap::MappedServer& server, std::string_view data_set) {
  std::uint64_t mixed = fnv1a(data_set, fnv1a(server.name) ^ 1U);
  mixed = (mixed ^ mixed >> 32U) * 0xd6e8feb86659fd93U;  // else names with different last letters get close ranks
  return mixed ^ mixed >> 32U;
}

// Orders servers by their ranks for a data set. Any fixed order breaks a tie.
struct Lower {
  std::string_view data_set;

  bool operator()(const ServerMap::MappedServer& one, const ServerMap::MappedServer& other) const {
    const std::uint64_t first = rank_of(one, data_set), second = rank_of(other, data_set);
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

Placement placement_of(std::span<const std::string> names, std::span<const int> weights) {
  if (names.size() <= 1) return names.empty() ? unknown_placement : one_server;
  constexpr std::uint64_t bits = (std::uint64_t{1} << 60U) - 1;  // frames carry 62
  std::uint64_t mixed = fnv_basis;
  for (const std::string& name : names) mixed = fnv1a("\n", fnv1a(name, mixed));
  const auto differs = [&](int weight) { return weight != weights.front(); };
  if (std::any_of(weights.begin(), weights.end(), differs)) {
    const int common = std::accumulate(weights.begin(), weights.end(), 0, std::gcd<int, int>);
    for (const int weight : weights) mixed = fnv1a(std::to_string(weight / common) + "\n", mixed);
  }
  return static_cast<Placement>((mixed ^ mixed >> 60U) & bits) | 2;  // neither of the two special values
}

Placement placement_at(const ServerMap& map, std::string_view path, std::string_view server) {
  std::vector<std::string> names;
  std::vector<int> weights;
  for (const ServerMap::MappedServer& one : servers_of(map, path)) {
    names.push_back(one.name);
    weights.push_back(one.weight);
  }
  return std::find(names.begin(), names.end(), server) == names.end() ? unknown_placement
                                                                      : placement_of(names, weights);
}

std::optional<std::string_view> data_set_of(std::string_view path) {
  if (!path.starts_with(data_set_prefix)) return std::nullopt;
  return path.substr(data_set_prefix.size());
}

const ServerMap::MappedServer* home_of(const ServerMap& map, std::string_view data_set) {
  const auto home = std::max_element(map.servers.begin(), map.servers.end(), Lower{data_set});
  return home == map.servers.end() ? nullptr : &*home;
}

std::vector<ServerMap::MappedServer> ranked_for(const ServerMap& map, std::string_view data_set) {
  std::vector<ServerMap::MappedServer> servers = map.servers;
  std::sort(servers.rbegin(), servers.rend(), Lower{data_set});
  return servers;
}

std::vector<ServerMap::MappedServer> servers_of_data_set(const ServerMap& map, std::string_view data_set,
                                                         std::string_view home) {
  std::vector<ServerMap::MappedServer> servers = ranked_for(map, data_set);
  const auto is_home = [home](const ServerMap::MappedServer& one) { return one.name == home; };
  const auto found = std::find_if(servers.begin(), servers.end(), is_home);
  if (found != servers.end()) std::rotate(servers.begin(), found, found + 1);
  if (!servers.empty()) {
    const auto is_aside = [](const ServerMap::MappedServer& one) { return one.set_aside; };
    servers.erase(std::remove_if(servers.begin() + 1, servers.end(), is_aside), servers.end());
  }
  if (servers.size() > most_servers_of_file) servers.resize(most_servers_of_file);
  for (ServerMap::MappedServer& server : servers) server.weight = full_weight;
  return servers;
}

std::string text_of(const std::vector<ServerMap::MappedServer>& servers) {
  std::string text;
  for (const ServerMap::MappedServer& server : servers) {
    text += server.name + " ";
    append_escaped(server.directory, text);
    text += " " + server.addresses;
    if (server.weight != full_weight) text.append(weighed).append(std::to_string(server.weight));
    if (server.set_aside) text += set_aside;
    text += "\n";
  }
  return text;
}

Result<ServerMap> parse_server_map(std::int64_t epoch, std::string_view text) {
  ServerMap map{epoch, {}, {}};
  while (!text.empty()) {
    const std::string_view line = take(text, '\n');
    std::string_view rest = line;
    ServerMap::MappedServer server;
    server.name = take(rest, ' ');
    bool whole = unescape(take(rest, ' '), server.directory);
    server.set_aside = rest.ends_with(set_aside);
    if (server.set_aside) rest.remove_suffix(set_aside.size());
    whole &= take_weight(rest, server.weight);
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
