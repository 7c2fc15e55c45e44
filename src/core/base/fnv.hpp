// FNV-1a, a hash of texts that, unlike std::hash, is the same in all processes and builds. Pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace hocket {

constexpr std::uint64_t fnv_basis = 0xcbf29ce484222325U;

// Returns the hash of the text, continued from `from`.
constexpr std::uint64_t fnv1a(std::string_view text, std::uint64_t from = fnv_basis) {
  for (const char c : text) from = (from ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return from;
}

}  // namespace hocket
