// This file defines a MessagePack payload as a flat list of keys and values, before it is known which event it carries.
// Internal to the decoder; pure and thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"

namespace hocket::wire {

// A value that no field can hold: an array, a map, bytes, an extension or nil.
struct Unusable {};

// A value of a field. The text points into the payload.
using Scalar = std::variant<Unusable, std::int64_t, std::uint64_t, double, bool, std::string_view>;

// One key of a map with its value.
struct Entry {
  std::string_view key;
  Scalar value;  // uint64 only above the range of int64
};

// The outermost map of a payload, in the order in which it was sent.
struct Payload {
  std::vector<Entry> entries;
  std::optional<std::vector<Entry>> properties;  // entries of the map under the key `properties`
};

// Bounds on what a payload may contain, against hostile senders.
inline constexpr std::size_t max_keys = 256;  // in one map
inline constexpr int max_depth = 8;           // of nested containers, the outermost map included

// Parses a payload. Keys and texts point into `bytes`, which must outlive the result. Fails if it is no MessagePack
// map, exceeds the bounds, or has bytes after the map.
Result<Payload> parse(std::string_view bytes);

}  // namespace hocket::wire
