// Tests of Uncoordinated: accesses without coordination, compared with a simulation in small steps.
#include "model/uncoordinated.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/testing.hpp"

namespace hocket::model {
namespace {

using testing::after_1_s;

constexpr Slowness even_halves{2, 0};  // two share evenly

class Alone : public ::testing::Test {
 protected:
  void begin(std::uint64_t application, double expected_s, double s) {
    queue.advance(after_1_s(s));
    queue.begin(AppId{application}, even_halves, 1, expected_s, after_1_s(s));
  }
  double end(std::uint64_t application, double size_s, double s) {
    queue.advance(after_1_s(s));
    return queue.end(AppId{application}, size_s, after_1_s(s)).value();
  }
  Uncoordinated queue;
};

TEST_F(Alone, OneAloneTakesWhatItTakes) {
  begin(1, 3, 0);
  EXPECT_NEAR(end(1, 3, 3), 3, 1e-6);
  EXPECT_FALSE(queue.end(AppId{1}, 3, after_1_s(3)));
}

// Two accesses of 1 s begin at once and take 2 s uncoordinated. One after the other, the first gains 1 s and the
// second loses nothing.
TEST_F(Alone, OneAfterTheOtherNobodyIsLater) {
  begin(1, 1, 0);
  begin(2, 1, 0);
  EXPECT_NEAR(end(1, 1, 1), 2, 1e-6);
  EXPECT_NEAR(end(2, 1, 2), 2, 1e-6);
}

TEST_F(Alone, ThoseOnDisjointPartsAreNotSlower) {
  queue.advance(after_1_s(0));
  queue.begin(AppId{1}, even_halves, 1, 1, after_1_s(0), PartSet::of({1}));
  queue.begin(AppId{2}, even_halves, 1, 1, after_1_s(0), PartSet::of({2}));
  queue.begin(AppId{3}, even_halves, 1, 1, after_1_s(0), PartSet::of({2, 3}));
  EXPECT_NEAR(end(1, 1, 1), 1, 1e-6);
  EXPECT_NEAR(end(2, 1, 1), 2, 1e-6);
}

// An access of 1 s waits for all of one of 10 s; uncoordinated, it would have taken 2 s.
TEST_F(Alone, TheSmallOneBehindTheLargeOneIsLate) {
  begin(1, 10, 0);
  begin(2, 1, 0);
  EXPECT_NEAR(end(1, 10, 10), 11, 1e-6);
  EXPECT_NEAR(end(2, 1, 11), 2, 1e-6);
}

TEST_F(Alone, WhoAsksAgainBeforeItWouldHaveEndedDoesNotPayTwice) {
  begin(1, 1, 0);
  begin(2, 3, 0);
  EXPECT_NEAR(end(1, 1, 1), 2, 1e-6);
  begin(1, 1, 1);
  EXPECT_NEAR(end(1, 1, 2), 2, 1e-6) << "2 s of work take 4 s beside another one; it has asked for all of it by 1 s";
}

TEST_F(Alone, WhoGoesIsForgotten) {
  begin(1, 1, 0);
  begin(2, 1, 0);
  queue.forget(AppId{1});
  EXPECT_EQ(queue.find(AppId{1}), nullptr);
  EXPECT_NEAR(end(2, 1, 1), 1, 1e-6);
}

// The relative errors of estimates for accesses that run as they would uncoordinated: mean and largest. The expected
// sizes are wrong by up to the part `wrong`.
struct Off {
  double mean = 0;
  double most = 0;
};
Off off_by(double wrong) {
  Off off;
  double accesses = 0;
  std::uint64_t seed = 1;
  const auto draw = [&] {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(seed >> 11) / 9007199254740992.0;
  };
  for (int round = 0; round < 200; ++round) {
    constexpr std::size_t count = 4;
    std::array<double, count> start_s{};
    std::array<double, count> left_s{};
    std::array<double, count> size_s{};
    std::array<bool, count> begun{};
    for (std::size_t i = 0; i < count; ++i) {
      start_s[i] = std::round(draw() * 300) / 100;
      left_s[i] = size_s[i] = 0.1 + std::round(draw() * 200) / 100;
    }
    Uncoordinated queue;
    constexpr double step_s = 0.001;
    for (double now_s = 0; std::any_of(left_s.begin(), left_s.end(), [](double s) { return s > 0; }); now_s += step_s) {
      double users = 0;
      for (std::size_t i = 0; i < count; ++i) {
        if (!begun[i] && start_s[i] <= now_s) {
          begun[i] = true;
          queue.advance(after_1_s(now_s));
          queue.begin(AppId{i + 1}, even_halves, 1, size_s[i] * (1 + wrong * (2 * draw() - 1)), after_1_s(now_s));
        }
        users += begun[i] && left_s[i] > 0 ? 1 : 0;
      }
      for (std::size_t i = 0; i < count; ++i) {
        if (!begun[i] || left_s[i] <= 0) continue;
        left_s[i] -= step_s / users;
        if (left_s[i] > 0) continue;
        queue.advance(after_1_s(now_s + step_s));
        const double took_s = now_s + step_s - start_s[i];
        const double told_s = queue.end(AppId{i + 1}, size_s[i], after_1_s(now_s + step_s)).value_or(0);
        off.mean += std::abs(told_s - took_s) / took_s;
        off.most = std::max(off.most, std::abs(told_s - took_s) / took_s);
        ++accesses;
      }
    }
  }
  off.mean /= accesses;
  return off;
}

TEST(UncoordinatedProperty, WhereNobodyIsOrderedItTellsWhatHappened) { EXPECT_LT(off_by(0).most, 0.03); }
TEST(UncoordinatedProperty, SizesThatAreExpectedWrongMakeItLittleMoreWrong) { EXPECT_LT(off_by(0.3).mean, 0.15); }

}  // namespace
}  // namespace hocket::model
