#include "model/uncoordinated.hpp"

#include <algorithm>

namespace hocket::model {

TargetUse Uncoordinated::use(const PartSet& parts) const {
  TargetUse use{};
  for (const SimulatedAccess& access : accesses_) {
    if (access.ended || !access.parts.meets(parts)) continue;
    use.users += 1;
    use.demanded += access.demanded;
  }
  return use;
}

void Uncoordinated::advance(Time now) {
  constexpr double rounding_s = 1e-9;
  while (now_ < now) {
    const TargetUse all = use();
    const auto beside = [&](const SimulatedAccess& one) { return one.parts.is_whole() ? all : use(one.parts); };
    double step_s = to_s(now - now_);
    for (const SimulatedAccess& access : accesses_) {
      if (access.ended) continue;
      step_s = std::min(step_s, (access.size_s - access.done_s) * slowdown(access.slowness, beside(access)));
    }
    step_s = std::max(step_s, rounding_s);
    now_ = std::min(now, now_ + from_s(step_s));
    for (SimulatedAccess& access : accesses_) {
      if (!access.ended) access.done_s += step_s / slowdown(access.slowness, beside(access));
    }
    for (SimulatedAccess& access : accesses_) {
      if (access.ended) continue;
      if (access.done_s >= access.size_s - rounding_s) access.ended = now_;
    }
    std::erase_if(accesses_, [](const SimulatedAccess& one) { return one.ended && !one.goes_on; });
    if (accesses_.empty()) now_ = now;
  }
}

void Uncoordinated::begin(AppId application, const Slowness& slowness, double demanded, double expected_s, Time now,
                          const PartSet& parts) {
  const auto same = [&](const SimulatedAccess& one) { return one.application == application; };
  const auto found = std::find_if(accesses_.begin(), accesses_.end(), same);
  if (found != accesses_.end() && found->goes_on) return;
  if (found == accesses_.end()) {
    accesses_.push_back({application, slowness, demanded, expected_s, 0, 0, true, now, {}, parts});
    return;
  }
  // The previous access would still be in progress. Its remaining time was counted when it really ended.
  const double left_s = found->size_s - found->done_s;
  *found = {application, slowness, demanded, expected_s, -left_s, left_s * slowdown(slowness, use(parts)),
            true,        now,      {},       parts};
}

std::optional<double> Uncoordinated::end(AppId application, double alone_s, Time now) {
  const auto same = [&](const SimulatedAccess& one) { return one.application == application && one.goes_on; };
  const auto found = std::find_if(accesses_.begin(), accesses_.end(), same);
  if (found == accesses_.end()) return std::nullopt;
  const double elapsed_s = to_s(found->ended.value_or(now) - found->since);
  const double carried_s = found->carried_s;
  const double left_s = alone_s - found->done_s;
  if (left_s > 0 && !found->ended) {
    const double more_s = left_s * slowdown(found->slowness, use(found->parts));
    found->size_s = alone_s;
    found->goes_on = false;
    return std::max(0.0, elapsed_s + more_s - carried_s);
  }
  // It would have ended before, or was expected to be shorter than it was. Its end is computed as if it had advanced
  // evenly. The others do not get slower again because of the wrong expectation.
  const double part = found->done_s > 0 ? alone_s / found->done_s : 1;
  accesses_.erase(found);
  return std::max(0.0, elapsed_s * part - carried_s);
}

void Uncoordinated::forget(AppId application) {
  std::erase_if(accesses_, [&](const SimulatedAccess& one) { return one.application == application; });
}

const Uncoordinated::SimulatedAccess* Uncoordinated::find(AppId application) const {
  for (const SimulatedAccess& access : accesses_) {
    if (access.application == application) return &access;
  }
  return nullptr;
}

}  // namespace hocket::model
