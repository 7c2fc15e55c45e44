#include "bus/repeats.hpp"

#include <gtest/gtest.h>

namespace hocket::bus {
namespace {

using namespace std::chrono_literals;

TEST(RepeatsInALog, AreOneLineAMinuteForEach) {
  Repeats repeats;
  const Time start{1h};
  EXPECT_EQ(repeats.line("10.0.0.1", "x", start), "x");
  for (int i = 0; i < 100; ++i) EXPECT_EQ(repeats.line("10.0.0.1", "x", start + 59s), "");
  EXPECT_EQ(repeats.line("10.0.0.2", "y", start + 59s), "y");
  EXPECT_EQ(repeats.line("10.0.0.1", "x", start + 60s), "x (and 100 like it)");
  EXPECT_EQ(repeats.line("10.0.0.1", "x", start + 120s), "x");
}

}  // namespace
}  // namespace hocket::bus
