#include "daemon/server_processes.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>

namespace hocket::daemon {
namespace {

// A process that runs a copy of sleep(1) under a name of our choice.
class Sleeper {
 public:
  Sleeper(const std::filesystem::path& directory, const std::string& name) {
    std::filesystem::create_directories(directory);
    const std::string program = directory / name;
    std::filesystem::copy_file("/bin/sleep", program, std::filesystem::copy_options::skip_existing);
    std::string duration = "1000";
    std::array<char*, 3> arguments{const_cast<char*>(program.c_str()), duration.data(), nullptr};
    EXPECT_EQ(posix_spawn(&pid, program.c_str(), nullptr, nullptr, arguments.data(), environ), 0);
  }
  ~Sleeper() {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  pid_t pid = 0;
};

class ServerProcessesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/hocket-processes-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // Returns the ends that are noticed within 20 s.
  std::vector<event::ServerEnded> await_end() {
    pollfd ended{processes_.descriptor(), POLLIN, 0};
    EXPECT_EQ(poll(&ended, 1, 20'000), 1);
    processes_.collect();
    return processes_.take_ended();
  }

  static event::Server named(const std::string& name, std::int64_t pid) {
    event::Server server;
    server.server = name;
    server.pid = pid;
    server.instance = "0123456789abcdef";
    return server;
  }

  static constexpr MemberId member{7};
  std::filesystem::path directory_;
  ServerProcesses processes_;
};

TEST_F(ServerProcessesTest, KillsAStoppedServerAndNoticesItsEnd) {
  const Sleeper server(directory_, "hocket-server");
  ASSERT_TRUE(processes_.watch(member, named("s1", server.pid)));
  ASSERT_TRUE(processes_.watch(MemberId{8}, named("s1", server.pid))) << "it registers again";
  kill(server.pid, SIGSTOP);
  processes_.collect();
  EXPECT_TRUE(processes_.take_ended().empty());
  EXPECT_FALSE(processes_.kill("s1", server.pid + 1)) << "another process";
  EXPECT_FALSE(processes_.kill("s2", server.pid)) << "another server";
  ASSERT_TRUE(processes_.kill("s1", server.pid));
  const auto ended = await_end();
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended.front().server, "s1");
  EXPECT_EQ(ended.front().pid, server.pid);
  EXPECT_EQ(ended.front().instance, "0123456789abcdef");
  processes_.left(member, true);
  EXPECT_TRUE(processes_.take_ended().empty()) << "each end is reported once";
  EXPECT_FALSE(processes_.kill("s1", server.pid));
}

TEST_F(ServerProcessesTest, EndsTheRunThatIsMeantInOrder) {
  const Sleeper server(directory_, "hocket-server");
  ASSERT_TRUE(processes_.watch(member, named("s1", server.pid)));
  const Status other = processes_.end("s1", "0123456789abcdee");
  ASSERT_FALSE(other) << "another run";
  EXPECT_NE(other.error().text.find("is not watched"), std::string::npos) << other.error().text;
  ASSERT_TRUE(processes_.end("s1", ""));
  EXPECT_EQ(await_end().size(), 1U);
  int status = 0;
  ASSERT_EQ(waitpid(server.pid, &status, 0), server.pid);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

TEST_F(ServerProcessesTest, KillsNothingButServers) {
  const Sleeper other(directory_, "other");
  const Status watched = processes_.watch(member, named("s1", other.pid));
  ASSERT_FALSE(watched);
  EXPECT_NE(watched.error().text.find("runs 'other', not hocket-server"), std::string::npos) << watched.error().text;
  EXPECT_FALSE(processes_.kill("s1", other.pid));
  EXPECT_FALSE(processes_.watch(MemberId{8}, named("s2", 0))) << "in another PID namespace";
}

TEST_F(ServerProcessesTest, TheEndOfTheConnectionCountsForOneThatCannotBeWatched) {
  EXPECT_FALSE(processes_.watch(member, named("s1", 0)));
  processes_.left(MemberId{8}, true);
  EXPECT_TRUE(processes_.take_ended().empty()) << "another member";
  processes_.left(member, true);
  EXPECT_EQ(processes_.take_ended().size(), 1U);
  EXPECT_FALSE(processes_.watch(member, named("s1", 0)));
  processes_.left(member, false);
  EXPECT_TRUE(processes_.take_ended().empty()) << "hocketd has dropped it: it may live";
}

}  // namespace
}  // namespace hocket::daemon
