// IterationTimes holds the time of an iteration by the number of processes, as control points report it
// (CLARISSE+FlexMPI monitors each iteration). It serves for programs that do no I/O, or have not done any yet.
//
// Pure, not thread-safe. The cost of a query is linear in the kept reports, at most 32.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/robust.hpp"

namespace hocket::model {

class IterationTimes {
 public:
  struct MeasuredTimes {
    std::int64_t processes = 0;
    double iteration_s = 0;
    double spread_s = 0;       // standard deviation
    std::int64_t reports = 0;  // number of reports it is based on
    double comm_s = 0;         // communication, a part of iteration_s
  };

  // Adds one report: means over its iterations, in seconds. `comm_s` is a part of `iteration_s`. The first report
  // after a change of size is not used, because caches are cold.
  void add(std::int64_t processes, double iteration_s, double comm_s);

  // Returns the number of all reports so far.
  std::int64_t reports() const { return reports_; }
  // Returns the mean of the kept reports of one size; `reports` is 0 if there is none.
  MeasuredTimes at_size(std::int64_t processes) const;
  // Returns the mean at the size of the last report that was used.
  MeasuredTimes latest() const { return at_size(last_size_); }

 private:
  struct IterationReport {
    std::int64_t processes = 0;
    double iteration_s = 0;
    double comm_s = 0;
  };
  EachPhase<IterationReport> kept_{};  // ring buffer
  std::size_t next_ = 0;
  std::int64_t reports_ = 0;
  std::int64_t counted_ = 0;
  std::int64_t present_size_ = 0;  // of the last report
  std::int64_t last_size_ = 0;
};

}  // namespace hocket::model
