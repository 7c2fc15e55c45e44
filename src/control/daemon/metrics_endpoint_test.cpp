#include "daemon/metrics_endpoint.hpp"

#include <gtest/gtest.h>

namespace hocket::daemon {
namespace {

using std::chrono::seconds;

TEST(LongestLately, ForgetsAfterTwoWindows) {
  LongestLately lately;
  const Time start = time_from_ns(0) + seconds{1000};
  lately.add(seconds{5}, start);
  lately.add(seconds{2}, start + seconds{1});
  EXPECT_EQ(lately.longest(start + seconds{1}), seconds{5});
  lately.add(seconds{1}, start + seconds{61});
  EXPECT_EQ(lately.longest(start + seconds{61}), seconds{5}) << "of the window before";
  lately.add(seconds{1}, start + seconds{122});
  EXPECT_EQ(lately.longest(start + seconds{122}), seconds{1});
  EXPECT_EQ(lately.longest(start + seconds{1000}), Duration{}) << "nothing happened since";
}

}  // namespace
}  // namespace hocket::daemon
