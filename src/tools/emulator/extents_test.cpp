#include "emulator/extents.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace hocket::emulator {
namespace {

// Returns which rank and round has each byte of the file, as the requests have it; -1: none. Fails on an overlap.
std::vector<int> owners(const std::vector<std::int64_t>& parts, std::int64_t request, bool strided) {
  std::vector<int> file(static_cast<std::size_t>(std::accumulate(parts.begin(), parts.end(), std::int64_t{0})), -1);
  for (int rank = 0; rank < static_cast<int>(parts.size()); rank++) {
    for (std::int64_t round = 0; round < rounds_of(parts, request); round++) {
      const RankRequest one = request_of(parts, request, strided, rank, round);
      for (std::int64_t at = one.offset; at < one.offset + one.bytes; at++) {
        EXPECT_EQ(file.at(static_cast<std::size_t>(at)), -1);
        file.at(static_cast<std::size_t>(at)) = rank;
      }
    }
  }
  return file;
}

TEST(Requests, CoverTheFileOnce) {
  for (const auto& parts : {std::vector<std::int64_t>{5, 5}, {7, 0, 4}, {1}, {3, 9, 2, 2}}) {
    for (const std::int64_t request : {0, 1, 2, 4, 100}) {
      for (const bool strided : {false, true}) {
        const std::vector<int> file = owners(parts, request, strided);
        for (std::size_t rank = 0; rank < parts.size(); rank++)
          EXPECT_EQ(std::count(file.begin(), file.end(), static_cast<int>(rank)), parts[rank]);
        EXPECT_TRUE(strided || std::is_sorted(file.begin(), file.end()));
      }
    }
  }
}

TEST(Requests, OfStridedRanksAlternate) {
  EXPECT_EQ(owners({4, 3}, 2, true), (std::vector<int>{0, 0, 1, 1, 0, 0, 1}));
  EXPECT_EQ(owners({4, 3}, 2, false), (std::vector<int>{0, 0, 0, 0, 1, 1, 1}));
}

TEST(Neighbours, AreThoseOfAGrid) {
  EXPECT_EQ(neighbours_of({1}, 0), std::vector<int>{});
  EXPECT_EQ(neighbours_of({4}, 0), std::vector<int>{1});
  EXPECT_EQ(neighbours_of({4}, 2), (std::vector<int>{1, 3}));
  EXPECT_EQ(neighbours_of({2, 3}, 4), (std::vector<int>{3, 5, 1}));
}

TEST(Neighbours, AreMutual) {
  for (const auto& grid : {std::vector<int>{6}, {2, 3}, {3, 2, 4}, {1, 5}}) {
    const int size = std::accumulate(grid.begin(), grid.end(), 1, std::multiplies<>());
    std::set<std::pair<int, int>> pairs;
    for (int rank = 0; rank < size; rank++)
      for (const int neighbour : neighbours_of(grid, rank)) EXPECT_TRUE(pairs.insert({rank, neighbour}).second);
    for (const auto& [rank, neighbour] : pairs) {
      EXPECT_TRUE(neighbour >= 0 && neighbour < size);
      EXPECT_TRUE(pairs.contains({neighbour, rank})) << rank << " and " << neighbour;
    }
  }
}

}  // namespace
}  // namespace hocket::emulator
