// How a stage scales with the number of processes, and what each rank has of it. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/plan.hpp"

namespace hocket::emulator {

// Returns the factor for so many processes: linear in the logarithms between two points, as for evenly divided work
// below the first, constant above the last. `factors` is not empty.
double factor_at(const Factors& factors, int processes);

// Returns the factor of a stage: its own, else that of the group of the plan that computes the iteration, else one
// between the groups' sizes.
double factor_of(const Stage& stage, const EmulationPlan& plan, std::int64_t iteration, int processes);

// Returns each rank's share; the sum is 1. `number` is that of the stage in the plan, for what is drawn.
std::vector<double> shares_of(const Sharing& sharing, int processes, std::uint64_t seed, std::size_t number);

// Divides bytes by shares, without a remainder.
std::vector<std::int64_t> parts_of(std::int64_t bytes, const std::vector<double>& shares);

// Stands for the data among the numbers of stages, for what is drawn.
inline constexpr std::size_t data_number = SIZE_MAX;

// Returns what a rank has of `bytes` constant or variable data.
struct DataExtent {
  std::int64_t first = 0;
  std::int64_t count = 0;
};
DataExtent data_extent(const EmulationPlan& plan, std::int64_t bytes, int processes, int rank);

// Returns a number of mean 1 and the given standard deviation, at least 0. It depends on its arguments alone, so each
// rank can repeat it.
double jitter_of(double deviation, std::uint64_t seed, std::size_t stage, std::int64_t iteration, int rank);

}  // namespace hocket::emulator
