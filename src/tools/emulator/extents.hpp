// Where the requests of a rank lie in a file, and which ranks are neighbours in a grid. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

namespace hocket::emulator {

// One request of a rank. A rank that has no more bytes takes part in a collective request with none.
struct RankRequest {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
};

// Returns how many requests the rank with the most bytes makes. `request_bytes` 0: one for all of a rank's bytes.
std::int64_t rounds_of(const std::vector<std::int64_t>& parts, std::int64_t request_bytes);

// Returns the request of a rank in a round. `parts`: bytes of each rank. Not strided: each rank has one extent, in the
// order of ranks. Strided: the ranks' requests of a round lie side by side, behind those of the round before.
RankRequest request_of(const std::vector<std::int64_t>& parts, std::int64_t request_bytes, bool strided, int rank,
                       std::int64_t round);

// Returns the neighbours of a rank in a grid without wrap-around, whose extents multiply to the number of ranks.
std::vector<int> neighbours_of(const std::vector<int>& grid, int rank);

}  // namespace hocket::emulator
