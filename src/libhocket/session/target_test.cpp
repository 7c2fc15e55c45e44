#include "session/target.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/node_number.hpp"

namespace hocket::runtime {
namespace {

TEST(Target, StripsTheFileSystemTypeOfRomioAndNothingElse) {
  EXPECT_EQ(without_prefix("ufs:/a/b"), "/a/b");
  EXPECT_EQ(without_prefix("lustre:x"), "x");
  EXPECT_EQ(without_prefix("/a/b"), "/a/b");
  EXPECT_EQ(without_prefix("/a/ufs:b"), "/a/ufs:b");
  EXPECT_EQ(without_prefix("run:1"), "run:1");
}

TEST(Target, IsTheFileSystemOfTheFile) {
  struct stat status {};
  ASSERT_EQ(stat("/proc/self/stat", &status), 0);
  const std::string expected =
      "dev:" + std::to_string(major(status.st_dev)) + ":" + std::to_string(minor(status.st_dev)) + "@" + node_number();
  EXPECT_EQ(target_of(status.st_dev), expected);
  EXPECT_EQ(target_of("/proc/self/stat"), expected);
  EXPECT_EQ(target_of("ufs:/proc/self/stat"), expected);
  EXPECT_EQ(target_of("/proc/self/not-there"), expected) << "by its directory";
}

TEST(Target, IsEmptyWhereNothingIs) { EXPECT_EQ(target_of("/not/there/at/all"), ""); }

}  // namespace
}  // namespace hocket::runtime
