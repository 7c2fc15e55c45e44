#include "model/speedup_curve.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace hocket::model {
namespace {

CurvePoint point(std::int64_t processes, double iteration_s, double io_s = 1) {
  return {processes, iteration_s, 0, io_s, 0, 1};
}

SpeedupCurve curve_of(const std::vector<CurvePoint>& points) {
  SpeedupCurve curve;
  for (const CurvePoint& p : points) EXPECT_TRUE(curve.add(p).ok());
  return curve;
}

TEST(SpeedupCurve, GivesWhatWasMeasured) {
  const SpeedupCurve curve = curve_of({point(64, 0.68, 4.7), point(32, 1.35, 5.2), point(128, 0.40, 4.4)});
  EXPECT_DOUBLE_EQ(curve.iteration(32).value, 1.35);
  EXPECT_DOUBLE_EQ(curve.iteration(64).value, 0.68);
  EXPECT_DOUBLE_EQ(curve.io(128).value, 4.4);
  EXPECT_DOUBLE_EQ(curve.speedup(32, 64), 1.35 / 0.68);
  EXPECT_EQ(curve.measured_up_to(), 128);
  EXPECT_EQ(curve.points().front().processes, 32);
}

TEST(SpeedupCurve, InterpolatesAPowerLawExactly) {
  std::vector<CurvePoint> points;
  for (const std::int64_t processes : {16, 32, 128, 256}) {
    points.push_back(point(processes, 100 * std::pow(static_cast<double>(processes), -0.8)));
  }
  const SpeedupCurve curve = curve_of(points);
  for (std::int64_t processes = 16; processes <= 256; ++processes) {
    EXPECT_NEAR(curve.iteration(processes).value, 100 * std::pow(static_cast<double>(processes), -0.8), 1e-9);
  }
}

TEST(SpeedupCurve, PromisesNothingBeyondWhatWasMeasured) {
  const SpeedupCurve curve = curve_of({point(32, 2, 6), point(64, 1, 5)});
  EXPECT_EQ(curve.iteration(1000).value, 1);
  EXPECT_EQ(curve.io(1000).value, 5);
  EXPECT_EQ(curve.speedup(64, 1000), 1);
  EXPECT_FALSE(curve.processes_for(1.01, 64, 1000));
  EXPECT_EQ(curve.iteration(16).value, 4) << "below: the work divided evenly";
  EXPECT_EQ(curve.io(16).value, 12);
}

TEST(SpeedupCurve, IsLessCertainFurtherAway) {
  const SpeedupCurve curve = curve_of({{32, 2, 0.01, 6, 0.2, 5}, {128, 0.7, 0.02, 5, 0.1, 5}});
  EXPECT_DOUBLE_EQ(curve.iteration(32).uncertainty, 0.02);
  EXPECT_DOUBLE_EQ(curve.io(128).uncertainty, 0.2);
  EXPECT_GT(curve.iteration(64).uncertainty, curve.iteration(40).uncertainty);
  EXPECT_GT(curve.iteration(64).uncertainty, curve.iteration(120).uncertainty);
  EXPECT_GT(curve.iteration(300).uncertainty, curve.iteration(200).uncertainty);
  EXPECT_GT(curve.iteration(8).uncertainty, curve.iteration(16).uncertainty);
}

TEST(SpeedupCurve, TakesTheMeanOfMeasurementsOfOneSize) {
  SpeedupCurve curve = curve_of({{64, 1.0, 0, 4, 0, 1}, {64, 2.0, 0, 8, 0, 3}});
  ASSERT_EQ(curve.points().size(), 1u);
  EXPECT_DOUBLE_EQ(curve.iteration(64).value, 1.75);
  EXPECT_DOUBLE_EQ(curve.io(64).value, 7);
  EXPECT_DOUBLE_EQ(curve.points()[0].iteration_spread_s, std::sqrt(3.0) / 4);
  EXPECT_EQ(curve.points()[0].samples, 4);
  ASSERT_TRUE(curve.replace(point(64, 3)).ok());
  EXPECT_DOUBLE_EQ(curve.iteration(64).value, 3);
  EXPECT_EQ(curve.points()[0].samples, 1);
}

TEST(SpeedupCurve, BearsSizesWithoutIo) {
  const SpeedupCurve none = curve_of({point(32, 2, 0), point(64, 1, 0)});
  EXPECT_EQ(none.io(48).value, 0);
  EXPECT_EQ(none.io(16).value, 0);
  const SpeedupCurve some = curve_of({point(32, 2, 0), point(64, 1, 4), point(128, 0.5, 3)});
  EXPECT_GT(some.io(48).value, 0);
  EXPECT_LT(some.io(48).value, 4);
  EXPECT_LT(some.io(100).value, 4);
}

TEST(SpeedupCurve, RefusesWhatCannotBe) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinite = std::numeric_limits<double>::infinity();
  SpeedupCurve curve;
  const auto refused = [&](const CurvePoint& p) {
    const Status status = curve.add(p);
    return status.ok() ? std::string{} : status.error().text;
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(refused({0, 1, 0, 1, 0, 1}), HasSubstr("processes = 0"));
  EXPECT_THAT(refused({-4, 1, 0, 1, 0, 1}), HasSubstr("processes = -4"));
  EXPECT_THAT(refused({INT64_MAX, 1, 0, 1, 0, 1}), HasSubstr("processes = 9223372036854775807"));
  for (const double bad : {0.0, -1.0, nan, infinite, -infinite, 1e300, 1e-300}) {
    EXPECT_THAT(refused({4, bad, 0, 1, 0, 1}), HasSubstr("iteration_s = ")) << bad;
  }
  for (const double bad : {-1.0, nan, infinite, -infinite, 1e300}) {
    EXPECT_THAT(refused({4, 1, bad, 1, 0, 1}), HasSubstr("iteration_spread_s = ")) << bad;
    EXPECT_THAT(refused({4, 1, 0, bad, 0, 1}), HasSubstr("io_s = ")) << bad;
    EXPECT_THAT(refused({4, 1, 0, 1, bad, 1}), HasSubstr("io_spread_s = ")) << bad;
  }
  EXPECT_THAT(refused({4, 1, 0, 1, 0, 0}), HasSubstr("samples = 0"));
  EXPECT_TRUE(curve.empty());
  for (std::int64_t i = 1; i <= 256; ++i) EXPECT_EQ(refused(point(i, 1)), "");
  EXPECT_THAT(refused(point(257, 1)), HasSubstr("256 sizes already"));
  EXPECT_EQ(refused(point(7, 1)), "") << "a size that is there already";
}

// Random curves, monotone or not, never leave the range of the neighbouring points, and are monotone between them.
TEST(SpeedupCurve, StaysBetweenNeighbouringPoints) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random{seed};
    std::uniform_real_distribution<double> factor{seed % 2 ? 0.3 : 0.0, seed % 2 ? 3.0 : 1.0};
    std::vector<CurvePoint> points{point(1 + static_cast<std::int64_t>(random() % 8), 10, 5)};
    while (points.size() < 2 + seed % 7) {
      const CurvePoint& last = points.back();
      points.push_back(point(last.processes + 1 + static_cast<std::int64_t>(random() % 60),
                             std::max(1e-6, last.iteration_s * factor(random)), last.io_s * factor(random)));
    }
    const SpeedupCurve curve = curve_of(points);
    for (std::size_t i = 0; i + 1 < points.size(); ++i) {
      const auto [least, most] = std::minmax(points[i].iteration_s, points[i + 1].iteration_s);
      const auto [least_io, most_io] = std::minmax(points[i].io_s, points[i + 1].io_s);
      const bool falls = points[i + 1].iteration_s <= points[i].iteration_s;
      for (std::int64_t p = points[i].processes; p <= points[i + 1].processes; ++p) {
        const double time = curve.iteration(p).value;
        ASSERT_GE(time, least) << "seed " << seed << ", " << p << " processes";
        ASSERT_LE(time, most) << "seed " << seed << ", " << p << " processes";
        ASSERT_GE(curve.io(p).value, least_io) << "seed " << seed << ", " << p << " processes";
        ASSERT_LE(curve.io(p).value, most_io) << "seed " << seed << ", " << p << " processes";
        if (p == points[i].processes) continue;
        const double change = time - curve.iteration(p - 1).value;
        ASSERT_LE(falls ? change : -change, 1e-12 * most) << "seed " << seed << ", " << p << " processes";
      }
    }
  }
}

