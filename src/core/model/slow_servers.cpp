#include "model/slow_servers.hpp"

#include <algorithm>

namespace hocket::model {
namespace {

// Returns the median; of two middle values the longer one. Precondition: not empty.
Duration median(std::vector<Duration> durations) {
  const auto middle = durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 2);
  std::nth_element(durations.begin(), middle, durations.end());
  return *middle;
}

}  // namespace

// If the peer itself is stuck, only the age of its stuck access counts.
std::vector<Duration> SlowServers::of_like_size(const Reports& peer, const LoadReport& report) {
  std::vector<Duration> times;
  const auto is_recent = [&report](const LoadReport& other) { return report.at - other.at <= recent; };
  if (!peer.last.empty() && peer.last.back().stuck && is_recent(peer.last.back())) return {peer.last.back().service};
  for (const LoadReport& other : peer.last) {
    if (!is_recent(other) || other.size < 0) continue;
    const bool any_size = report.size < 0;
    const bool like = other.size * 1.25 >= report.size && other.size <= report.size * 1.25;
    if (any_size || like) times.push_back(other.service);
  }
  return times;
}

std::optional<SlowServers::Peers> SlowServers::of_peers(MemberId server, const LoadReport& report) const {
  std::vector<Duration> medians;
  Duration longest{};
  std::size_t servers = 0;
  const std::string& group = reports_.at(server).group;
  for (const auto& [id, reports] : reports_) {
    if (reports.group != group) continue;
    ++servers;
    std::vector<Duration> times = id == server ? std::vector<Duration>{} : of_like_size(reports, report);
    if (times.empty()) continue;
    longest = std::max(longest, *std::max_element(times.begin(), times.end()));
    medians.push_back(median(std::move(times)));
  }
  if (medians.size() < fewest_peers_) return std::nullopt;
  const std::size_t count = medians.size();
  return Peers{median(std::move(medians)), longest, count, servers};
}

void SlowServers::regroup(MemberId server, const std::string& group) {
  const auto found = reports_.find(server);
  if (found == reports_.end() || found->second.group == group) return;
  found->second = {};
  found->second.group = group;
}

std::optional<SlowServers::Finding> SlowServers::finding(MemberId server) const {
  const auto found = reports_.find(server);
  return found == reports_.end() ? std::nullopt : found->second.found;
}

std::optional<SlowServers::Finding> SlowServers::report(MemberId server, const event::ServerLoad& load, Time now) {
  const auto found = reports_.find(server);
  if (found == reports_.end() || margin_ <= 0) return std::nullopt;
  Reports& own = found->second;
  own.found.reset();
  const bool is_stuck = load.oldest >= stuck;
  if (load.operations <= 0 && !is_stuck) return std::nullopt;

  LoadReport report{now, -1, load.oldest, is_stuck};
  if (load.operations > 0) {
    const Duration each = std::max(load.service, Duration::zero()) / load.operations;
    if (!is_stuck)
      report.size = static_cast<double>(std::max<std::int64_t>(load.bytes, 0)) / static_cast<double>(load.operations);
    report.service = is_stuck ? std::max(each, load.oldest) : each;
  }
  const auto peers = of_peers(server, report);
  own.last.push_back(report);
  if (own.last.size() > kept) own.last.pop_front();
  if (!peers) return std::nullopt;

  const auto n = static_cast<double>(peers->group);
  const double margin = peers->count > 1 ? margin_ : 2 * margin_;
  const bool pays =
      static_cast<double>(report.service.count()) > margin * n / (n - 1) * static_cast<double>(peers->middle.count());
  const bool is_slow = pays && report.service - peers->middle >= least_longer && report.service > peers->longest;
  own.slow = is_slow ? own.slow + 1 : 0;
  if (own.slow >= running) own.found = {report.service, peers->middle};
  return own.found;
}

Duration next_hold_off(Duration first, Duration last, Time back, Time now) {
  const bool again = last > Duration::zero() && now - back < 4 * last;
  return again ? std::min(2 * last, std::max(first, longest_hold_off)) : first;
}

}  // namespace hocket::model
