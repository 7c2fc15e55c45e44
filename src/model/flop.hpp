// How the floating-point operations of an iteration are known, and which knowledge goes before which.
#pragma once

#include <cmath>
#include <string_view>

namespace hocket::model {

// The worst first.
enum class FlopSource {
  unknown,   // policies count iterations
  profile,   // measured or declared in an earlier run
  declared,  // by the application
  counters,  // of the hardware, in this run
};

// As events have it; "" for unknown.
constexpr std::string_view name_of(FlopSource source) {
  switch (source) {
    case FlopSource::unknown: return "";
    case FlopSource::profile: return "profile";
    case FlopSource::declared: return "declared";
    case FlopSource::counters: return "counters";
  }
  return "";
}

// For people.
constexpr std::string_view in_words(FlopSource source) {
  switch (source) {
    case FlopSource::unknown: return "not known (iterations)";
    case FlopSource::profile: return "profile of an earlier run";
    case FlopSource::declared: return "declared";
    case FlopSource::counters: return "hardware counters";
  }
  return "";
}

// Whether `flop` from `said` takes the place of what is known from `known`. What is no number of operations never does;
// the latest word of a source takes the place of its former one.
inline bool replaces(FlopSource known, FlopSource said, double flop) {
  return std::isfinite(flop) && flop > 0 && said >= known;
}

}  // namespace hocket::model
