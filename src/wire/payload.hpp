// A MessagePack payload taken apart, before it is known which event it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"

namespace hocket::wire {

// Anything that no field can hold: an array, a map, bytes, an extension, nil.
struct Unusable {};

using Scalar = std::variant<Unusable, std::int64_t, std::uint64_t, double, bool, std::string_view>;

struct Entry {
  std::string_view key;
  Scalar value;  // uint64 only above the range of int64
};

struct Payload {
  std::vector<Entry> entries;
  std::optional<std::vector<Entry>> properties;  // the map under the key `properties`
};

inline constexpr std::size_t max_keys = 256;  // in one map
inline constexpr int max_depth = 8;           // of what is skipped

// The keys and texts point into `bytes`.
Result<Payload> parse(std::string_view bytes);

}  // namespace hocket::wire
