#include "daemon/for_servers.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/server_files.hpp"
#include "base/whole_file.hpp"

namespace hocket::daemon {
namespace {

class ForServers : public ::testing::Test {
 protected:
  ForServers() {
    std::string name = "/tmp/hocket-for-servers-XXXXXX";
    directory_ = mkdtemp(name.data());
  }
  ~ForServers() override { std::filesystem::remove_all(directory_); }

  static std::string read(const std::string& path) { return whole_file(path.c_str(), 4096); }

  std::string directory_;
};

TEST_F(ForServers, TheSecretOfTheClusterReplacesAnEarlierOneAndIsPrivate) {
  const std::string path = server_files::secret(directory_);
  for (const char* secret : {"the first secret of servers", "another one"}) {
    ASSERT_TRUE(leave_secret(directory_, secret).ok());
    EXPECT_EQ(read(path), secret);
  }
  struct stat about {};
  ASSERT_EQ(stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777U, 0600U);
}

TEST_F(ForServers, AnAddressThatIsNotKnownAnyMoreIsRemoved) {
  const std::string path = server_files::address(directory_);
  ASSERT_TRUE(leave_address(directory_, "10.0.0.1").ok());
  EXPECT_EQ(read(path), "10.0.0.1");
  ASSERT_TRUE(leave_address(directory_, "").ok());
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(leave_address(directory_, "").ok()) << "nor was it known before";
}

TEST_F(ForServers, ADirectoryThatOthersMayEnterIsNotUsed) {
  const std::string servers = server_files::directory(directory_);
  ASSERT_EQ(mkdir(servers.c_str(), 0700), 0);
  ASSERT_EQ(chmod(servers.c_str(), 0777), 0);
  const Status left = leave_secret(directory_, "a secret of servers");
  ASSERT_FALSE(left.ok());
  EXPECT_NE(left.error().text.find(servers), std::string::npos) << left.error().text;
  EXPECT_EQ(read(server_files::secret(directory_)), "");
}

}  // namespace
}  // namespace hocket::daemon
