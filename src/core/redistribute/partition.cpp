#include "redistribute/partition.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace hocket::redistribute {
namespace {

__extension__ using Wide = __int128;  // for products of two 64-bit numbers

bool usable(double weight) { return std::isfinite(weight) && weight > 0; }

// Replaces each invalid weight by the smallest valid one, or by 1 if there is none.
std::vector<long double> cleaned(std::span<const double> weights) {
  double smallest = 0;
  for (const double w : weights) {
    if (usable(w) && (smallest == 0 || w < smallest)) smallest = w;
  }
  if (smallest == 0) smallest = 1;
  std::vector<long double> clean;
  clean.reserve(weights.size());
  for (const double w : weights) clean.push_back(usable(w) ? w : smallest);
  return clean;
}

}  // namespace

Partition::Partition(std::vector<std::int64_t> bounds) : bounds_(std::move(bounds)) {}

Partition Partition::block(std::int64_t length, int parts) {
  const std::int64_t share = length / parts;
  const std::int64_t larger = length % parts;
  std::vector<std::int64_t> bounds{0};
  bounds.reserve(static_cast<std::size_t>(parts) + 1);
  for (int k = 0; k < parts; ++k) bounds.push_back(bounds.back() + share + (k < larger ? 1 : 0));
  return Partition{std::move(bounds)};
}

// Applies the largest remainder method. Each part gets the whole elements of its quota. The rest goes to the parts
// with the largest fractions, one element each; among equal fractions, lower parts come first.
Partition Partition::weighted(std::int64_t length, std::span<const double> weights) {
  const std::vector<long double> clean = cleaned(weights);
  const long double total = std::accumulate(clean.begin(), clean.end(), 0.0L);
  std::vector<std::int64_t> shares;
  std::vector<long double> lost;
  std::int64_t left = length;
  for (const long double w : clean) {
    const long double quota = w / total * static_cast<long double>(length);
    // Rounding must never give away more elements than are left.
    shares.push_back(std::min(static_cast<std::int64_t>(quota), left));
    lost.push_back(quota - static_cast<long double>(shares.back()));
    left -= shares.back();
  }
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return lost[a] > lost[b]; });
  for (std::size_t i = 0; left > 0; i = (i + 1) % order.size(), --left) ++shares[order[i]];

  std::vector<std::int64_t> bounds{0};
  for (const std::int64_t share : shares) bounds.push_back(bounds.back() + share);
  return Partition{std::move(bounds)};
}

}  // namespace hocket::redistribute