TEST(SpeedupCurve, FindsTheFewestProcesses) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random{seed};
    std::uniform_real_distribution<double> factor{0.4, seed % 2 ? 1.0 : 1.5};
    std::vector<CurvePoint> points{point(1 + static_cast<std::int64_t>(random() % 8), 10)};
    while (points.size() < 1 + seed % 6) {
      points.push_back(point(points.back().processes + 1 + static_cast<std::int64_t>(random() % 40),
                             points.back().iteration_s * factor(random)));
    }
    const SpeedupCurve curve = curve_of(points);
    for (int i = 0; i < 50; ++i) {
      const auto from = 1 + static_cast<std::int64_t>(random() % 60);
      const auto most = from + static_cast<std::int64_t>(random() % 200);
      const double speedup = std::uniform_real_distribution<double>{0.8, 4}(random);
      std::optional<std::int64_t> fewest;
      for (std::int64_t p = from + 1; p <= most && !fewest; ++p) {
        if (curve.iteration(p).value <= curve.iteration(from).value / speedup) fewest = p;
      }
      ASSERT_EQ(curve.processes_for(speedup, from, most), fewest)
          << "seed " << seed << ", " << from << " processes, " << speedup;
    }
  }
}

CurvePoint apart(std::int64_t processes, double cpu_s, double comm_s) {
  return {processes, cpu_s + comm_s, 0, 0, 0, 4, comm_s};
}

