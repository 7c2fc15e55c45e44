// What the application, and the libraries that it uses, have said of the I/O phase to come: a stack of keys and values
// (CALCioM, section III-C, Prepare and Complete). What was said last of a key holds.
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

  // `complain` gets one line for each value that should be a number and is none: it is left out.
  void push(const Pairs& pairs, const std::function<void(std::string_view)>& complain);
  // Takes away what was pushed last; false: nothing is left.
  bool pop();

  // "" where nobody has said it.
  std::string value(std::string_view key) const;
  // Of all processes, in the phase: `bytes`, else `files` * `rounds` * `bytes_per_round`, of which those not said are
  // 1, but the last; 0: not known.
  std::int64_t phase_bytes() const;
  // "KEY=VALUE\n" for each key.
  std::string text() const;

 private:
  std::vector<Pairs> levels_;
};

}  // namespace hocket::runtime
