// Helpers for the tests of this folder.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <utility>

#include "base/descriptor.hpp"

namespace hocket::transport::testing {

// Returns the two ends of a connection in this process.
inline std::pair<Fd, Fd> sockets() {
  std::array<int, 2> both{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both.data()), 0);
  return {Fd{both[0]}, Fd{both[1]}};
}

}  // namespace hocket::transport::testing
