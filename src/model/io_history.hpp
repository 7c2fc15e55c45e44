// The last I/O phases of an application, and what they say of the next ones (CLARISSE+FlexMPI, section 4.1).
//
// Pure, not thread-safe. Costs of all questions: the phases that are kept (at most `capacity`).
#pragma once

#include <cstddef>
#include <vector>

#include "base/time.hpp"

namespace hocket::model {

// One I/O phase as its application measured it. Expected: start <= end, no negative duration or number.
struct PhaseRecord {
  Time start{};     // of the first operation, wait for the grant included
  Time end{};       // of the last operation
  Duration io{};    // in I/O operations
  Duration wait{};  // for grants
  Duration cpu{};   // since the end of the phase before
  Duration comm{};  // since the end of the phase before
  std::int64_t bytes = 0;
};

struct MeanSpread {
  Duration mean{};    // 0: not known
  Duration spread{};  // standard deviation; 0 where there is only one value
};

// A mean I/O period by what it was spent on (CLARISSE+FlexMPI, Eq. 1). The paper's three terms, and the two that are
// left when an application is coordinated and measured for real.
struct PeriodParts {
  Duration cpu{};
  Duration comm{};
  Duration io{};
  Duration wait{};
  Duration other{};  // of the period, in none of the four
};

struct PredictedPhase {
  Time start{};
  Duration duration{};     // mean I/O time of a phase
  Duration uncertainty{};  // of the start, plus or minus: two standard deviations
};

class IoHistory {
 public:
  static constexpr std::size_t capacity = 32;

  // Phases come in order of time. One that overlaps the last one (of another member of the application) is the same
  // phase of the application and joins it; one that lies wholly before the last one came too late and is left out.
  void add(const PhaseRecord& phase);

  // Phases since the start, those no longer kept included.
  std::int64_t phases() const { return phases_; }
  // nullptr before the first phase.
  const PhaseRecord* last() const { return kept_.empty() ? nullptr : &at(kept_.size() - 1); }

  // Start to start.
  MeanSpread period() const;
  // I/O time of a phase.
  MeanSpread duration() const;
  // I/O time / I/O period (CLARISSE+FlexMPI, Eq. 3); 0: not known.
  double io_ratio() const;
  PeriodParts period_parts() const;

  // The next `count` phases, by extrapolation of the mean period and duration; none before the second phase. A phase
  // that did not come is waited for during one period; after that it is taken as missed, and the prediction goes on by
  // whole periods: the first start is never more than a period before `now`.
  std::vector<PredictedPhase> predict(Time now, std::size_t count) const;

 private:
  const PhaseRecord& at(std::size_t i) const { return kept_[(oldest_ + i) % kept_.size()]; }
  bool join_last(const PhaseRecord& phase);

  std::vector<PhaseRecord> kept_;  // a ring once it is full
  std::size_t oldest_ = 0;
  std::int64_t phases_ = 0;
};

}  // namespace hocket::model
