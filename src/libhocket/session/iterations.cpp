#include "session/iterations.hpp"

#include <algorithm>
#include <utility>

namespace hocket::runtime {

std::optional<event::Iterations> IterationMeter::control_point(const IterationProgress& progress, Time now,
                                                               const TimeSums& sums) {
  const bool comparable = from_ && from_->progress.composition == progress.composition &&
                          from_->progress.processes == progress.processes &&
                          from_->progress.iteration < progress.iteration;
  if (comparable && now - from_->time < least_) return std::nullopt;
  const std::optional<Point> from = std::exchange(from_, Point{progress, now, sums});
  if (!comparable) return std::nullopt;
  event::Iterations report;
  report.iteration = progress.iteration;
  report.iterations = progress.iteration - from->progress.iteration;
  report.processes = progress.processes;
  report.control_every = progress.control_every;
  report.elapsed = now - from->time;
  report.comm = sums.comm - from->sums.comm;
  const Duration elsewhere = report.comm + (sums.io - from->sums.io) + (sums.wait - from->sums.wait);
  // Threads that communicate concurrently can account for more than the elapsed time.
  report.cpu = std::max(Duration{}, report.elapsed - elsewhere);
  return report;
}

}  // namespace hocket::runtime
