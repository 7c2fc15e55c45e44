#include "session/iterations.hpp"

#include <gtest/gtest.h>

namespace hocket::runtime {
namespace {

using std::chrono::milliseconds;

Time at_ms(std::int64_t ms) { return Time{} + milliseconds{ms}; }

TEST(IterationMeter, ReportsOnceInAWhile) {
  IterationMeter meter{milliseconds{100}};
  EXPECT_FALSE(meter.control_point({0, 4, 0, 0}, at_ms(0), {}));
  EXPECT_FALSE(meter.control_point({10, 4, 10, 0}, at_ms(60), {}));
  const auto report =
      meter.control_point({20, 4, 10, 0}, at_ms(120), {milliseconds{5}, milliseconds{30}, milliseconds{15}});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->iteration, 20);
  EXPECT_EQ(report->iterations, 20);
  EXPECT_EQ(report->processes, 4);
  EXPECT_EQ(report->control_every, 10);
  EXPECT_EQ(report->elapsed, milliseconds{120});
  EXPECT_EQ(report->comm, milliseconds{30});
  EXPECT_EQ(report->cpu, milliseconds{120 - 30 - 5 - 15});
  EXPECT_FALSE(meter.control_point({30, 4, 10, 0}, at_ms(219), {})) << "since the report";
  EXPECT_TRUE(meter.control_point({40, 4, 10, 0}, at_ms(220), {}));
}

TEST(IterationMeter, CoversNoChangeOfTheProcesses) {
  IterationMeter meter{milliseconds{100}};
  meter.control_point({0, 4, 0, 0}, at_ms(0), {});
  EXPECT_FALSE(meter.control_point({10, 4, 10, 1}, at_ms(500), {})) << "as many, but others";
  EXPECT_FALSE(meter.control_point({20, 4, 10, 1}, at_ms(590), {}));
  const auto report = meter.control_point({30, 4, 10, 1}, at_ms(700), {});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->iterations, 20);
  EXPECT_EQ(report->elapsed, milliseconds{200});
}

}  // namespace
}  // namespace hocket::runtime
