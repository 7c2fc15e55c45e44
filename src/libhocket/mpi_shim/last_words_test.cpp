#include "mpi_shim/last_words.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "base/clock.hpp"

namespace hocket::runtime {
namespace {

constexpr Duration short_limit = std::chrono::milliseconds{20};

class LastWords : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(pipe(ends_), 0);
    ASSERT_EQ(write(ends_[1], "hocket: x\n", 10), 10);
  }
  void TearDown() override {
    close(ends_[0]);
    close(ends_[1]);
  }
  // Measures a wait at the pipe's write end.
  Duration waited(Duration limit) {
    const Time before = node_now();
    wait_until_read(ends_[1], limit);
    return node_now() - before;
  }

  int ends_[2] = {-1, -1};
};

TEST_F(LastWords, WaitsForTheReaderNoLongerThanItsLimit) { EXPECT_GE(waited(short_limit), short_limit); }

TEST_F(LastWords, ReturnsWhenAllWasRead) {
  std::thread reader([this] {
    std::this_thread::sleep_for(short_limit);
    char text[16];
    EXPECT_EQ(read(ends_[0], text, sizeof text), 10);
  });
  const Duration took = waited(std::chrono::seconds{60});
  reader.join();
  EXPECT_LT(took, std::chrono::seconds{50});
  EXPECT_LT(waited(std::chrono::seconds{60}), std::chrono::seconds{50}) << "nothing is left to read";
}

TEST_F(LastWords, DoesNotWaitWhereItIsNoPipe) {
  const Time before = node_now();
  const int null = open("/dev/null", O_WRONLY);
  wait_until_read(null, std::chrono::seconds{60});
  wait_until_read(-1, std::chrono::seconds{60});
  close(null);
  EXPECT_LT(node_now() - before, std::chrono::seconds{50});
}

}  // namespace
}  // namespace hocket::runtime
