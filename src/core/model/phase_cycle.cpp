#include "model/phase_cycle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace hocket::model {
namespace {

constexpr std::size_t most_compared = 16;  // phases: two of the longest cycles
constexpr std::size_t cycles_seen = 3;     // cycles needed before a length is considered
// Two phases are of one kind if their difference is below this.
constexpr double one_kind = 0.5;
// Neighbours are alike if their mean difference is at most this, whatever cycles there may be.
constexpr double alike = 0.05;
// The mean difference within a cycle must be at most `most_in_cycle`. The mean difference of neighbours must be
// larger by the factor `least_ratio` + `doubt` / number of compared phases, so few phases must be more alike.
constexpr double most_in_cycle = 0.35;
constexpr double least_ratio = 2;
constexpr double doubt = 8;
// The excess in mean difference that a shorter cycle may have over the best one, because it is the likelier one.
struct Margin {
  double factor;
  double more;
};
constexpr Margin repeated{1.5, 0.05};  // the best length is a multiple of it
constexpr Margin other{1.2, 0.03};
// The cost of assuming that phases were left out of the cycle. A phase that is unlike anything costs 1.
constexpr double left_out = 0.6;
// Gaps between phases count as equal if they are shorter than this part of the usual time between two starts.
constexpr double least_gap = 0.1;

double relative(double difference, double largest) {
  return difference != 0 && largest > 0 ? std::min(1.0, std::abs(difference) / largest) : 0;
}

double as_double(std::int64_t value) { return static_cast<double>(value); }

// Compares the kept phases with each other.
class PhaseComparison {
 public:
  explicit PhaseComparison(const PhaseRing& phases) : phases_{phases} {
    if (phases.size() < 2) return;
    const Duration all = phases.newest().start - phases[0].start;
    least_gap_ = least_gap * as_double(all.count()) / static_cast<double>(phases.size() - 1);
  }

  // Returns the difference of two phases, from 0 (the same) to 1 (nothing in common).
  double difference(std::size_t i, std::size_t j) const {
    const PhaseRecord& a = phases_[i];
    const PhaseRecord& b = phases_[j];
    if (a.target != b.target) return 1;
    const double written = as_double(a.written) - as_double(b.written);
    const double read = as_double(a.bytes) - as_double(a.written) - as_double(b.bytes) + as_double(b.written);
    const double moved = relative(std::abs(written) + std::abs(read), as_double(std::max(a.bytes, b.bytes)));
    return std::max(moved, gap_difference(i, j));
  }

  std::size_t phases() const { return phases_.size(); }

  // Returns the mean difference of successive phases, over the newest ones; 1 if there are too few.
  double neighbours() const {
    double sum = 0;
    std::size_t pairs = 0;
    for (std::size_t i = phases(); i-- > 2 && pairs < most_compared; ++pairs) sum += difference(i, i - 1);
    return pairs > 0 ? sum / static_cast<double>(pairs) : 1;
  }

 private:
  bool timed(std::size_t i) const { return !phases_[i].resized && phases_[i].processes == phases_[i - 1].processes; }

  // Returns the difference in computing before two phases. Times of different sizes cannot be compared, but
  // iterations can.
  double gap_difference(std::size_t i, std::size_t j) const {
    if (i == 0 || j == 0) return 0;
    if (timed(i) && timed(j) && phases_[i].processes == phases_[j].processes) {
      const auto gap = [&](std::size_t k) {
        return std::max(0.0, as_double((phases_[k].start - phases_[k - 1].end).count()));
      };
      return relative(gap(i) - gap(j), std::max({gap(i), gap(j), least_gap_}));
    }
    const auto iterations = [&](std::size_t k) {
      const bool known = phases_[k - 1].iteration >= 0 && phases_[k].iteration >= phases_[k - 1].iteration;
      return known ? as_double(phases_[k].iteration - phases_[k - 1].iteration) : -1;
    };
    if (iterations(i) < 0 || iterations(j) < 0) return 0;
    return relative(iterations(i) - iterations(j), std::max(iterations(i), iterations(j)));
  }

