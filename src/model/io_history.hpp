// The last I/O phases of an application, and what they say of the next ones (CLARISSE+FlexMPI, section 4.1).
//
// The mean of a quantity is taken over the periods, or phases, that ran at one number of processes. A few values far
// from the rest (a phase that was left out, an application that was stopped) do not count; once three in a row are far
// from what was before, the application has changed and the older ones do not count.
//
// Pure, not thread-safe, not even for questions alone. The first question after a phase was added costs the phases that
// are kept (at most `capacity`); so do questions about another size than that of the last phase, and period_parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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
  std::int64_t iteration = -1;  // done at its end; -1: not known
  std::int64_t processes = 0;   // that computed; 0: not known, which is a size as others are
  bool resized = false;         // that number changed at least once since the phase before
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

// What I/O periods at one number of processes were like. A period counts if the whole of it ran at that size.
struct Rhythm {
  std::int64_t processes = 0;
  std::size_t periods = 0;  // that are kept; the means below are 0 where there is none
  double iterations = 0;    // mean of a period; 0: not known
  MeanSpread period;        // start to start
  MeanSpread computing;     // T_cpu + T_comm: end of a phase to the start of the next
  MeanSpread io;            // T_io of a phase; known with the first phase
};

struct PredictedPhase {
  Time start{};
  Duration duration{};     // mean I/O time of a phase
  Duration uncertainty{};  // of the start, plus or minus: two standard deviations
};

// The phases to come: the first, and from the second on one every `step`.
struct Forecast {
  Time first{};
  Duration first_duration{};
  Time second{};
  Duration step{};
  Duration duration{};     // of all but the first
  Duration spread{};       // of one period's length: standard deviation
  double periods = 1;      // that the mean rests on
  std::int64_t ahead = 1;  // periods from the last known phase to the first
  // Phase `i`, counted from 0.
  PredictedPhase phase(std::int64_t i) const;
};

// From the end of the last phase on. A phase that did not come is waited for during one period; after that it is taken
// as missed, and the prediction goes on by whole periods: the first start is never more than a period before `now`.
// Nothing where the rhythm has no period.
std::optional<Forecast> forecast(const PhaseRecord& last, const Rhythm& rhythm, Time now);

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

  // At the size of the last phase.
  const Rhythm& present() const { return summary().present; }
  // At the size of the last whole period.
  const Rhythm& latest() const { return summary().latest; }
  // Costs next to nothing at a size that no phase is kept of: policies ask about many.
  Rhythm at_size(std::int64_t processes) const;

  // At the size of the last phase: start to start.
  MeanSpread period() const { return present().period; }
  // I/O time of a phase.
  MeanSpread duration() const { return present().io; }
  // I/O time / I/O period (CLARISSE+FlexMPI, Eq. 3); 0: not known.
  double io_ratio() const;
  PeriodParts period_parts() const;

  // The next `count` phases, as `forecast` has them; none before the second phase.
  std::vector<PredictedPhase> predict(Time now, std::size_t count) const;

 private:
  const PhaseRecord& at(std::size_t i) const { return kept_[(oldest_ + i) % kept_.size()]; }
  bool join_last(const PhaseRecord& phase);
  // Whether the period from phase i to the next ran at that size.
  bool whole(std::size_t i, std::int64_t processes) const;
  struct Summary {
    Rhythm present;
    Rhythm latest;
    std::vector<std::int64_t> sizes;  // that a phase is kept of, each once
  };
  const Summary& summary() const;
  Rhythm measured_at(std::int64_t processes) const;

  std::vector<PhaseRecord> kept_;  // a ring once it is full
  std::size_t oldest_ = 0;
  std::int64_t phases_ = 0;
  mutable std::optional<Summary> summary_;  // nothing: it was not asked for since the last phase
};

}  // namespace hocket::model
