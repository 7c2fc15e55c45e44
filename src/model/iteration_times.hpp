// What one iteration takes, by the number of processes, as control points report it (CLARISSE+FlexMPI monitors each
// iteration): known of programs that do no I/O, or have not done any yet.
//
// Pure, not thread-safe. Costs of a question: the reports that are kept.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/robust.hpp"

namespace hocket::model {

class IterationTimes {
 public:
  struct Shown {
    std::int64_t processes = 0;
    double iteration_s = 0;
    double spread_s = 0;       // standard deviation
    std::int64_t reports = 0;  // that it rests on
    double comm_s = 0;         // the part of iteration_s that is communication
  };

  // `iteration_s`, and `comm_s` of it: means over the iterations of one report. The first report of a size does not
  // count: caches are cold.
  void add(std::int64_t processes, double iteration_s, double comm_s);

  // Reports since the start.
  std::int64_t reports() const { return reports_; }
  // Of the kept ones; `reports` is 0 where there is none.
  Shown at_size(std::int64_t processes) const;
  // At the size of the last one that counts.
  Shown latest() const { return at_size(last_size_); }

 private:
  struct Report {
    std::int64_t processes = 0;
    double iteration_s = 0;
    double comm_s = 0;
  };
  EachPhase<Report> kept_{};  // a ring
  std::size_t next_ = 0;
  std::int64_t reports_ = 0;
  std::int64_t counted_ = 0;
  std::int64_t present_size_ = 0;  // of the last report
  std::int64_t last_size_ = 0;
};

}  // namespace hocket::model
