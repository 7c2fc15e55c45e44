// These functions predict applications: how long their periods take with a number of processes, when their next I/O
// phases come, and which of these meet. They are the application performance predictor and the I/O interference
// predictor of CLARISSE+FlexMPI (sections 4.1 and 4.2).
//
// Pure, not thread-safe. Pointers in results are valid while the applications exist.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/cluster.hpp"

namespace hocket::model {

// An I/O period of an application with some number of processes (Eq. 1), waits for grants excluded. Times are in
// seconds.
struct PeriodEstimate {
  double iterations = 0;  // iterations in a period
  Estimate compute;       // T_cpu + T_comm of the period
  Estimate io;            // T_io of the phases in it, undisturbed
  bool nominal = false;   // no I/O period was seen; this one has computing only
  double period_s() const { return compute.value + io.value; }
  double io_ratio() const { return period_s() > 0 ? io.value / period_s() : 0; }  // Eq. 3
};

// The length of a nominal period, for an application that has reported iterations but shown no whole I/O period.
constexpr double nominal_period_s = 60;

// Returns the expected period with that number of processes. At a size with measured periods, it is what was
// measured. At others it follows the curve, scaled to agree with the measurements at the latest size, which a profile
// of another input does not. Returns nothing if neither is known.
std::optional<PeriodEstimate> pace(const Application& application, std::int64_t processes);

// Returns the next phases as IoHistory::predict does, but takes account of a change of size that is under way. A
// negative `uncertainty` means the observed one, as in CoreSettings::uncertainty.
std::vector<PredictedPhase> next_phases(const Application& application, Time now, Duration uncertainty,
                                        std::size_t count);

// States how well a period describes the application's I/O phases.
enum class Fit {
  learning,   // too early to say, at this size or at all
  regular,    // the start of the next phase is known within half a period
  irregular,  // the next phase may come at any time
};
std::string_view name_of(Fit fit);
Fit fit(const Application& application);

// Two predicted I/O phases on one target that overlap when each is extended by its uncertainty.
struct Conflict {
  const Application* subject = nullptr;
  const Application* other = nullptr;
  PredictedPhase of_subject;  // its duration includes the uncertainty
  PredictedPhase of_other;    // likewise
  Time start{};               // start of the overlap
  Duration overlap{};
};

// Returns the conflicts of the subject's next phase with other applications, in order of time and at most one for
// each other application. With `shifted`, the subject's next phase is assumed to begin then. The cost is linear in
// the number of applications.
std::vector<Conflict> conflicts(const Cluster& cluster, const Application& subject, Time now, Duration uncertainty,
                                std::optional<Time> shifted = std::nullopt);

}  // namespace hocket::model
