#include "intercept/descriptors.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace hocket::runtime::posix {
namespace {

dev_t device_of_file(int fd) {
  struct stat file {};
  EXPECT_EQ(fstat(fd, &file), 0);
  return file.st_dev;
}

TEST(Descriptors, KnowsFilesUntilItForgetsThem) {
  Descriptors descriptors;
  const int file = open("/proc/self/exe", O_RDONLY);
  const dev_t device = device_of_file(file);
  EXPECT_EQ(descriptors.device_of(file), device);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_FALSE(descriptors.device_of(ends[0])) << "a pipe is no file";
  ASSERT_EQ(dup2(ends[0], file), file);
  EXPECT_EQ(descriptors.device_of(file), device) << "it is not looked up again";
  descriptors.forget(static_cast<unsigned>(file), static_cast<unsigned>(file));
  EXPECT_FALSE(descriptors.device_of(file));
  const int other = open("/proc/self/exe", O_RDONLY);
  ASSERT_EQ(dup2(other, file), file);
  EXPECT_EQ(descriptors.device_of(file), device) << "what is no file is not kept";
  close(other);
  close(file);
  descriptors.forget(0, ~0U);
  EXPECT_FALSE(descriptors.device_of(file));
  EXPECT_FALSE(descriptors.device_of(-1));
  close(ends[0]);
  close(ends[1]);
}

TEST(Descriptors, LooksUpAnyNumber) {
  Descriptors descriptors;
  const int file = open("/proc/self/exe", O_RDONLY);
  ASSERT_GE(file, 0);
  const int large = fcntl(file, F_DUPFD, 2000);
  if (large >= 0) {
    EXPECT_EQ(descriptors.device_of(large), device_of_file(large));
    close(large);
  }
  EXPECT_FALSE(descriptors.device_of(5000));
  close(file);
}

}  // namespace
}  // namespace hocket::runtime::posix
