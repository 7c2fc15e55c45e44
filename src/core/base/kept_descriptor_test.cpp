#include "base/kept_descriptor.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <fstream>
#include <string>

namespace hocket {
namespace {

std::array<int, 2> pair_of_sockets() {
  std::array<int, 2> ends{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  return ends;
}

bool is_open(int fd) { return fcntl(fd, F_GETFD) != -1; }

TEST(KeptFd, HasAHighNumberAndClosesIt) {
  const auto ends = pair_of_sockets();
  const Fd other{ends[1]};
  int number = -1;
  {
    const KeptFd kept{ends[0]};
    number = kept.get();
    EXPECT_GT(number, ends[1]);
    EXPECT_TRUE(kept.is_ours());
    EXPECT_TRUE(is_open(number));
    EXPECT_FALSE(is_open(ends[0]));
    EXPECT_EQ(fcntl(number, F_GETFD), FD_CLOEXEC);
  }
  EXPECT_FALSE(is_open(number));
}

TEST(KeptFd, KnowsThatItHasBeenClosed) {
  const auto ends = pair_of_sockets();
  const Fd other{ends[1]};
  const KeptFd kept{ends[0]};
  close(kept.get());
  EXPECT_FALSE(kept.is_ours());
}

TEST(KeptFd, LeavesAnotherSocketOfTheSameNumberAlone) {
  const auto ends = pair_of_sockets();
  const auto others = pair_of_sockets();
  int number = -1;
  {
    const KeptFd kept{ends[0]};
    number = kept.get();
    ASSERT_EQ(dup2(others[0], number), number);
    EXPECT_FALSE(kept.is_ours());
  }
  EXPECT_TRUE(is_open(number));
  for (const int fd : {number, ends[1], others[0], others[1]}) close(fd);
}

// Returns how many descriptors the process's table has room for.
int table_size() {
  std::ifstream status("/proc/self/status");
  for (std::string key; status >> key; status.ignore(1000, '\n'))
    if (int size = 0; key == "FDSize:" && status >> size) return size;
  return -1;
}

TEST(KeptFd, NeedsNoLongerTableOnceThereIsRoom) {
  make_room_out_of_reach();
  const int before = table_size();
  const auto ends = pair_of_sockets();
  const Fd other{ends[1]};
  const KeptFd kept{ends[0]};
  EXPECT_LT(kept.get(), before);
  EXPECT_EQ(table_size(), before);
}

}  // namespace
}  // namespace hocket
