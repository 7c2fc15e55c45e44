// A program on a file system that hangs: a lease on its file, which the kernel waits for in exec, stands for that.
#include "daemon/launches.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "base/clock.hpp"
#include "daemon/process_starter.hpp"

namespace hocket::daemon {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Duration far_too_long = 30s;  // the kernel breaks a lease after 45 s
constexpr int collect_limit_ms = 60'000;

ProcessImage image_for(const std::string& program) {
  ProcessImage image;
  image.program = program;
  image.arguments = {program};
  image.directory = "/";
  for (std::size_t i = 0; i < image.limits.size(); ++i) getrlimit(static_cast<__rlimit_resource>(i), &image.limits[i]);
  image.out = Fd{open("/dev/null", O_WRONLY | O_CLOEXEC)};
  image.err = Fd{open("/dev/null", O_WRONLY | O_CLOEXEC)};
  return image;
}

class LaunchesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::signal(SIGIO, SIG_IGN);  // the kernel asks for a lease with it
    std::string name = "/tmp/hocket-launches-XXXXXX";
    directory_ = mkdtemp(name.data());
  }
  void TearDown() override {
    lease_ = Fd{};
    while (waitpid(-1, nullptr, 0) > 0) {  // what a launch has killed, and nobody has reaped since
    }
    std::filesystem::remove_all(directory_);
    std::signal(SIGIO, SIG_DFL);
  }

  // Returns a program whose exec hangs until the test ends; "" if the file system knows no leases.
  std::string hanging_program(const std::string& name) {
    const std::string path = directory_ / name;
    std::ofstream{path} << "#!/bin/sh\n";
    chmod(path.c_str(), 0700);
    lease_ = Fd{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    return fcntl(lease_.get(), F_SETLEASE, F_WRLCK) == 0 ? path : std::string{};
  }

  template <class Starter>
  static auto await(Starter& starter) {
    for (const Time until = node_now() + 60s; node_now() < until;) {
      pollfd ready{starter.descriptor(), POLLIN, 0};
      EXPECT_EQ(poll(&ready, 1, collect_limit_ms), 1);
      auto found = starter.collect();
      if (!found.empty()) return found;
    }
    return starter.collect();
  }

  std::filesystem::path directory_;
  Fd lease_;
};

TEST_F(LaunchesTest, TellThatAProgramRuns) {
  Launches launches;
  const auto number = launches.begin([]() -> Result<LaunchPlan> {
    return LaunchPlan{image_for("/bin/true"), {-1, -1}, false};
  });
  ASSERT_TRUE(number.ok());
  const auto outcomes = await(launches);
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].number, number.value());
  EXPECT_EQ(outcomes[0].error, "");
  ASSERT_EQ(outcomes[0].pids.size(), 2U);
  for (const pid_t pid : outcomes[0].pids) EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
}

TEST_F(LaunchesTest, TellWhyAProgramCannotRun) {
  Launches launches;
  ASSERT_TRUE(launches.begin([]() -> Result<LaunchPlan> {
                        return LaunchPlan{image_for("/absent"), {-1}, false};
                      })
                  .ok());
  const auto missing = await(launches);
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_EQ(missing[0].error, "/absent: cannot be started: No such file or directory");
  EXPECT_EQ(missing[0].failed, 1U);
  ASSERT_TRUE(launches.begin([]() -> Result<LaunchPlan> { return Error{"nothing is there"}; }).ok());
  const auto unprepared = await(launches);
  ASSERT_EQ(unprepared.size(), 1U);
  EXPECT_EQ(unprepared[0].error, "nothing is there");
  EXPECT_EQ(unprepared[0].failed, 0U);
}

