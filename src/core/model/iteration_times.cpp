#include "model/iteration_times.hpp"

#include <algorithm>
#include <utility>

namespace hocket::model {

void IterationTimes::add(std::int64_t processes, double iteration_s, double comm_s) {
  ++reports_;
  if (std::exchange(present_size_, processes) != processes) return;
  kept_[next_] = {processes, iteration_s, comm_s};
  next_ = (next_ + 1) % kept_.size();
  ++counted_;
  last_size_ = processes;
}

IterationTimes::MeasuredTimes IterationTimes::at_size(std::int64_t processes) const {
  Samples samples;
  Samples comm;
  const auto kept = static_cast<std::size_t>(std::min<std::int64_t>(counted_, static_cast<std::int64_t>(kept_.size())));
  for (std::size_t i = 1; i <= kept; ++i) {
    const IterationReport& report = kept_[(next_ + kept_.size() - i) % kept_.size()];
    if (report.processes != processes) continue;
    samples.add(report.iteration_s);
    comm.add(report.comm_s);
  }
  const Moments moments = samples.moments();
  const double comm_s = std::min(comm.moments().mean, moments.mean);
  return {processes, moments.mean, moments.spread, static_cast<std::int64_t>(samples.count()), comm_s};
}

}  // namespace hocket::model
