// Helpers of the C++ benchmarks: CPU time, medians, errors, and the JSON line that bench/README.md describes.
#pragma once

#include <errno.h>
#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace bench {

// Ends the benchmark after an error.
[[noreturn]] inline void die(const std::string& text) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, text.c_str());
  std::exit(2);
}

// Returns the value of a hocket::Result, or ends the benchmark with its error.
template <class Result>
auto good(Result result) {
  if (!result) die(result.error().text);
  return std::move(result).value();
}

// Returns the CPU time of this thread in seconds. Other programs then cost cache, but no waiting for the core.
inline double cpu_s() {
  timespec ts{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
  return static_cast<double>(ts.tv_sec) + static_cast<double>(ts.tv_nsec) * 1e-9;
}

// Returns the value below which the given share of the values lies. Precondition: values exist, and 0 <= share < 1.
inline double quantile(std::vector<double> values, double share) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size()));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

// One result of a benchmark.
struct Line {
  std::string name;  // name of the case
  double value;
  const char* unit;
  // The reference and bound; what the bound limits depends on the benchmark.
  double reference;
  double bound;
  bool ok;
  std::string more{};  // further JSON members, for instance `, "p99": 1`
};

// Prints one line of results and returns its `ok`.
inline bool print(const char* benchmark, const Line& line) {
  std::printf(
      "{\"bench\": \"%s\", \"case\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", \"reference\": %.6g, "
      "\"ratio\": %.3f, \"bound\": %g, \"ok\": %s%s}\n",
      benchmark, line.name.c_str(), line.value, line.unit, line.reference, line.value / line.reference, line.bound,
      line.ok ? "true" : "false", line.more.c_str());
  std::fflush(stdout);
  return line.ok;
}

}  // namespace bench
