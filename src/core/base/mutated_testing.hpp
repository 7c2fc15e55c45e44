// Mutations makes valid bytes with faults in them, for tests of parsers. $HOCKET_MUTATIONS sets how many a test tries;
// `./dev test --long` tries a million, with sanitizers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/splitmix.hpp"

namespace hocket {

// A generator. Equal seeds give equal sequences, so a failing test can be repeated.
class Mutations {
 public:
  explicit Mutations(std::uint64_t seed) : state_(seed) {}

  // Returns the number of mutations that a test should try.
  static int count() {
    const char* const wanted = std::getenv("HOCKET_MUTATIONS");
    return wanted ? std::atoi(wanted) : 20'000;
  }

  // Returns a number below `bound`, which must not be 0.
  std::uint64_t below(std::uint64_t bound) { return splitmix(state_ += splitmix_step) % bound; }

  // Returns the bytes with one to six faults: bytes changed, removed, repeated, or added, or an end cut off.
  std::string mutated(std::string_view valid) {
    std::string bytes{valid};
    for (std::uint64_t faults = 1 + below(6); faults > 0; --faults) one_fault(bytes);
    return bytes;
  }

 private:
  void one_fault(std::string& bytes) {
    const std::size_t at = below(bytes.size() + 1);
    const std::size_t length = std::min<std::size_t>(1 + below(9), bytes.size() - at);
    switch (below(6)) {
      case 0: bytes.resize(at); break;
      case 1: bytes.erase(at, length); break;
      case 2: bytes.insert(at, bytes.substr(at, length)); break;
      case 3: bytes.insert(at, 1, static_cast<char>(below(256))); break;
      case 4:  // numbers that are all ones or zeros reach the bounds of fields
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), length, below(2) == 0 ? '\0' : '\xff');
        break;
      default:
        if (at < bytes.size()) bytes[at] = static_cast<char>(below(256));
    }
  }

  std::uint64_t state_;
};

}  // namespace hocket
