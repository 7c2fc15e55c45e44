#include "server/injection.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace hocket::server {
namespace {

TEST(Injection, IsReadFromItsWords) {
  const auto delay = read_injection("delay=512us after=3");
  ASSERT_TRUE(delay.ok()) << delay.error().text;
  EXPECT_EQ(delay.value().delay, std::chrono::microseconds{512});
  EXPECT_FALSE(delay.value().is_due(2));
  EXPECT_TRUE(delay.value().is_due(3));
  const auto error = read_injection(" errno=EDQUOT ");
  ASSERT_TRUE(error.ok()) << error.error().text;
  EXPECT_EQ(error.value().error, EDQUOT);
  EXPECT_TRUE(error.value().is_due(1));
  EXPECT_FALSE(read_injection("").value().is_due(1));
}

TEST(Injection, WhatIsNoneIsRefused) {
  for (const char* text : {"delay=512", "delay=us", "delay=-1us", "delay=5min", "errno=EPERM", "errno=28", "after=0",
                           "after=2x", "slow=1us", "delay", "delay=9999999999s"}) {
    EXPECT_FALSE(read_injection(text).ok()) << text;
  }
}

}  // namespace
}  // namespace hocket::server
