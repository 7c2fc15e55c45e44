#include "model/busy_time.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

namespace hocket::model {
namespace {

constexpr std::size_t most_intervals = 64;  // in one report; a text with more is invalid

double ns_between(Time start, Time end) { return static_cast<double>((end - start).count()); }

// A part of a report's text: `share` is the busy fraction of it.
struct ReportedInterval {
  Time start{};
  Time end{};
  double share = 0;
};
using Intervals = std::vector<ReportedInterval>;

// Parses a number and removes it from the text.
std::optional<std::int64_t> take(std::string_view& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::optional<std::int64_t> take_after(std::string_view& text, char separator) {
  if (text.empty() || text.front() != separator) return std::nullopt;
  text.remove_prefix(1);
  return take(text);
}

// Parses "START:LENGTH:BUSY …", in nanoseconds since `since`, and clips it to [start, end]. Returns nothing if the
// text is invalid: wrong syntax, overlapping intervals, or too many of them.
std::optional<Intervals> read(std::string_view text, Time since, Time start, Time end) {
  constexpr std::int64_t longest = std::int64_t{1} << 60;
  Intervals found;
  if (since < Time{} || since - Time{} > Duration{4 * longest}) return std::nullopt;
  for (bool first = true; !text.empty(); first = false) {
    const auto offset = first ? take(text) : take_after(text, ' ');
    const auto length = offset ? take_after(text, ':') : std::nullopt;
    if (!length || *length <= 0 || *length > longest || std::abs(*offset) > longest) return std::nullopt;
    const bool partly = !text.empty() && text.front() == ':';
    const std::int64_t busy = partly ? take_after(text, ':').value_or(-1) : *length;
    const Time begin = since + Duration{*offset};
    const bool in_order = found.empty() || begin >= found.back().end;
    if (busy < 0 || busy > *length || !in_order || found.size() == most_intervals) return std::nullopt;
    found.push_back({begin, begin + Duration{*length}, static_cast<double>(busy) / static_cast<double>(*length)});
  }
  for (ReportedInterval& one : found) {
    one.start = std::clamp(one.start, start, end);
    one.end = std::clamp(one.end, start, end);
  }
  return found;
}

double share_at(const Intervals& intervals, Time at) {
  const auto later = std::ranges::upper_bound(intervals, at, {}, &ReportedInterval::start);
  if (later == intervals.begin()) return 0;
  const ReportedInterval& one = *std::prev(later);
  return at < one.end ? one.share : 0;
}

}  // namespace

void BusyTime::add(const std::vector<MemberActivity>& parts) {
  for (const MemberActivity& part : parts) {
    if (part.end <= part.start) continue;
    const double io = std::clamp(part.io, 0.0, 1.0), wait = std::clamp(part.wait, 0.0, 1.0 - io);
    const std::size_t first = split(part.start), last = split(part.end);
    for (std::size_t i = first; i < last; ++i) {
      ActivityStep& step = steps_[i];
      count(step, steps_[i + 1].start, -1);
      // Members are independent, so the probabilities that each is idle multiply.
      step.no_io *= 1 - io;
      step.idle *= 1 - io - wait;
      count(step, steps_[i + 1].start, +1);
    }
  }
  while (steps_.size() > most_steps) coarsen();
}

BusyTime::Times BusyTime::between(Time start, Time end) const {
  double io_ns = 0, wait_ns = 0;
  auto at = std::ranges::upper_bound(steps_, start, {}, &ActivityStep::start);
  if (at != steps_.begin()) --at;
  for (; at != steps_.end() && std::next(at) != steps_.end() && at->start < end; ++at) {
    const double ns = ns_between(std::max(at->start, start), std::min(std::next(at)->start, end));
    io_ns += std::max(0.0, ns) * (1 - at->no_io);
    wait_ns += std::max(0.0, ns) * (at->no_io - at->idle);
  }
  return times_of(io_ns, wait_ns);
}

// Returns the number of the step that begins at `at`, and splits a step if none does.
std::size_t BusyTime::split(Time at) {
  const auto place = std::ranges::lower_bound(steps_, at, {}, &ActivityStep::start);
  const auto number = static_cast<std::size_t>(place - steps_.begin());
  if (place != steps_.end() && place->start == at) return number;
  ActivityStep step = number == 0 ? ActivityStep{} : steps_[number - 1];
  step.start = at;
  steps_.insert(place, step);
  return number;
}

void BusyTime::count(const ActivityStep& step, Time end, double sign) {
  const double ns = ns_between(step.start, end);
  io_ns_ += sign * ns * (1 - step.no_io);
  wait_ns_ += sign * ns * (step.no_io - step.idle);
}

// Merges the steps of the older half in pairs, each with the mean of both, so the sums stay exact.
void BusyTime::coarsen() {
  std::size_t kept = 0, next = 0;
  for (; next + 1 < most_steps / 2; next += 2) {
    const ActivityStep &one = steps_[next], &other = steps_[next + 1];
    const double first_ns = ns_between(one.start, other.start);
    const double both_ns = first_ns + ns_between(other.start, steps_[next + 2].start);
    const auto mean = [&](double a, double b) { return b + (a - b) * first_ns / both_ns; };
    steps_[kept++] = {one.start, mean(one.no_io, other.no_io), mean(one.idle, other.idle)};
  }
  steps_.erase(steps_.begin() + static_cast<std::ptrdiff_t>(kept), steps_.begin() + static_cast<std::ptrdiff_t>(next));
}

BusyTime::Times BusyTime::times_of(double io_ns, double wait_ns) {
  return {Duration{std::llround(std::max(0.0, io_ns))}, Duration{std::llround(std::max(0.0, wait_ns))}};
}

std::vector<BusyTime::MemberActivity> parts_of(const event::IoPhase& phase, Time start, Time end) {
  if (end <= start) return {};
  auto io = read(phase.io_intervals, phase.start, start, end);
  auto waits = read(phase.wait_intervals, phase.start, start, end);
  if (!io || !waits || (io->empty() && waits->empty())) {
    const double ns = ns_between(start, end);
    const auto share = [ns](Duration of) { return std::clamp(static_cast<double>(of.count()) / ns, 0.0, 1.0); };
    return {{start, end, share(phase.io), std::min(share(phase.wait), 1 - share(phase.io))}};
  }
  std::vector<Time> edges;
  for (const Intervals* intervals : {&*io, &*waits}) {
    for (const ReportedInterval& one : *intervals) {
      edges.push_back(one.start);
      edges.push_back(one.end);
    }
  }
  std::ranges::sort(edges);
  std::vector<BusyTime::MemberActivity> parts;
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    const double io_share = share_at(*io, edges[i]);
    const double wait_share = std::min(share_at(*waits, edges[i]), 1 - io_share);
    if (edges[i + 1] > edges[i] && io_share + wait_share > 0) {
      parts.push_back({edges[i], edges[i + 1], io_share, wait_share});
    }
  }
  return parts;
}

}  // namespace hocket::model
