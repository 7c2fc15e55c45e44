#include "model/application.hpp"

#include <algorithm>

#include "base/saturating.hpp"

namespace hocket::model {
namespace {

template <class Amount>
void add(Amount& sum, Amount more) {
  sum = saturating_sum(sum, more);
}

// As reported, as far as it can be.
PhaseRecord possible(const event::IoPhase& phase, Time now) {
  const auto within = [](Duration value, Duration most) { return std::clamp(value, Duration{}, most); };
  PhaseRecord record;
  record.end = std::clamp(phase.end, Time{}, now);
  record.start = std::clamp(phase.start, Time{}, record.end);
  const Duration length = record.end - record.start;
  record.io = within(phase.io, length);
  record.wait = within(phase.wait, length - record.io);
  const Duration before = record.start - Time{};
  record.cpu = within(phase.cpu, before);
  record.comm = within(phase.comm, before - record.cpu);
  record.bytes =
      saturating_sum(std::max<std::int64_t>(0, phase.bytes_read), std::max<std::int64_t>(0, phase.bytes_written));
  return record;
}

}  // namespace

std::string_view name_of(Activity activity) {
  switch (activity) {
    case Activity::computing: return "computing";
    case Activity::waiting: return "waiting";
    case Activity::io: return "io";
  }
  return "";
}

void Application::count_requests(std::int64_t waiting_change, std::int64_t granted_change, Time now) {
  waiting += waiting_change;
  granted += granted_change;
  const Activity next = granted > 0 ? Activity::io : waiting > 0 ? Activity::waiting : Activity::computing;
  if (next == activity) return;
  activity = next;
  since = now;
}

void Application::add_phase(const event::IoPhase& phase, Time now) {
  const PhaseRecord record = possible(phase, now);
  history.add(record);
  add(totals.io, record.io);
  add(totals.wait, record.wait);
  add(totals.cpu, record.cpu);
  add(totals.comm, record.comm);
  add(totals.bytes_read, std::max<std::int64_t>(0, phase.bytes_read));
  add(totals.bytes_written, std::max<std::int64_t>(0, phase.bytes_written));
}

}  // namespace hocket::model