// Computing is divided evenly, and communication rises with the square root of the size. The minimum of their sum
// lies between two measured sizes.
TEST(SpeedupCurve, ComputingAndCommunicationAreApart) {
  const auto at = [](std::int64_t p) { return apart(p, 64.0 / static_cast<double>(p), std::sqrt(p) / 8); };
  SpeedupCurve curve{Beyond::law};
  for (const std::int64_t size : {4, 8, 128}) ASSERT_TRUE(curve.add(at(size)).ok());
  for (std::int64_t p = 4; p <= 256; ++p) {
    EXPECT_NEAR(curve.cpu(p).value, 64.0 / static_cast<double>(p), 1e-9) << p;
    EXPECT_NEAR(curve.comm(p).value, std::sqrt(p) / 8, 1e-9) << p;
    EXPECT_DOUBLE_EQ(curve.iteration(p).value, curve.cpu(p).value + curve.comm(p).value);
  }
  EXPECT_DOUBLE_EQ(curve.comm(1000).value, curve.comm(256).value) << "nothing is known so far away";
  EXPECT_LT(curve.iteration(100).value, curve.iteration(128).value);
  EXPECT_LT(curve.iteration(128).value, curve.iteration(256).value) << "more processes would take longer";

  SpeedupCurve joint{Beyond::law};
  for (CurvePoint point : {at(4), at(8), at(128)}) {
    point.comm_s = -1;
    ASSERT_TRUE(joint.add(point).ok());
  }
  EXPECT_EQ(joint.comm(48).value, 0);
  EXPECT_DOUBLE_EQ(joint.cpu(48).value, joint.iteration(48).value);
  ASSERT_TRUE(curve.add({16, 5, 0, 0, 0, 1}).ok());
  EXPECT_EQ(curve.comm(48).value, 0) << "of one size it is not known";
}

TEST(SpeedupCurve, TakesTheMeanOfCommunication) {
  SpeedupCurve curve = curve_of({apart(8, 3, 1)});
  ASSERT_TRUE(curve.add({8, 8, 0, 0, 0, 12, 5}).ok());
  EXPECT_DOUBLE_EQ(curve.comm(8).value, 4);
  EXPECT_DOUBLE_EQ(curve.cpu(8).value, 3);
  EXPECT_FALSE(curve.add({8, 1, 0, 0, 0, 1, 1.5}).ok()) << "more than the iteration";
  EXPECT_FALSE(curve.add({8, 1, 0, 0, 0, 1, -0.5}).ok());
}

TEST(SpeedupCurve, FindsTheFewestProcessesWhereCommunicationRises) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random{seed};
    const auto factor = [&](double least, double most) { return std::uniform_real_distribution{least, most}(random); };
    SpeedupCurve curve{seed % 2 ? Beyond::law : Beyond::flat};
    std::int64_t size = 1 + static_cast<std::int64_t>(random() % 8);
    double cpu_s = 10, comm_s = factor(0, 5);
    for (std::uint64_t i = 0; i < 2 + seed % 4; ++i) {
      ASSERT_TRUE(curve.add(apart(size, cpu_s, comm_s)).ok());
      size += 1 + static_cast<std::int64_t>(random() % 80);
      cpu_s *= factor(0.3, 1.1);
      comm_s *= factor(0.8, 2);
    }
    for (int i = 0; i < 50; ++i) {
      const auto from = 1 + static_cast<std::int64_t>(random() % 60);
      const auto most = from + static_cast<std::int64_t>(random() % 400);
      const double speedup = factor(0.8, 2);
      std::optional<std::int64_t> fewest;
      for (std::int64_t p = from + 1; p <= most && !fewest; ++p) {
        if (curve.iteration(p).value <= curve.iteration(from).value / speedup) fewest = p;
      }
      ASSERT_EQ(curve.processes_for(speedup, from, most), fewest) << "seed " << seed << ", " << from << " processes";
    }
  }
}

