// This file defines a MessagePack payload as a flat list of keys and values, before it is known which event it carries.
// Internal to the decoder; pure and thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
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
struct MapEntry {
  std::string_view key;
  Scalar value;  // uint64 only above the range of int64
};

// A map within the outermost one, under its key.
struct InnerMap {
  std::string_view key;
  std::vector<MapEntry> entries;
};

// The outermost map of a payload, in the order in which it was sent. In `entries`, a map is Unusable.
struct Payload {
  std::vector<MapEntry> entries;
  std::vector<InnerMap> maps;

  // Returns the entries of the map under that key, or nullptr.
  const std::vector<MapEntry>* find_map(std::string_view key) const {
    const auto found = std::find_if(maps.begin(), maps.end(), [key](const InnerMap& map) { return map.key == key; });
    return found == maps.end() ? nullptr : &found->entries;
  }
};

// Bounds on what a payload may contain, against hostile senders.
inline constexpr std::size_t max_keys = 256;  // in one map
inline constexpr int max_depth = 8;           // of nested containers, the outermost map included

// Parses a payload, in place of what `payload` had. Keys and texts point into `bytes`, which must outlive it. Fails if
// the bytes are no MessagePack map, exceed the bounds, or go on after the map.
Status parse(std::string_view bytes, Payload& payload);

}  // namespace hocket::wire
