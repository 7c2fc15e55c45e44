// What the controller expects of applications: how long their periods take at a number of processes, when their next
// I/O phases come, and which of them meet (CLARISSE+FlexMPI, sections 4.1 and 4.2: the application performance
// predictor and the I/O interference predictor).
//
// Pure, not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/cluster.hpp"

namespace hocket::model {

// An I/O period of an application at some number of processes (Eq. 1), without waits for grants.
struct Pace {
  double iterations = 0;  // in a period
  Estimate compute;       // T_cpu + T_comm of the period
  Estimate io;            // T_io of the phase, undisturbed
  bool nominal = false;   // no I/O period was seen: it is one of computing alone, as long as is convenient
  double period_s() const { return compute.value + io.value; }
  double io_ratio() const { return period_s() > 0 ? io.value / period_s() : 0; }  // Eq. 3
};

// Of one that has shown no whole I/O period, but iterations: of `nominal_period_s`, without I/O.
constexpr double nominal_period_s = 60;

// From the curve, scaled so that it agrees with what the application showed at its present size, which a profile of
// other input does not. At its present size: what it showed. Nothing where neither is known.
std::optional<Pace> pace(const Application& application, std::int64_t processes);

// As IoHistory::predict, with what a change of size that is under way has been predicted to do to the next one.
// `uncertainty` as CoreSettings::uncertainty: negative, what was observed.
std::vector<PredictedPhase> next_phases(const Application& application, Time now, Duration uncertainty,
                                        std::size_t count);

// How well the application's I/O phases are described by a period.
enum class Fit {
  learning,   // it is too early to say, at this size or at all
  regular,    // the next phase is expected within less than half a period
  irregular,  // it may come at any time
};
std::string_view name_of(Fit fit);
Fit fit(const Application& application);
// "the I/O phases of a come at no regular times: 13.4 s apart, with a standard deviation of 11.0 s"
std::string irregular_text(const Application& application);

// Two predicted I/O phases on one target that meet when each is widened by its uncertainty.
struct Conflict {
  const Application* subject = nullptr;
  const Application* other = nullptr;
  PredictedPhase of_subject;  // widened: its duration includes the uncertainty
  PredictedPhase of_other;
  Time start{};  // of the overlap
  Duration overlap{};
};

// Those of the subject's next phase with every other application's, in order of time; of each other application the
// first only. `shifted`: as if the subject's next phase began then.
std::vector<Conflict> conflicts(const Cluster& cluster, const Application& subject, Time now, Duration uncertainty,
                                std::optional<Time> shifted = std::nullopt);

}  // namespace hocket::model
