// Keeps what the application and its libraries have announced of the next I/O phase: a stack of keys and values
// (CALCioM, section III-C, Prepare and Complete). The latest value of a key holds.
//
// Pure. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hocket::runtime {

class Prepared {
 public:
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  // Pushes a level. A value that should be a number and is none is left out, and `complain` gets one line about it.
  void push(const Pairs& pairs, const std::function<void(std::string_view)>& complain);
  // Removes the latest level. Returns false if there is none.
  bool pop();

  // Returns the latest value of the key, or "" if it has none.
  std::string value(std::string_view key) const;
  // Returns the bytes that all processes move in the phase, or 0 if unknown. The key `bytes` gives them, else `files` *
  // `rounds` * `bytes_per_round`. Without `files` or `rounds`, 1 is taken; without `bytes_per_round`, 0.
  std::int64_t phase_bytes() const;
  // Returns "KEY=VALUE\n" for each key, for START_IO. Lines that would make it longer than 8192 bytes are left out.
  std::string text() const;

 private:
  std::vector<Pairs> levels_;  // the latest last
};

}  // namespace hocket::runtime
