#include "redistribute/balance.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace hocket::redistribute {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

constexpr std::int64_t endless = 1 << 30;

// Returns the times of processes with these elements, of which each takes the process's seconds.
std::vector<ProcessTime> times_of(const std::vector<std::int64_t>& elements, const std::vector<double>& each_s,
                                  double error_s = 0) {
  std::vector<ProcessTime> times;
  for (std::size_t k = 0; k < elements.size(); ++k)
    times.push_back({static_cast<double>(elements[k]) * each_s[k], error_s, elements[k]});
  return times;
}

TEST(Balance, AWindowHasMeanAndError) {
  BusyWindow all;
  BusyWindow part;
  for (const double s : {1.0, 2.0, 3.0}) all.add(s);
  EXPECT_TRUE(std::isinf(all.error_s())) << "three times say too little";
  for (const double s : {4.0, 5.0}) part.add(s);
  all.add(part);
  all.add(BusyWindow{});
  EXPECT_EQ(all.count(), 5);
  EXPECT_DOUBLE_EQ(all.mean_s(), 3);
  EXPECT_DOUBLE_EQ(all.error_s(), std::sqrt(2.5 / 5));
}

TEST(Balance, SpeedIsElementsPerSecondAndUnknownOnesAreAverage) {
  EXPECT_THAT(speeds(std::vector<ProcessTime>{{2, 0, 10}, {1, 0, 15}, {1, 0, 0}, {0, 0, 7}}),
              ElementsAre(5, 15, 10, 10));
  EXPECT_THAT(speeds(std::vector<ProcessTime>{{0, 0, 0}, {0, 0, 0}}), ElementsAre(1, 1));
}

TEST(Balance, TheAvoidableTimeIsThatOfTheSlowestBeyondSharesBySpeed) {
  // 80 elements at 1 s and at 3 s each: by speed 120 and 40, 120 s in place of 240.
  EXPECT_THAT(avoidable_s(times_of({80, 80}, {1, 3})), DoubleEq(120));
  EXPECT_EQ(avoidable_s(times_of({120, 40}, {1, 3})), 0);
}

TEST(Balance, NoiseAndSmallGainsAreNone) {
  EXPECT_GT(avoidable_s(times_of({80, 80}, {1, 3}, 30)), 0);
  EXPECT_EQ(avoidable_s(times_of({80, 80}, {1, 3}, 50)), 0) << "within the errors";
  EXPECT_GT(avoidable_s(times_of({5000, 5000}, {1, 1.25})), 0);
  EXPECT_EQ(avoidable_s(times_of({5000, 5000}, {1, 1.15})), 0) << "below 10 %";
}

TEST(Balance, FewLargeElementsCannotBeSharedBetter) { EXPECT_EQ(avoidable_s(times_of({2, 1}, {1, 1})), 0); }

TEST(Balance, OneProcessOrNoElementsHaveNoBalance) {
  EXPECT_EQ(avoidable_s(times_of({5}, {1})), 0);
  EXPECT_EQ(avoidable_s(times_of({0, 0}, {1, 2})), 0);
}

TEST(Balance, MovedElementsAreThoseOutsideOfTheOldRange) {
  EXPECT_EQ(elements_moved(Partition({0, 50, 100}), Partition({0, 25, 100})), 25);
  EXPECT_EQ(elements_moved(Partition({0, 10, 20, 30}), Partition({0, 20, 25, 30})), 15);
  EXPECT_EQ(elements_moved(Partition({0, 7, 9}), Partition({0, 7, 9})), 0);
}

TEST(Balance, TheCostOfMovesIsLearnt) {
  MoveCost cost;
  for (int i = 0; i < 50; ++i) cost.learn(1e9, 4, 0.5);
  EXPECT_NEAR(cost.seconds(0), 0.5, 1e-9);
  EXPECT_NEAR(cost.seconds(1e9), 4.5, 1e-9);
  for (int i = 0; i < 50; ++i) cost.learn(100, 0.25, 0.5);
  EXPECT_NEAR(cost.seconds(1e9), 4.75, 1e-9) << "a small move says nothing about the rate";
}

