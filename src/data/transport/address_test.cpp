#include "transport/address.hpp"

#include <gtest/gtest.h>

#include "base/clock.hpp"

namespace hocket::transport {
namespace {

TEST(Address, IsReadFromItsWords) {
  const auto read = read_addresses("unix:/run/a.sock tcp:node1:4711  tcp:[::1]:80");
  ASSERT_TRUE(read.ok()) << read.error().text;
  ASSERT_EQ(read.value().size(), 3U);
  EXPECT_TRUE(read.value()[0].local);
  EXPECT_EQ(read.value()[0].host, "/run/a.sock");
  EXPECT_EQ(read.value()[1].host, "node1");
  EXPECT_EQ(read.value()[1].port, "4711");
  EXPECT_EQ(read.value()[2].host, "::1");
}

TEST(Address, WhatIsNoneIsRefused) {
  for (const char* text : {"", "unix:a.sock", "tcp:node", "tcp::80", "tcp:node:", "tcp:node:http", "udp:node:80"}) {
    EXPECT_FALSE(read_addresses(text).ok()) << text;
  }
}

TEST(Address, WhereNobodyListensNobodyIsReached) {
  const Time deadline = node_now() + std::chrono::seconds{5};
  const auto reached = connect_to({true, "/nowhere/at/all.sock", ""}, deadline);
  ASSERT_FALSE(reached.ok());
  EXPECT_EQ(reached.error().text, "no hocket-server listens at /nowhere/at/all.sock: No such file or directory");
}

TEST(Address, AListenerTellsItsPort) {
  auto listener = listen_tcp({false, "127.0.0.1", "0"});
  ASSERT_TRUE(listener.ok()) << listener.error().text;
  const auto address = read_address(listener.value().address);
  ASSERT_TRUE(address.ok()) << address.error().text;
  EXPECT_NE(address.value().port, "0");
  EXPECT_TRUE(connect_to(address.value(), node_now() + std::chrono::seconds{5}).ok());
}

}  // namespace
}  // namespace hocket::transport
