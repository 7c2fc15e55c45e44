#include "transport/address.hpp"

#include <gtest/gtest.h>

#include "base/clock.hpp"

namespace hocket::transport {
namespace {

TEST(Address, IsReadFromItsWords) {
  const auto read = read_addresses("unix:/run/a.sock tcp:node1:4711  tcp:[::1]:80#0123456789abcdef@fedcba9876543210");
  ASSERT_TRUE(read.ok()) << read.error().text;
  ASSERT_EQ(read.value().size(), 3U);
  EXPECT_TRUE(read.value()[0].local);
  EXPECT_EQ(read.value()[0].host, "/run/a.sock");
  EXPECT_EQ(read.value()[1].host, "node1");
  EXPECT_EQ(read.value()[1].port, "4711");
  EXPECT_EQ(read.value()[1].instance, "");
  EXPECT_EQ(read.value()[2].host, "::1");
  EXPECT_EQ(read.value()[2].port, "80");
  EXPECT_EQ(read.value()[2].instance, "0123456789abcdef");
  EXPECT_EQ(read.value()[2].node, "fedcba9876543210");
  EXPECT_EQ(identity_of(read.value()[2]), "tcp:[::1]:80#0123456789abcdef");
}

TEST(Address, ItsTextIsReadAsTheSame) {
  for (const char* text :
       {"unix:/run/a#b@c.sock", "tcp:node1:4711", "tcp:[::1]:80#0123456789abcdef",
        "tcp:node1:1#0123456789abcdef@fedcba9876543210", "unix:/run/a.sock#0123456789abcdef@fedcba9876543210",
        "unix:/run/a.sock#0123456789abcdef", "unix:/run/a@fedcba9876543210"}) {
    const auto read = read_address(text);
    ASSERT_TRUE(read.ok()) << read.error().text;
    EXPECT_EQ(text_of(read.value()), text);
  }
}

TEST(Address, OfAUnixSocketNamesInstanceAndNodeOrNeither) {
  const auto both = read_address("unix:/run/a@b#c.sock#0123456789abcdef@fedcba9876543210").value();
  EXPECT_EQ(both.host, "/run/a@b#c.sock");
  EXPECT_EQ(both.instance, "0123456789abcdef");
  EXPECT_EQ(both.node, "fedcba9876543210");
  EXPECT_EQ(identity_of(both), "unix:#0123456789abcdef");
  const auto half = read_address("unix:/run/a.sock#0123456789abcdef").value();
  EXPECT_EQ(half.host, "/run/a.sock#0123456789abcdef");
  EXPECT_EQ(half.instance + half.node + identity_of(half), "");
}

TEST(Address, OfThisNodeHasItsNumber) {
  EXPECT_EQ(node_number().size(), 16U);
  EXPECT_EQ(node_number(), node_number());
}

TEST(Address, WhatIsNoneIsRefused) {
  for (const char* text :
       {"", "unix:a.sock", "tcp:node", "tcp::80", "tcp:node:", "tcp:node:http", "udp:node:80", "tcp:node:80#",
        "tcp:node:80#0123456789abcde", "tcp:node:80#0123456789abcdeF", "tcp:node:80@0123456789abcdef",
        "tcp:node:80#0123456789abcdef@", "tcp:node:80#0123456789abcdef@x", "tcp:node#0123456789abcdef"}) {
    EXPECT_FALSE(read_addresses(text).ok()) << text;
  }
}

TEST(Address, WhereNobodyListensNobodyIsReached) {
  const Time deadline = node_now() + std::chrono::seconds{5};
  const auto reached = connect_to({true, "/nowhere/at/all.sock", {}, {}, {}}, deadline);
  ASSERT_FALSE(reached.ok());
  EXPECT_EQ(reached.error().text, "no hocket-server listens at /nowhere/at/all.sock: No such file or directory");
}

TEST(Address, AListenerTellsItsPort) {
  const auto listener = listen_tcp(read_address("tcp:127.0.0.1:0").value());
  ASSERT_TRUE(listener.ok()) << listener.error().text;
  const Address& address = listener.value().address;
  EXPECT_NE(address.port, "0");
  EXPECT_TRUE(connect_to(address, node_now() + std::chrono::seconds{5}).ok());
  const auto other = listen_tcp(address);
  EXPECT_FALSE(other.ok()) << "the port is taken";
  const auto another = listen_tcp(read_address("tcp:127.0.0.1:0").value());
  EXPECT_NE(address.instance, another.value().address.instance);
}

}  // namespace
}  // namespace hocket::transport
