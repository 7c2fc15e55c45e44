#include "transport/file_identity.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/descriptor.hpp"

namespace hocket::transport {
namespace {

TEST(FileIdentity, StaysWithTheFileAndNotWithItsPath) {
  std::string path = "/tmp/hocket-identity-XXXXXX";
  const Fd file{mkstemp(path.data())};
  const FileIdentity before = identity_of(file.get());
  EXPECT_NE(before.inode, 0U);
  const std::string moved = path + ".moved";
  ASSERT_EQ(std::rename(path.c_str(), moved.c_str()), 0);
  const Fd stranger{open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
  const Fd again{open(moved.c_str(), O_RDONLY | O_CLOEXEC)};
  EXPECT_TRUE(is_wanted(identity_of(again.get()), before));
  EXPECT_FALSE(is_wanted(identity_of(stranger.get()), before));
  std::remove(path.c_str());
  std::remove(moved.c_str());
}

TEST(FileIdentity, OfNoDescriptorIsNoFiles) {
  const FileIdentity none = identity_of(-1);
  EXPECT_NE(none.inode, 0U);
  const Fd file{open("/proc/self/exe", O_RDONLY | O_CLOEXEC)};
  EXPECT_FALSE(is_wanted(identity_of(file.get()), none));
}

TEST(FileIdentity, ComparesWhatBothKnow) {
  const FileIdentity own{7, 5, 99};
  EXPECT_TRUE(is_wanted(own, {}));
  EXPECT_TRUE(is_wanted(own, {7, 5, 99}));
  EXPECT_TRUE(is_wanted(own, {0, 5, 99})) << "over TCP";
  EXPECT_TRUE(is_wanted(own, {7, 5, 0})) << "a file system without times of creation";
  EXPECT_FALSE(is_wanted(own, {8, 5, 99}));
  EXPECT_FALSE(is_wanted(own, {7, 6, 99}));
  EXPECT_FALSE(is_wanted(own, {0, 5, 98})) << "two file systems may give the same inode number";
}

}  // namespace
}  // namespace hocket::transport
