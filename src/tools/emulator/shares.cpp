#include "emulator/shares.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/splitmix.hpp"

namespace hocket::emulator {
namespace {

std::uint64_t mixed(std::uint64_t bits) { return splitmix(bits + splitmix_step); }

// Returns a number above 0, at most 1.
double uniform(std::uint64_t bits) { return (static_cast<double>(bits >> 11) + 1) * 0x1p-53; }

std::uint64_t bits_of(std::uint64_t seed, std::uint64_t stage, std::uint64_t iteration, std::uint64_t rank) {
  return mixed(mixed(mixed(mixed(seed) ^ stage) ^ iteration) ^ rank);
}

// Returns each rank's load relative to the mean, for an imbalance that is given.
std::vector<double> loads_of(const Sharing& sharing, int processes, std::uint64_t seed, std::size_t number) {
  const auto size = static_cast<std::size_t>(processes);
  std::vector<double> loads(size, 1);
  if (size < 2) return loads;
  const double most = std::min(sharing.imbalance, static_cast<double>(processes));
  const double above = most - 1;
  switch (sharing.distribution) {
    case ShareDistribution::linear:
      for (std::size_t rank = 0; rank < size; rank++)
        loads[rank] = 1 + above * (1 - 2 * static_cast<double>(rank) / static_cast<double>(size - 1));
      break;
    case ShareDistribution::one:
      std::fill(loads.begin(), loads.end(), (static_cast<double>(size) - most) / static_cast<double>(size - 1));
      loads[0] = most;
      break;
    case ShareDistribution::random: {
      // Powers of numbers between 0 and 1: a larger exponent makes the largest stand out more, up to `processes`.
      std::vector<double> logs(size);
      for (std::size_t rank = 0; rank < size; rank++) logs[rank] = std::log(uniform(bits_of(seed, number, 0, rank)));
      const auto scaled = [&](double exponent) {
        double sum = 0;
        const double top = *std::max_element(logs.begin(), logs.end());
        for (std::size_t rank = 0; rank < size; rank++) sum += loads[rank] = std::exp(exponent * (logs[rank] - top));
        for (double& load : loads) load *= static_cast<double>(size) / sum;
        return static_cast<double>(size) / sum;  // the largest
      };
      double low = 0, high = 1;
      while (scaled(high) < most && high < 1e6) high *= 2;
      for (int step = 0; step < 60; step++) (scaled((low + high) / 2) < most ? low : high) = (low + high) / 2;
      scaled(low);
      break;
    }
  }
  return loads;
}

}  // namespace

double factor_at(const Factors& factors, int processes) {
  const auto above =
      std::find_if(factors.begin(), factors.end(), [processes](const auto& point) { return point.first >= processes; });
  if (above == factors.end()) return factors.back().second;
  if (above->first == processes) return above->second;
  if (above == factors.begin()) return above->second * above->first / processes;
  const auto& [size, factor] = *(above - 1);
  const double part =
      std::log(static_cast<double>(processes) / size) / std::log(static_cast<double>(above->first) / size);
  return factor * std::pow(above->second / factor, part);
}

double factor_of(const Stage& stage, const EmulationPlan& plan, std::int64_t iteration, int processes) {
  if (!stage.factors.empty()) return factor_at(stage.factors, processes);
  if (const auto group = plan.group_of(iteration, processes)) return plan.groups[*group].factor;
  Factors points;
  for (const GroupPlan& group : plan.groups) points.emplace_back(group.processes, group.factor);
  std::sort(points.begin(), points.end());
  return factor_at(points, processes);
}

std::vector<double> shares_of(const Sharing& sharing, int processes, std::uint64_t seed, std::size_t number) {
  const auto size = static_cast<std::size_t>(processes);
  for (const auto& shares : sharing.shares)
    if (shares.size() == size) return shares;
  std::vector<double> shares = loads_of(sharing, processes, seed, number);
  for (double& share : shares) share /= static_cast<double>(processes);
  return shares;
}

std::vector<std::int64_t> parts_of(std::int64_t bytes, const std::vector<double>& shares) {
  const double whole = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<std::int64_t> parts(shares.size(), 0);
  double sum = 0;
  std::int64_t given = 0;
  for (std::size_t rank = 0; rank < shares.size(); rank++) {
    sum += shares[rank];
    const bool last = rank + 1 == shares.size();
    const std::int64_t until = last ? bytes : std::llround(static_cast<double>(bytes) * std::min(1.0, sum / whole));
    parts[rank] = until - given;
    given = until;
  }
  return parts;
}

DataExtent data_extent(const EmulationPlan& plan, std::int64_t bytes, int processes, int rank) {
  const auto parts = parts_of(bytes, shares_of(plan.data, processes, plan.seed, data_number));
  const auto mine = parts.begin() + rank;
  return {std::accumulate(parts.begin(), mine, std::int64_t{0}), *mine};
}

double jitter_of(double deviation, std::uint64_t seed, std::size_t stage, std::int64_t iteration, int rank) {
  if (deviation <= 0) return 1;
  const std::uint64_t bits =
      bits_of(seed, stage, static_cast<std::uint64_t>(iteration), static_cast<std::uint64_t>(rank));
  const double radius = std::sqrt(-2 * std::log(uniform(bits)));
  return std::max(0.0, 1 + deviation * radius * std::cos(2 * std::numbers::pi * uniform(mixed(bits))));
}

}  // namespace hocket::emulator
