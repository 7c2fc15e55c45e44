#include "session/held_targets.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hocket::runtime {
namespace {

TEST(HeldTargets, HasWhatWasSetLast) {
  HeldTargets held;
  EXPECT_FALSE(held.has(""));
  held.set("dev:8:1\npool");
  EXPECT_TRUE(held.has("dev:8:1"));
  EXPECT_TRUE(held.has("pool"));
  EXPECT_FALSE(held.has("dev:8:11"));
  held.set("dev:8:2");
  EXPECT_FALSE(held.has("dev:8:1"));
  EXPECT_FALSE(held.has("pool"));
  EXPECT_TRUE(held.has("dev:8:2"));
  held.set("");
  EXPECT_FALSE(held.has("dev:8:2"));
}

TEST(HeldTargets, KeepsTheFirst64) {
  std::string names;
  for (int i = 0; i < 70; ++i) names += std::to_string(i) + "\n";
  HeldTargets held;
  held.set(names);
  EXPECT_TRUE(held.has("63"));
  EXPECT_FALSE(held.has("64"));
}

}  // namespace
}  // namespace hocket::runtime