  const PhaseRing& phases_;
  double least_gap_ = 0;  // ns
};

// Returns the last phase of the newest cycle that was like the one before it; the newest phase if there is none.
std::size_t end_of_example(const PhaseComparison& compared, std::size_t length) {
  std::size_t in_a_row = 0;
  for (std::size_t i = compared.phases(); i-- > length;) {
    in_a_row = compared.difference(i, i - length) < one_kind ? in_a_row + 1 : 0;
    if (in_a_row == length) return i + length - 1;
  }
  return compared.phases() - 1;
}

// Gives the phases from `first` on the places that explain them best (Viterbi's algorithm). Each phase should differ
// little from the example's phase in its place, and places should follow each other, except where phases were left
// out. Returns the mean difference, not counting the example. It gives up and returns 1, without
// places, once the mean must be above `most`.
double align(const PhaseComparison& compared, std::size_t first, double most, PhaseCycle& cycle) {
  using AlignmentCosts = std::array<double, PhaseCycle::longest>;
  const std::size_t length = cycle.length;
  const std::size_t phases = compared.phases();
  const std::size_t example = end_of_example(compared, length) + 1 - length;
  EachPhase<std::array<std::uint8_t, PhaseCycle::longest>> before;
  AlignmentCosts costs{};
  const auto cheapest = [&] {
    return static_cast<std::size_t>(std::min_element(costs.begin(), costs.begin() + length) - costs.begin());
  };
  const std::size_t counted = phases - first - length;
  for (std::size_t i = first; i < phases; ++i) {
    const std::size_t jump = cheapest();
    if (costs[jump] > most * static_cast<double>(counted)) return 1;  // costs only grow
    AlignmentCosts next{};
    for (std::size_t place = 0; place < length; ++place) {
      const std::size_t in_order = (place + length - 1) % length;
      const bool jumps = costs[jump] + left_out < costs[in_order];
      before[i][place] = static_cast<std::uint8_t>(jumps ? jump : in_order);
      next[place] = (jumps ? costs[jump] + left_out : costs[in_order]) + compared.difference(i, example + place);
    }
    costs = next;
  }
  std::size_t place = cheapest();
  // The places are shifted so that the newest phase gets the last one.
  const std::size_t shift = length - 1 - place;
  const double cost = costs[place];
  for (std::size_t i = phases; i-- > first;) {
    cycle.place[i] = static_cast<std::uint8_t>((place + shift) % length);
    place = before[i][place];
  }
  return cost / static_cast<double>(counted);
}

// Returns the mean difference in a cycle of that length, over the newest phases only; nothing if it is not clearly less
// than that of neighbours.
std::optional<double> in_cycle(const PhaseComparison& compared, std::size_t length, double neighbours) {
  PhaseCycle cycle;
  cycle.length = length;
  const std::size_t phases = std::min(compared.phases(), most_compared + length);
  const double clearly = least_ratio + doubt / static_cast<double>(phases - length);
  const double most = std::min(most_in_cycle, (neighbours - alike) / clearly);
  const double mean = align(compared, compared.phases() - phases, most, cycle);
  return mean > most ? std::nullopt : std::optional{mean};
}

std::size_t length_of(const PhaseComparison& compared) {
  const double neighbours = compared.neighbours();
  if (neighbours <= alike) return 1;
  constexpr double no_cycle = 2;
  std::array<double, PhaseCycle::longest + 1> at{};
  at.fill(no_cycle);
  std::size_t best = 1;
  for (std::size_t length = 2; length <= PhaseCycle::longest; ++length) {
    if (compared.phases() <= cycles_seen * length) break;
    const std::optional<double> mean = in_cycle(compared, length, neighbours);
    if (!mean) continue;
    at[length] = *mean;
    if (*mean < at[best]) best = length;
  }
  for (std::size_t length = 2; length < best; ++length) {
    const Margin margin = best % length == 0 ? repeated : other;  // a multiple of a cycle is a cycle, too
    if (at[length] <= margin.factor * at[best] + margin.more) return length;
  }
  return best;
}

}  // namespace

PhaseCycle find_cycle(const PhaseRing& phases) {
  const PhaseComparison compared{phases};
  PhaseCycle cycle;
  cycle.length = length_of(compared);
  if (cycle.length > 1) align(compared, 0, std::numeric_limits<double>::infinity(), cycle);
  return cycle;
}

}  // namespace hocket::model
