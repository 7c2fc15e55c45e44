// A Rhythm describes the I/O phases of an application with one number of processes; a Forecast predicts the next ones
// from it (CLARISSE+FlexMPI, section 4.1).
//
// An I/O period is one cycle of phases (phase_cycle.hpp), from the start of one to the start of the next of its kind.
// Eq. 1 applies to it, with all I/O of the cycle.
//
// Pure, not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "model/phase_cycle.hpp"

namespace hocket::model {

struct MeanSpread {
  Duration mean{};    // 0: unknown
  Duration spread{};  // standard deviation; 0 if there is only one value
};

// One phase of the cycle: means over the phases in its place.
struct CyclePhase {
  MeanSpread computing;    // before it, since the end of the previous phase
  MeanSpread interval;     // from its start to the start of the next phase
  MeanSpread io;           // 0: not seen at this size yet
  double iterations = -1;  // since the previous phase; negative: unknown
  // These are taken over all sizes.
  std::int64_t bytes = 0;  // of all processes
  std::string target{};    // target of most of them
};

// The rhythm at one size. A period counts if all of it ran at that size.
struct Rhythm {
  std::int64_t processes = 0;
  std::size_t periods = 0;        // kept periods; if 0, the means below are 0
  double iterations = 0;          // in a period; 0: unknown
  MeanSpread period;              // start to start
  MeanSpread computing;           // T_cpu + T_comm, between phases
  MeanSpread io;                  // T_io of all phases of a cycle; known after the first cycle
  MeanSpread communication;       // T_comm, the part of `computing` that is in MPI
  std::vector<CyclePhase> cycle;  // next phase first; empty: no phases kept of that size
};

// A future I/O phase, as events and tools show it.
struct PredictedPhase {
  Time start{};
  Duration duration{};     // mean I/O time of the phase
  Duration uncertainty{};  // of the start, plus or minus: two standard deviations
  std::int64_t bytes = 0;  // of all processes; 0: unknown
  std::string target{};
};

// The future phases, counted from 0. They follow each other as in the cycle, which repeats every `step`.
class Forecast {
 public:
  // The times of a phase, without what only display needs.
  struct Timing {
    Time start{};
    Duration duration{};
    Duration uncertainty{};
  };

  // Creates the forecast from the end of the last phase on. A phase that does not come is expected for one period.
  // Then it counts as missed, and the forecast moves on by whole periods. So the first start is never more than one
  // period before `now`. Returns nothing if the rhythm has no period. The rhythm must outlive the forecast.
  static std::optional<Forecast> after(Time end, const Rhythm& rhythm, Time now);

  // Returns the phase of the first cycle that is expected nearest to `start`, on `target` if any of them is there.
  std::int64_t nearest(Time start, const std::string& target) const;
  // States that the nearest such phase began at `start`. It is the first one from now on.
  void begin(Time start, const std::string& target);
  // States that the first phase ends at `end`; the next one follows it.
  void end(Time end);
  // Moves the start of the first phase, and all others with it.
  void move_first(Time start);

  Timing timing(std::int64_t i) const;
  PredictedPhase phase(std::int64_t i) const;
  const std::string& target(std::int64_t i) const { return phases_[place(i)].known->target; }

  Duration step() const { return step_; }  // the period
  std::int64_t length() const { return static_cast<std::int64_t>(length_); }
  // Returns the mean I/O time of phases like the first one.
  Duration usual_duration() const { return phases_[0].known->io.mean; }

 private:
  // One phase of the cycle, with the uncertainty of the computing before it.
  struct UpcomingPhase {
    const CyclePhase* known = nullptr;
    double spread_ns = 0;  // standard deviation of the computing before it
  };
  std::size_t place(std::int64_t i) const { return static_cast<std::size_t>(i % length()); }
  Duration interval() const;
  Time start_of(std::int64_t i) const;

  std::array<UpcomingPhase, PhaseCycle::longest> phases_{};
  std::size_t length_ = 1;
  Time first_{};
  Duration first_duration_{};
  Time second_{};
  Duration step_{};
  double periods_ = 1;       // number of periods behind the means
  std::int64_t missed_ = 0;  // periods between the last known phase and the first future one
};

}  // namespace hocket::model
