// An IoHistory keeps the latest I/O phases of an application and predicts the next ones from them (CLARISSE+FlexMPI,
// section 4.1). Policies and tools read it.
//
// A mean is taken over the periods, or phases, that ran with one number of processes (its "size"); robust.hpp decides
// which of them count.
//
// Pure. Not thread-safe, not even for const calls, because they fill a cache. The first call after a phase was added
// is linear in the kept phases, and takes a few times longer if neighbours differ. So do `period_parts` and calls
// about other sizes than that of the last phase.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/phase_record.hpp"
#include "model/rhythm.hpp"

namespace hocket::model {

// A mean I/O period by what it was spent on (CLARISSE+FlexMPI, Eq. 1): the paper's three terms, and two more that
// exist when a real application is coordinated and measured.
struct PeriodParts {
  Duration cpu{};
  Duration comm{};
  Duration io{};
  Duration wait{};
  Duration other{};  // rest of the period
};

class IoHistory {
 public:
  static constexpr std::size_t capacity = PhaseRing::capacity;

  // Adds a phase; phases come in order of time. A phase that overlaps the last one comes from another member and is
  // merged with it. A phase that lies wholly before the last one came too late and is dropped.
  void add(const PhaseRecord& phase);

  // Returns the number of all phases so far, including those no longer kept.
  std::int64_t phases() const { return phases_; }
  // Returns the last phase; nullptr before the first one.
  const PhaseRecord* last() const { return kept_.size() == 0 ? nullptr : &kept_.newest(); }

  // Returns the rhythm at the size of the last phase.
  const Rhythm& present() const { return summary().present; }
  // Returns the rhythm at the size of the last whole period.
  const Rhythm& latest() const { return summary().latest; }
  // Returns the rhythm at any size. It is cheap for a size without kept phases, because policies ask about many.
  Rhythm at_size(std::int64_t processes) const;

  // Returns the number of phases in a period: 1 if they are all alike.
  std::size_t cycle_length() const { return summary().cycle.length; }

  // Returns the length of a period, start to start of a cycle, at the size of the last phase.
  MeanSpread period() const { return present().period; }
  // Returns the I/O time of a period.
  MeanSpread duration() const { return present().io; }
  // Returns I/O time / I/O period (CLARISSE+FlexMPI, Eq. 3); 0 if unknown.
  double io_ratio() const;
  PeriodParts period_parts() const;
  // Returns the I/O time of the last phases, one of each kind in the cycle.
  Duration io_of_last_cycle() const;

  // Returns the expected properties of the I/O phase that began at `began`, or of the next one. It is the phase of
  // the cycle that is expected nearest to that time, on `target` if that is given. Returns nullptr before the first
  // phase. The pointer is valid until a phase is added.
  const CyclePhase* due(const std::string& target = {}, Time began = {}) const;
  // Returns the same for display and policies, with its expected start.
  std::optional<PredictedPhase> upcoming(const std::string& target = {}, Time began = {}) const;

  // Returns the next `count` phases according to `Forecast`; none before a whole period at the present size.
  std::vector<PredictedPhase> predict(Time now, std::size_t count) const;

 private:
  bool join_last(const PhaseRecord& phase);
  // True if the time from phase i to the next is part of a period at that size.
  bool whole(std::size_t i, std::int64_t processes) const;
  // True if a whole period at that size begins with phase i.
  bool whole_period(std::size_t i, std::int64_t processes) const;
  // The cached results, computed together after each new phase.
  struct Summary {
    PhaseCycle cycle;
    Rhythm present;
    Rhythm latest;
    std::vector<std::int64_t> sizes;  // of the kept phases, each once
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
  mutable std::optional<Summary> summary_;  // empty: not asked for since the last phase
};

}  // namespace hocket::model