CurvePoint amdahl(std::int64_t processes, double serial_s, double parallel_s, double noise = 0) {
  const double time = (serial_s + parallel_s / static_cast<double>(processes)) * (1 + noise);
  return {processes, time, 0.02 * time, 0, 0, 4};
}

TEST(SpeedupCurveLaw, GoesOnWhereItWasMeasuredAndNoFurtherThanTwice) {
  SpeedupCurve curve{Beyond::law};
  for (const std::int64_t size : {8, 12, 16}) ASSERT_TRUE(curve.add(amdahl(size, 0.1, 8)).ok());
  EXPECT_NEAR(curve.iteration(24).value, 0.1 + 8.0 / 24, 1e-9);
  EXPECT_NEAR(curve.iteration(32).value, 0.1 + 8.0 / 32, 1e-9);
  EXPECT_DOUBLE_EQ(curve.iteration(64).value, curve.iteration(32).value);
  EXPECT_GT(curve.iteration(64).uncertainty, curve.iteration(32).uncertainty);
  EXPECT_GT(curve.iteration(32).uncertainty, curve.iteration(24).uncertainty);
  EXPECT_EQ(curve.processes_for(curve.speedup(16, 30), 16, most_processes), 30);
  EXPECT_FALSE(curve.processes_for(curve.speedup(16, 32) * 1.01, 16, most_processes));
}

TEST(SpeedupCurveLaw, IsForThoseWhoAskForIt) {
  SpeedupCurve curve;
  for (const std::int64_t size : {8, 12, 16}) ASSERT_TRUE(curve.add(amdahl(size, 0.1, 8)).ok());
  EXPECT_DOUBLE_EQ(curve.iteration(32).value, curve.iteration(16).value);
}

TEST(SpeedupCurveLaw, OfOneSizeThereIsNone) {
  SpeedupCurve curve{Beyond::law};
  ASSERT_TRUE(curve.add(amdahl(8, 0.1, 8)).ok());
  EXPECT_DOUBLE_EQ(curve.iteration(16).value, curve.iteration(8).value);
}

// Times may rise, or fall faster than an even division of the work.
TEST(SpeedupCurveLaw, NeverFallsFasterThanTheWorkIsDividedAndNeverRises) {
  SpeedupCurve faster{Beyond::law};
  ASSERT_TRUE(faster.add({8, 1, 0, 0, 0, 4}).ok());
  ASSERT_TRUE(faster.add({16, 0.4, 0, 0, 0, 4}).ok());
  EXPECT_NEAR(faster.iteration(32).value, 0.2, 1e-9);
  SpeedupCurve slower{Beyond::law};
  ASSERT_TRUE(slower.add({8, 1, 0, 0, 0, 4}).ok());
  ASSERT_TRUE(slower.add({16, 1.2, 0, 0, 0, 4}).ok());
  EXPECT_NEAR(slower.iteration(32).value, 1.2, 1e-9);
}

// About 95 % of the real times must lie within the stated two standard deviations.
TEST(SpeedupCurveLaw, StatesHowFarItMayBeOff) {
  std::mt19937_64 random{7};
  std::normal_distribution<double> noise{0, 0.01};  // error of a mean of four periods that vary by 2 %
  int within = 0;
  constexpr int runs = 500;
  for (int run = 0; run < runs; ++run) {
    SpeedupCurve curve{Beyond::law};
    const double serial = std::uniform_real_distribution<double>{0, 0.5}(random);
    for (const std::int64_t size : {8, 12, 16}) ASSERT_TRUE(curve.add(amdahl(size, serial, 8, noise(random))).ok());
    const Estimate there = curve.iteration(32);
    within += std::abs(there.value - (serial + 8.0 / 32)) <= there.uncertainty;
  }
  EXPECT_GE(within, runs * 93 / 100);
}

}  // namespace
}  // namespace hocket::model
