#include "coordinator/slow_servers.hpp"

#include <algorithm>
#include <vector>

namespace hocket::coordinator {
namespace {

// Of two in the middle the longer. Precondition: there is one.
Duration median(std::vector<Duration> durations) {
  const auto middle = durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 2);
  std::nth_element(durations.begin(), middle, durations.end());
  return *middle;
}

}  // namespace

// What one operation takes at a peer, as far as it can be held against `report`.
std::optional<Duration> SlowServers::of_like_size(const Reports& peer, const Report& report) {
  const bool any_size = report.size < 0;
  if (!peer.last.empty() && peer.last.back().stuck && report.at - peer.last.back().at <= recent) {
    return peer.last.back().service;
  }
  std::vector<Duration> times;
  for (const Report& other : peer.last) {
    if (report.at - other.at > recent || other.size < 0) continue;
    if (any_size || (other.size * 1.25 >= report.size && other.size <= report.size * 1.25))
      times.push_back(other.service);
  }
  if (times.empty()) return std::nullopt;
  return median(std::move(times));
}

std::optional<Duration> SlowServers::of_peers(MemberId server, const Report& report) const {
  std::vector<Duration> peers;
  for (const auto& [id, reports] : reports_) {
    if (id == server) continue;
    if (const auto time = of_like_size(reports, report)) peers.push_back(*time);
  }
  if (peers.size() < least_peers) return std::nullopt;
  return median(std::move(peers));
}

std::optional<SlowServers::Finding> SlowServers::report(MemberId server, const event::ServerLoad& load, Time now) {
  const auto found = reports_.find(server);
  const bool is_stuck = load.oldest >= stuck;
  if (found == reports_.end() || margin_ <= 0 || (load.operations <= 0 && !is_stuck)) return std::nullopt;
  Reports& own = found->second;

  Report report{now, -1, load.oldest, is_stuck};
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

  const auto n = static_cast<double>(reports_.size());
  const bool times_longer =
      static_cast<double>(report.service.count()) > margin_ * n / (n - 1) * static_cast<double>(peers->count());
  const bool is_slow = times_longer && report.service - *peers >= least_longer;
  own.slow = is_slow ? own.slow + 1 : 0;
  if (own.slow < running) return std::nullopt;
  return Finding{report.service, *peers};
}

}  // namespace hocket::coordinator
