// The targets whose policy the operator holds (HELD_TARGETS), as hocketd told this process. An application that was
// told not to coordinate still requests grants for them.
//
// It keeps one hash for each name, so that a signal handler may look a name up: no lock, no memory. Two names with one
// hash would make a process request a grant that it does not need. Thread-safe for one writer.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hocket::runtime {

class HeldTargets {
 public:
  static constexpr std::size_t most = 64;  // as coordinator::PoliciesInForce::most_targets

  // Replaces all names; one a line.
  void set(std::string_view names) noexcept {
    std::size_t count = 0;
    while (!names.empty() && count < most) {
      const std::size_t end = names.find('\n');
      hashes_[count++].store(hash_of(names.substr(0, end)), std::memory_order_relaxed);
      names.remove_prefix(end == std::string_view::npos ? names.size() : end + 1);
    }
    count_.store(count, std::memory_order_release);
  }
  bool has(std::string_view name) const noexcept {
    const std::size_t count = count_.load(std::memory_order_acquire);
    if (count == 0) return false;
    const std::uint64_t hash = hash_of(name);
    for (std::size_t i = 0; i < count; ++i)
      if (hashes_[i].load(std::memory_order_relaxed) == hash) return true;
    return false;
  }

 private:
  // FNV-1a.
  static std::uint64_t hash_of(std::string_view name) noexcept {
    std::uint64_t hash = 14695981039346656037U;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
    return hash;
  }

  std::array<std::atomic<std::uint64_t>, most> hashes_{};
  std::atomic<std::size_t> count_ = 0;
};

}  // namespace hocket::runtime
