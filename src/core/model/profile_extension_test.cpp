#include "model/profile_extension.hpp"

#include <gtest/gtest.h>

namespace hocket::model {
namespace {

// T = 1/10 + 4/p, of which communication is a tenth; a phase takes 2 s.
CurvePoint point_at(std::int64_t processes, double times_longer = 1, double io_times_longer = 1) {
  const double iteration_s = times_longer * (0.1 + 4 / static_cast<double>(processes));
  return {processes, iteration_s, 0.01 * iteration_s, 2 * io_times_longer, 0, 4, 0.1 * iteration_s};
}

ProfileExtension extension_of(const std::vector<std::int64_t>& sizes) {
  ProfileExtension extension;
  for (const std::int64_t size : sizes) extension.told(point_at(size));
  return extension;
}

TEST(ProfileExtension, HasTheSizesThatTheProfileLacksInItsMeasure) {
  for (const double times_longer : {1.0, 3.0, 0.25}) {  // as with another input
    ProfileExtension extension = extension_of({4, 8});
    for (const std::int64_t size : {8, 16, 32}) extension.shows(point_at(size, times_longer, 2));
    const auto points = extension.points();
    ASSERT_EQ(points.size(), 2u);
    EXPECT_EQ(points[0].processes, 16);
    EXPECT_NEAR(points[0].iteration_s, 0.35, 1e-9);
    EXPECT_NEAR(points[0].comm_s, 0.035, 1e-9);
    EXPECT_NEAR(points[1].iteration_s, 0.225, 1e-9);
    EXPECT_NEAR(points[1].iteration_spread_s, 0.00225, 1e-9);
    EXPECT_NEAR(points[1].io_s, 2, 1e-9);
    EXPECT_EQ(points[1].samples, 4);
  }
}

TEST(ProfileExtension, TakesTheLatestOfEachSize) {
  ProfileExtension extension = extension_of({4, 8});
  extension.shows(point_at(8));
  extension.shows(point_at(16, 2));
  extension.shows(point_at(16));
  ASSERT_EQ(extension.points().size(), 1u);
  EXPECT_NEAR(extension.points()[0].iteration_s, 0.35, 1e-9);
  extension.shows(point_at(8, 0.5));
  EXPECT_NEAR(extension.points()[0].iteration_s, 0.7, 1e-9) << "by a ratio that is known better now";
}

TEST(ProfileExtension, HasNothingThatNobodyCanCompare) {
  ProfileExtension extension = extension_of({4, 8});
  extension.shows(point_at(16, 3));
  extension.shows(point_at(32, 3));
  EXPECT_TRUE(extension.points().empty()) << "no size in common";
  extension.shows(point_at(8, 3));
  ASSERT_EQ(extension.points().size(), 2u);
  EXPECT_NEAR(extension.points()[1].iteration_s, 0.225, 1e-9);
  ProfileExtension of_none;
  for (const std::int64_t size : {8, 16}) of_none.shows(point_at(size));
  EXPECT_TRUE(of_none.points().empty()) << "no profile";
}

TEST(ProfileExtension, TakesNearlyTheSameSizeForTheSame) {
  ProfileExtension extension = extension_of({32, 64});
  for (std::int64_t size = 30; size <= 34; ++size) extension.shows(point_at(size));
  EXPECT_TRUE(extension.points().empty());
  extension.shows(point_at(29));
  EXPECT_EQ(extension.points().size(), 1u);
  for (std::int64_t size = 100; size <= 4000; ++size) extension.shows(point_at(size));
  EXPECT_EQ(extension.points().size() + 2, SpeedupCurve::most_points) << "a profile has no more";
}

TEST(ProfileExtension, LeavesOutTimesThatCannotBe) {
  ProfileExtension extension = extension_of({4, 8});
  extension.shows({8, 0, 0, 0, 0, 1, -1});
  extension.shows({16, 0, 0, 0, 0, 1, 0});
  extension.shows(point_at(8));
  EXPECT_TRUE(extension.points().empty());
}

}  // namespace
}  // namespace hocket::model