TEST_F(LaunchesTest, DoNotWaitForAFileSystemThatHangs) {
  const std::string program = hanging_program("hanging");
  if (program.empty()) GTEST_SKIP() << "no leases on the file system of /tmp";
  Launches launches{300ms};
  const Time before = node_now();
  ASSERT_TRUE(launches.begin([&]() -> Result<LaunchPlan> { return LaunchPlan{image_for(program), {-1}, false}; }).ok());
  const auto outcomes = await(launches);
  EXPECT_LT(node_now() - before, far_too_long);
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_THAT(outcomes[0].error, AllOf(HasSubstr(program), HasSubstr("does not answer")));
}

TEST_F(LaunchesTest, AreKilledWhenTheyAreDropped) {
  const std::string program = hanging_program("hanging");
  if (program.empty()) GTEST_SKIP() << "no leases on the file system of /tmp";
  Launches launches{far_too_long};
  const auto number = launches.begin([&]() -> Result<LaunchPlan> {
    return LaunchPlan{image_for(program), {-1}, false};
  });
  ASSERT_TRUE(number.ok());
  pollfd prepared{launches.descriptor(), POLLIN, 0};
  ASSERT_EQ(poll(&prepared, 1, collect_limit_ms), 1);
  EXPECT_TRUE(launches.collect().empty());
  launches.drop(number.value());
  const auto has_child = [] {
    siginfo_t about{};
    return waitid(P_ALL, 0, &about, WEXITED | WNOHANG | WNOWAIT) == 0;
  };
  for (const Time until = node_now() + far_too_long; has_child() && node_now() < until;) {
    launches.reap();
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_FALSE(has_child());
  EXPECT_TRUE(launches.collect().empty());
}

TEST_F(LaunchesTest, AreRefusedWhileTooManyHang) {
  const auto answered = std::make_shared<std::promise<void>>();
  const auto hangs = [wait = answered->get_future().share()]() -> Result<LaunchPlan> {
    wait.wait();
    return Error{"it took long"};
  };
  Launches launches;
  for (int i = 0; i < Launches::most_threads; ++i) ASSERT_TRUE(launches.begin(hangs).ok());
  const auto refused = launches.begin(hangs);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().text, HasSubstr("does a file system hang?"));
  answered->set_value();
  std::size_t ended = 0;
  while (ended < Launches::most_threads) ended += await(launches).size();
  EXPECT_TRUE(launches.begin(hangs).ok()) << "there is room again";
  await(launches);
}

// The launcher of the process that asks is what is started, and its file hangs.
TEST_F(LaunchesTest, AJoinFromAFileSystemThatHangsFails) {
  if (hanging_program("mpiexec.hydra").empty()) GTEST_SKIP() << "no leases on the file system of /tmp";
  const std::string proxy = directory_ / "hydra_pmi_proxy";
  std::filesystem::copy_file("/bin/sh", proxy);
  const pid_t parent = fork();
  if (parent == 0) {
    setpgid(0, 0);
    execl(proxy.c_str(), proxy.c_str(), "-c", "sleep 300 & echo $! > $0.new; mv $0.new $0; wait",
          (directory_ / "pid").c_str(), nullptr);
    _exit(127);
  }
  std::int64_t asking = 0;
  for (const Time until = node_now() + 60s; asking == 0 && node_now() < until; std::this_thread::sleep_for(2ms))
    std::ifstream{directory_ / "pid"} >> asking;
  ProcessStarter starter{300ms};
  event::StartProcesses asked;
  asked.request = RequestId{7};
  asked.app = AppId{3};
  asked.count = 1;
  asked.pid = asking;
  const Time before = node_now();
  ASSERT_TRUE(starter.start(asked).ok());
  const auto failed = await(starter);
  EXPECT_LT(node_now() - before, far_too_long);
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_EQ(failed[0].request, RequestId{7});
  EXPECT_THAT(failed[0].reason, AllOf(HasSubstr("process 1 of 1 cannot be started"), HasSubstr("does not answer")));
  kill(-parent, SIGKILL);
  waitpid(parent, nullptr, 0);
}

}  // namespace
}  // namespace hocket::daemon