// Returns after how many looks the data move; -1: not within 100.
int looks_until_move(Rebalancing& rebalancing, const std::vector<ProcessTime>& times, std::int64_t remaining,
                     double move_s) {
  for (int look = 1; look <= 100; ++look) {
    std::int64_t iterations = 0;
    while (!rebalancing.is_look_due()) ++iterations;
    if (rebalancing.look(times, iterations, remaining, move_s)) return look;
  }
  return -1;
}

TEST(Rebalancing, MovesWhenTheLossHasPaidForIt) {
  Rebalancing rebalancing;
  const auto unequal = times_of({80, 80}, {1, 3});  // 120 s an iteration
  EXPECT_EQ(looks_until_move(rebalancing, unequal, endless, 1), 2) << "one look may have met a disturbance";
  EXPECT_EQ(looks_until_move(rebalancing, unequal, 10, 1300), -1) << "ten iterations do not repay it";
}

TEST(Rebalancing, ShortDisturbancesMoveNothingHoweverCheapAMoveIs) {
  Rebalancing rebalancing;
  const auto unequal = times_of({80, 80}, {1e-4, 3e-4});  // 12 ms an iteration
  EXPECT_EQ(looks_until_move(rebalancing, unequal, 80, 1e-3), -1) << "less than a second is left to win";
  int iterations = 0;
  int since = 0;
  for (Rebalancing another;; since = 0) {
    while (!another.is_look_due()) ++since;
    iterations += since;
    if (another.look(unequal, since, endless, 1e-3)) break;
  }
  EXPECT_GE(iterations * 12e-3, 1);
  EXPECT_LE(iterations * 12e-3, 1.3);
}

TEST(Rebalancing, LooksAreRareWhileThereIsBalance) {
  Rebalancing rebalancing;
  const auto equal = times_of({80, 80}, {1, 1});
  int looks = 0;
  for (int iteration = 0; iteration < 100'000; ++iteration) {
    if (!rebalancing.is_look_due()) continue;
    ++looks;
    EXPECT_FALSE(rebalancing.look(equal, 8, endless, 0));
  }
  EXPECT_LE(looks, 7 + 100'000 / Rebalancing::longest);
}

// The times do not depend on the elements: each move fails.
TEST(Rebalancing, MovesThatDoNotHelpBecomeRare) {
  Rebalancing rebalancing;
  const auto stubborn = times_of({80, 80}, {1, 3});
  int moves = 0;
  for (int iteration = 0; iteration < 100'000; ++iteration) {
    if (!rebalancing.is_look_due() || !rebalancing.look(stubborn, 8, endless, 1000)) continue;
    ++moves;
    rebalancing.moved();
  }
  // 12 million seconds were lost, which would pay for 12,000 moves.
  EXPECT_LE(moves, 30);
}

// ---- properties: a simulated program beside an oracle ------------------------------------------------------------

struct Outcome {
  double lost_s = 0;  // in iterations, beyond those with the best shares
  double moving_s = 0;
  int moves = 0;
};

// A program whose processes change their speed now and then, with noise.
class SimulatedProgram {
 public:
  SimulatedProgram(unsigned seed, double noise) : random_(seed), noise_(noise) {
    each_s_.assign(static_cast<std::size_t>(draw(2, 9)), 1e-3);
    shares_ = Partition::block(10'000, static_cast<int>(each_s_.size()));
    windows_.resize(each_s_.size());
  }
  int draw(int from, int to) { return std::uniform_int_distribution<int>(from, to - 1)(random_); }
  void change_a_speed() {
    each_s_[static_cast<std::size_t>(draw(0, static_cast<int>(each_s_.size())))] = 1e-3 * draw(1, 5);
  }
  // Seconds of an iteration of the slowest process, with these shares and without noise.
  double slowest_s(const Partition& shares) const {
    double slowest = 0;
    for (std::size_t k = 0; k < each_s_.size(); ++k)
      slowest = std::max(slowest, static_cast<double>(shares.part(static_cast<int>(k)).count()) * each_s_[k]);
    return slowest;
  }
  Partition best() const {
    std::vector<double> weights;
    for (const double s : each_s_) weights.push_back(1 / s);
    return Partition::weighted(shares_.length(), weights);
  }
  double avoidable_now_s() const { return slowest_s(shares_) - slowest_s(best()); }

  void iterate(std::int64_t remaining, double move_s) {
    outcome.lost_s += avoidable_now_s();
    for (std::size_t k = 0; k < each_s_.size(); ++k)
      windows_[k].add(static_cast<double>(shares_.part(static_cast<int>(k)).count()) * each_s_[k] *
                      std::lognormal_distribution<double>(0, noise_)(random_));
    if (!rebalancing_.is_look_due()) return;
    std::vector<ProcessTime> times;
    for (std::size_t k = 0; k < each_s_.size(); ++k)
      times.push_back({windows_[k].mean_s(), windows_[k].error_s(), shares_.part(static_cast<int>(k)).count()});
    const std::int64_t iterations = windows_[0].count();
    windows_.assign(each_s_.size(), {});
    if (!rebalancing_.look(times, iterations, remaining, move_s)) return;
    shares_ = Partition::weighted(shares_.length(), speeds(times));
    outcome.moving_s += move_s;
    ++outcome.moves;
    rebalancing_.moved();
  }

  Outcome outcome;

 private:
  std::mt19937 random_;
  double noise_;
  std::vector<double> each_s_;
  Partition shares_;
  std::vector<BusyWindow> windows_;
  Rebalancing rebalancing_;
};

TEST(RebalancingProperty, BalancedProcessesNeverMoveWithinNoise) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    SimulatedProgram program(seed, 0.02 * static_cast<double>(seed % 25));
    for (int iteration = 0; iteration < 5000; ++iteration) program.iterate(endless, 1e-6);
    EXPECT_EQ(program.outcome.moves, 0) << "seed " << seed;
  }
}

