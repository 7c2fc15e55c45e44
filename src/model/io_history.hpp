// The last I/O phases of an application, and what they say of the next ones (CLARISSE+FlexMPI, section 4.1).
//
// The mean of a quantity is taken over the periods, or phases, that ran at one number of processes (robust.hpp says
// which of them count).
//
// Pure, not thread-safe, not even for questions alone. The first question after a phase was added costs the phases that
// are kept (where neighbours are unlike, a few times that); so do questions about another size than that of the last
// phase, and period_parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/phase_record.hpp"
#include "model/rhythm.hpp"

namespace hocket::model {

// A mean I/O period by what it was spent on (CLARISSE+FlexMPI, Eq. 1). The paper's three terms, and the two that are
// left when an application is coordinated and measured for real.
struct PeriodParts {
  Duration cpu{};
  Duration comm{};
  Duration io{};
  Duration wait{};
  Duration other{};  // of the period, in none of the four
};

class IoHistory {
 public:
  static constexpr std::size_t capacity = PhaseRing::capacity;

  // Phases come in order of time. One that overlaps the last one (of another member of the application) is the same
  // phase of the application and joins it; one that lies wholly before the last one came too late and is left out.
  void add(const PhaseRecord& phase);

  // Phases since the start, those no longer kept included.
  std::int64_t phases() const { return phases_; }
  // nullptr before the first phase.
  const PhaseRecord* last() const { return kept_.size() == 0 ? nullptr : &kept_.newest(); }

  // At the size of the last phase.
  const Rhythm& present() const { return summary().present; }
  // At the size of the last whole period.
  const Rhythm& latest() const { return summary().latest; }
  // Costs next to nothing at a size that no phase is kept of: policies ask about many.
  Rhythm at_size(std::int64_t processes) const;

  // Phases of a period: 1 where they are all alike.
  std::size_t cycle_length() const { return summary().cycle.length; }

  // At the size of the last phase: start to start of a cycle.
  MeanSpread period() const { return present().period; }
  // I/O time of a period.
  MeanSpread duration() const { return present().io; }
  // I/O time / I/O period (CLARISSE+FlexMPI, Eq. 3); 0: not known.
  double io_ratio() const;
  PeriodParts period_parts() const;
  // I/O time of the last phases, of each kind one.
  Duration io_of_last_cycle() const;

  // What the I/O phase will be that comes next, or is under way since `began`: of those of the cycle the one that is
  // expected nearest to that, on `target` where that is given. nullptr before the first phase; valid until one is
  // added.
  const CyclePhase* due(const std::string& target = {}, Time began = {}) const;
  // The same for people and policies, with the time at which it is expected.
  std::optional<PredictedPhase> upcoming(const std::string& target = {}, Time began = {}) const;

  // The next `count` phases, as `Forecast` has them; none before the second phase.
  std::vector<PredictedPhase> predict(Time now, std::size_t count) const;

 private:
  bool join_last(const PhaseRecord& phase);
  // Whether from phase i to the next is a part of a period at that size.
  bool whole(std::size_t i, std::int64_t processes) const;
  // Whether from phase i on is a whole period at that size.
  bool whole_period(std::size_t i, std::int64_t processes) const;
  struct Summary {
    PhaseCycle cycle;
    Rhythm present;
    Rhythm latest;
    std::vector<std::int64_t> sizes;  // that a phase is kept of, each once
  };
  const Summary& summary() const;
  Rhythm measured_at(std::int64_t processes) const;
  void measure_periods(Rhythm& rhythm) const;
  CyclePhase measured_phase(std::size_t place, std::int64_t processes) const;
  template <class Use>
  void each_period(std::int64_t processes, const Use& use) const;
  template <class Quantity>
  double sum(std::size_t first, std::size_t count, const Quantity& quantity) const;

  PhaseRing kept_;
  std::int64_t phases_ = 0;
  mutable std::optional<Summary> summary_;  // nothing: it was not asked for since the last phase
};

}  // namespace hocket::model
