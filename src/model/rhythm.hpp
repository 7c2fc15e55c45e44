// What the I/O phases of an application are like at one number of processes, and what that says of the next ones
// (CLARISSE+FlexMPI, section 4.1).
//
// An I/O period is one cycle of phases (phase_cycle.hpp), from the start of one to the start of the next of its kind:
// Eq. 1 with all I/O of the cycle.
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
  Duration mean{};    // 0: not known
  Duration spread{};  // standard deviation; 0 where there is only one value
};

// One phase of the cycle.
struct CyclePhase {
  MeanSpread computing;    // before it: since the end of the phase before
  MeanSpread interval;     // from its start to the start of the phase that follows
  MeanSpread io;           // 0: it has not come at this size yet
  double iterations = -1;  // since the phase before; below 0: not known
  // At any size:
  std::int64_t bytes = 0;  // of all processes
  std::string target{};    // where most of them went
};

// A period counts if the whole of it ran at that size.
struct Rhythm {
  std::int64_t processes = 0;
  std::size_t periods = 0;        // that are kept; the means below are 0 where there is none
  double iterations = 0;          // of a period; 0: not known
  MeanSpread period;              // start to start
  MeanSpread computing;           // T_cpu + T_comm: between phases
  MeanSpread io;                  // T_io of all phases of a cycle; known with the first cycle
  MeanSpread communication;       // T_comm, the part of `computing` that is in MPI
  std::vector<CyclePhase> cycle;  // the one that comes next first; empty: no phase is kept of that size
};

struct PredictedPhase {
  Time start{};
  Duration duration{};     // mean I/O time of the phase
  Duration uncertainty{};  // of the start, plus or minus: two standard deviations
  std::int64_t bytes = 0;  // of all processes; 0: not known
  std::string target{};
};

// The phases to come, counted from 0; they follow each other as in the cycle, which ends every `step`.
class Forecast {
 public:
  // Without what is only for people.
  struct Timing {
    Time start{};
    Duration duration{};
    Duration uncertainty{};
  };

  // From the end of the last phase on. A phase that did not come is waited for during one period; after that it is
  // taken as missed, and the prediction goes on by whole periods: the first start is never more than a period before
  // `now`. Nothing where the rhythm has no period. The rhythm must outlive the forecast.
  static std::optional<Forecast> after(Time end, const Rhythm& rhythm, Time now);

  // The phase of the first cycle that is expected nearest to `start`, on `target` if one of them is there.
  std::int64_t nearest(Time start, const std::string& target) const;
  // That phase has begun then, and is the first from now on.
  void begin(Time start, const std::string& target);
  // The first phase ends then, and the next one follows it.
  void end(Time end);
  // The first phase begins at another time, and with it the others.
  void move_first(Time start);

  Timing timing(std::int64_t i) const;
  PredictedPhase phase(std::int64_t i) const;
  const std::string& target(std::int64_t i) const { return phases_[place(i)].known->target; }

  Duration step() const { return step_; }  // the period
  std::int64_t length() const { return static_cast<std::int64_t>(length_); }
  // The mean I/O time of the first phase, as of any other of its kind.
  Duration usual_duration() const { return phases_[0].known->io.mean; }

 private:
  struct Ahead {
    const CyclePhase* known = nullptr;
    double spread_ns = 0;  // of the computing before it
  };
  std::size_t place(std::int64_t i) const { return static_cast<std::size_t>(i % length()); }
  Duration interval() const;
  Time start_of(std::int64_t i) const;

  std::array<Ahead, PhaseCycle::longest> phases_{};
  std::size_t length_ = 1;
  Time first_{};
  Duration first_duration_{};
  Time second_{};
  Duration step_{};
  double periods_ = 1;       // that the means rest on
  std::int64_t missed_ = 0;  // periods between the last known phase and the first
};

}  // namespace hocket::model
