#include "intercept/held_files.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace hocket::runtime {
namespace {

TEST(HeldFiles, FindsTheFilesThatItWasGivenLast) {
  HeldFiles files;
  EXPECT_FALSE(files.may_be(7));
  files.replace(std::vector<FileKey>{7, 9});
  EXPECT_TRUE(files.may_be(7));
  EXPECT_TRUE(files.may_be(9));
  files.replace(std::vector<FileKey>{9, 11});
  EXPECT_FALSE(files.may_be(7));
  EXPECT_TRUE(files.may_be(9));
  EXPECT_TRUE(files.may_be(11));
  files.replace({});
  EXPECT_FALSE(files.may_be(9));
}

TEST(HeldFiles, WithMoreFilesThanItHasRoomForAnyFileMayBeOne) {
  HeldFiles files;
  std::vector<FileKey> keys(HeldFiles::capacity + 1);
  std::iota(keys.begin(), keys.end(), FileKey{1});
  files.replace(keys);
  EXPECT_TRUE(files.may_be(1000));
  keys.pop_back();
  files.replace(keys);
  EXPECT_FALSE(files.may_be(1000));
  for (const FileKey key : keys) EXPECT_TRUE(files.may_be(key));
}

TEST(HeldFiles, AKeyDependsOnDeviceAndInode) {
  struct stat one = {};
  struct stat other = {};
  one.st_dev = other.st_dev = 5;
  one.st_ino = other.st_ino = 6;
  EXPECT_EQ(key_of(one), key_of(other));
  EXPECT_NE(key_of(one), no_file);
  other.st_ino = 8;
  EXPECT_NE(key_of(one), key_of(other));
  other.st_ino = 6;
  other.st_dev = 8;
  EXPECT_NE(key_of(one), key_of(other));
}

}  // namespace
}  // namespace hocket::runtime
