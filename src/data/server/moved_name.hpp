// A data set that moves from one home to another, without its bytes: what its new home must know to serve it like the
// old one. A frame carries it as text (transport::Type::adopt). Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace hocket::server {

// A published version.
struct MovedVersion {
  std::uint32_t number = 0;     // within its name
  std::uint64_t copy = 0;       // identifies its copy at the new home; 0: its bytes are lost, and readers are told so
  std::int64_t readers = 0;     // declared; 0: any
  std::int64_t done = 0;        // applications that have read it
  std::set<std::string> given;  // declared readers that have read it
  bool operator==(const MovedVersion&) const = default;
};

// A name, with the published versions in the order of their numbers.
struct MovedName {
  std::string name;
  std::uint32_t last = 0;                     // number of the version that was published last
  std::map<std::string, std::uint32_t> read;  // by application: the version it read last
  std::vector<MovedVersion> versions;
  bool operator==(const MovedName&) const = default;
};

// Returns the text form; parse_moved_name() inverts it. Names of data sets and applications have no control characters.
std::string text_of(const MovedName& moved);
// Parses the text form. The error says which line is wrong. Numbers are not checked against each other.
Result<MovedName> parse_moved_name(std::string_view text);

}  // namespace hocket::server