TEST(RebalancingProperty, SpeedsThatStayNeedFewMoves) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    SimulatedProgram program(seed, 0.01 * static_cast<double>(seed % 20));
    program.change_a_speed();
    program.change_a_speed();
    const double at_first_s = program.avoidable_now_s();
    for (int iteration = 0; iteration < 5000; ++iteration) program.iterate(endless, 1);
    EXPECT_LE(program.outcome.moves, 3) << "seed " << seed;
    EXPECT_LE(program.avoidable_now_s(), std::max(0.1 * at_first_s, 0.1 * 10)) << "seed " << seed;
  }
}

// An oracle knows each change of speed, and then moves at once or waits, whichever costs less. Besides the price of its
// moves, a program may lose what happens until an imbalance is noticed: one longest distance, and two looks.
TEST(RebalancingProperty, TheTotalLossIsBoundedBesideAnOracle) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    SimulatedProgram program(seed, 0.05);
    const double move_s = std::exp2(program.draw(-4, 18));
    double oracle_s = 0;
    double unnoticed_s = 0;
    std::int64_t remaining = 20'000;
    while (remaining > 0) {
      program.change_a_speed();
      const std::int64_t lasts = std::min<std::int64_t>(remaining, program.draw(100, 6000));
      const double before_s = program.avoidable_now_s();
      oracle_s += std::min(std::max(move_s, 1.0), before_s * static_cast<double>(lasts));
      unnoticed_s += before_s * static_cast<double>(std::min(lasts, Rebalancing::longest + 2 * Rebalancing::shortest));
      for (std::int64_t i = 0; i < lasts; ++i) program.iterate(--remaining, move_s);
    }
    const Outcome& found = program.outcome;
    // 10 % of the computing time counts as balance.
    const double tolerated_s = 20'000 * 0.1 * 10;
    EXPECT_LE(found.lost_s + found.moving_s, 2.2 * oracle_s + unnoticed_s + tolerated_s) << "seed " << seed;
    EXPECT_LE(found.moving_s, 1.1 * found.lost_s) << "a move is paid by a loss before it, seed " << seed;
  }
}

}  // namespace
}  // namespace hocket::redistribute
