#include "emulator/plan.hpp"

namespace hocket::emulator {

std::int64_t EmulationPlan::iterations() const { return first_iteration(groups.size()); }

std::int64_t EmulationPlan::first_iteration(std::size_t group) const {
  std::int64_t first = 0;
  for (std::size_t before = 0; before < group; before++) first += groups[before].iterations;
  return first;
}

std::optional<std::size_t> EmulationPlan::group_of(std::int64_t iteration, int processes) const {
  std::optional<std::size_t> found;
  std::int64_t first = 0;
  for (std::size_t at = 0; at < groups.size() && first <= iteration; at++) {
    if (groups[at].processes == processes) found = at;
    first += groups[at].iterations;
  }
  return found;
}

Position position_of(const EmulationPlan& plan, std::int64_t iteration) {
  Position at{0, iteration};
  while (at.phase + 1 < plan.phases.size() && at.iteration >= plan.phases[at.phase].iterations)
    at.iteration -= plan.phases[at.phase++].iterations;
  return at;
}

bool takes_place(const Stage& stage, std::int64_t iteration_of_phase) {
  return (iteration_of_phase + 1) % stage.every == 0;
}

std::int64_t times_before(const Stage& stage, std::int64_t iteration_of_phase) {
  return iteration_of_phase / stage.every * stage.repeat;
}

}  // namespace hocket::emulator
