// FlopSource names the source of an application's floating-point operations per iteration, and ranks the sources.
// Every module that learns or prints FLOP uses this one rule. Pure functions, thread-safe.
#pragma once

#include <cmath>
#include <string_view>

namespace hocket::model {

// The sources of a FLOP count, the least reliable first.
enum class FlopSource {
  unknown,   // policies count iterations instead
  profile,   // measured or declared in an earlier run
  declared,  // by the application itself
  counters,  // hardware counters in this run
};

// Returns the name used in events; "" for unknown.
constexpr std::string_view name_of(FlopSource source) {
  switch (source) {
    case FlopSource::unknown: return "";
    case FlopSource::profile: return "profile";
    case FlopSource::declared: return "declared";
    case FlopSource::counters: return "counters";
  }
  return "";
}

// True if `flop` from `said` replaces a value known from `known`. A value that is not finite and positive never does.
// A newer value replaces an older one of the same source.
inline bool replaces(FlopSource known, FlopSource said, double flop) {
  return std::isfinite(flop) && flop > 0 && said >= known;
}

}  // namespace hocket::model
