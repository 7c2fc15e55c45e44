#include "emulator/extents.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace hocket::emulator {
namespace {

std::int64_t size_of_request(const std::vector<std::int64_t>& parts, std::int64_t request_bytes) {
  return request_bytes > 0 ? request_bytes : std::max<std::int64_t>(1, *std::max_element(parts.begin(), parts.end()));
}

}  // namespace

std::int64_t rounds_of(const std::vector<std::int64_t>& parts, std::int64_t request_bytes) {
  const std::int64_t request = size_of_request(parts, request_bytes);
  return (*std::max_element(parts.begin(), parts.end()) + request - 1) / request;
}

RankRequest request_of(const std::vector<std::int64_t>& parts, std::int64_t request_bytes, bool strided, int rank,
                       std::int64_t round) {
  const std::int64_t request = size_of_request(parts, request_bytes);
  const auto done = [&](std::int64_t part, std::int64_t rounds) { return std::min(part, rounds * request); };
  const auto me = static_cast<std::size_t>(rank);
  const std::int64_t bytes = done(parts[me], round + 1) - done(parts[me], round);
  std::int64_t offset = 0;
  for (std::size_t other = 0; other < parts.size(); other++) {
    if (strided)
      offset += done(parts[other], other < me ? round + 1 : round);
    else
      offset += other < me ? parts[other] : 0;
  }
  return {strided ? offset : offset + done(parts[me], round), bytes};
}

std::vector<int> neighbours_of(const std::vector<int>& grid, int rank) {
  std::vector<int> neighbours;
  int stride = 1;  // distance in ranks of two neighbours along the dimension
  for (std::size_t dimension = grid.size(); dimension-- > 0;) {
    const int place = rank / stride % grid[dimension];
    if (place > 0) neighbours.push_back(rank - stride);
    if (place + 1 < grid[dimension]) neighbours.push_back(rank + stride);
    stride *= grid[dimension];
  }
  return neighbours;
}

}  // namespace hocket::emulator
