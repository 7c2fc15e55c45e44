// Tests the control side against a stand-in for hocketd in the same process.
#include "server/control.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <vector>

#include "base/clock.hpp"
#include "bus/stand_in_testing.hpp"

namespace hocket::server {
namespace {

using bus::testing::StandIn;

constexpr std::chrono::seconds wait_limit{20};

StandIn::Reaction say_nothing(const event::Body&) { return {}; }
StandIn::Reaction refuse_servers(const event::Body& said) {
  if (!std::holds_alternative<event::Server>(said)) return {};
  return {{event::Refused{"the name is taken"}}};
}

class ControlTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/hocket-control-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
    socket_ = name + "/s";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void say(std::string_view line) {
    const std::lock_guard lock(mutex_);
    lines_.emplace_back(line);
    changed_.notify_all();
  }
  // Waits for `count` lines of the control side's log, and returns them.
  std::vector<std::string> wait_for_lines(std::size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, wait_limit, [&] { return lines_.size() >= count; }));
    return lines_;
  }

  // Keeps the maps, and what is to be called when everything is stored.
  const Control::MapSink maps_ = [this](std::optional<event::ServerMap> map, std::function<void()> stored) {
    const std::lock_guard lock(mutex_);
    taken_.emplace_back(std::move(map), std::move(stored));
    changed_.notify_all();
  };
  // Waits for `count` maps, and returns the last of them.
  std::pair<std::optional<event::ServerMap>, std::function<void()>> wait_for_maps(std::size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, wait_limit, [&] { return taken_.size() >= count; }));
    return taken_.at(count - 1);
  }

  const event::Server about_{"s1", "unix:/run/s1", "/scratch", 1 << 20, true, 0};
  std::filesystem::path directory_;
  std::string socket_;
  LoadCounters load_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
  std::vector<std::pair<std::optional<event::ServerMap>, std::function<void()>>> taken_;
};

TEST_F(ControlTest, SaysWhoTheServerIsAndWhatItDoes) {
  StandIn node{socket_, say_nothing};
  Control control{socket_, about_, load_, [this](std::string_view line) { say(line); }, maps_};
  const event::Server told = node.await<event::Server>(1).front();
  EXPECT_EQ(told.server, "s1");
  EXPECT_EQ(told.addresses, "unix:/run/s1");
  EXPECT_EQ(told.directory, "/scratch");
  EXPECT_TRUE(told.write_behind);
  EXPECT_EQ(told.pid, getpid()) << "stamped by the agent";

  load_.held_bytes = 300;
  load_.queue = 2;
  load_.bytes = 500;
  load_.service_ns = 700;
  load_.operations = 5;
  node.await<event::ServerLoad>(1);
  load_.held_bytes = 0;
  load_.queue = 0;
  load_.bytes = 600;
  load_.operations = 6;
  control.leave();
  node.await<event::Bye>(1);
  EXPECT_EQ(node.last(), "BYE");
  event::ServerLoad sum;
  for (const event::ServerLoad& load : node.await<event::ServerLoad>(1)) {
    sum.operations += load.operations;
    sum.bytes += load.bytes;
    sum.service += load.service;
    sum.queue = load.queue;
    sum.held_bytes = load.held_bytes;
  }
  EXPECT_EQ(sum.operations, 6) << "each is told once";
  EXPECT_EQ(sum.bytes, 600);
  EXPECT_EQ(sum.service, Duration{700});
  EXPECT_EQ(sum.queue, 0);
  EXPECT_EQ(sum.held_bytes, 0);
  EXPECT_TRUE(lines_.empty());
}

// A map of many servers, which all report to one leader.
TEST_F(ControlTest, ReportsLessOftenWhereThereAreManyServers) {
  constexpr std::size_t many = 300;
  StandIn node{socket_, [](const event::Body& said) -> StandIn::Reaction {
                 if (!std::holds_alternative<event::Server>(said)) return {};
                 std::vector<event::ServerMap::MappedServer> servers;
                 for (std::size_t i = 0; i < many; ++i)
                   servers.push_back({"s" + std::to_string(i), "/scratch", "unix:/run/s" + std::to_string(i)});
                 return {{event::NewServerMap{1, event::text_of(servers)}}};
               }};
  Control control{socket_, about_, load_, [this](std::string_view line) { say(line); }, maps_};
  wait_for_maps(1);
  const Time begin = node_now();
  for (std::int64_t operations = 0; node_now() - begin < 4 * report_interval(many);
       std::this_thread::sleep_for(std::chrono::milliseconds{5}))
    load_.operations = ++operations;
  const auto most = static_cast<std::size_t>((node_now() - begin) / (report_interval(many) - report_interval(1))) + 2;
  control.leave();
  node.await<event::Bye>(1);
  std::int64_t sum = 0;
  const auto loads = node.await<event::ServerLoad>(1);
  for (const event::ServerLoad& load : loads) sum += load.operations;
  EXPECT_EQ(sum, load_.operations) << "nothing is lost";
  EXPECT_LE(loads.size(), most);
}

TEST(ReportInterval, BoundsTheReportsOfAllServers) {
  EXPECT_EQ(report_interval(1), std::chrono::milliseconds{50});
  EXPECT_EQ(report_interval(200), std::chrono::milliseconds{200});
  EXPECT_EQ(report_interval(100'000), std::chrono::milliseconds{500});
}

TEST_F(ControlTest, TellsOfAnAccessThatDoesNotEnd) {
  StandIn node{socket_, say_nothing};
  load_.oldest_start_ns = to_ns(node_now() - std::chrono::seconds{5});
  const Control control{socket_, about_, load_, [this](std::string_view line) { say(line); }, maps_};
  node.await<event::ServerLoad>(1);
  ++load_.beats;
  const auto loads = node.await<event::ServerLoad>(2);
  EXPECT_EQ(loads[0].operations, 0);
  EXPECT_GE(loads[0].oldest, std::chrono::seconds{5});
  EXPECT_GT(loads[1].oldest, loads[0].oldest);
}

TEST_F(ControlTest, SendsAHeartbeatWhileTheLoopRuns) {
  StandIn node{socket_, say_nothing};
  const Control control{socket_, about_, load_, [this](std::string_view line) { say(line); }, maps_};
  EXPECT_EQ(node.await<event::Server>(1).front().heartbeat, std::chrono::seconds{1});
  EXPECT_EQ(node.await<event::ServerLoad>(1).size(), 1U);
  std::this_thread::sleep_for(std::chrono::milliseconds{1300});
  EXPECT_EQ(node.await<event::ServerLoad>(1).size(), 1U) << "the loop has made no round since";
  ++load_.beats;
  EXPECT_EQ(node.await<event::ServerLoad>(2).back().operations, 0);
}

TEST_F(ControlTest, AnswersAMapWhenAllIsStored) {
  const auto send_maps = [](const event::Body& said) -> StandIn::Reaction {
    if (!std::holds_alternative<event::Server>(said)) return {};
    return {{event::NewServerMap{3, "s1 /scratch unix:/s1\n"}, event::NewServerMap{4, "s2 /scratch unix:/s2\n"}}};
  };
  auto node = std::make_unique<StandIn>(socket_, send_maps);
  const Control control{socket_, about_, load_, [this](std::string_view line) { say(line); }, maps_};
  const auto [newest, stored] = wait_for_maps(2);
  const auto stored_before = wait_for_maps(1).second;
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->epoch, 4);
  EXPECT_EQ(newest->servers.front().name, "s2");
  std::this_thread::sleep_for(std::chrono::milliseconds{200});
  EXPECT_TRUE(node->taken<event::MapStored>().empty()) << "nothing is stored yet";
  stored();
  EXPECT_EQ(node->await<event::MapStored>(1).front().epoch, 4);
  stored_before();
  node.reset();
  EXPECT_FALSE(wait_for_maps(3).first) << "the map ends with the connection";
}

TEST_F(ControlTest, TakesCommandsAboutForwardedCallsAndAsksForTheirApplications) {
  auto service = forward::ForwardService::start(
      {.threads = 1}, directory_.string(), forward::listen_for_forwarding(directory_.string() + "/forward").value(),
      [this](const std::string& line) { say(line); });
  ASSERT_TRUE(service);
  StandIn node{socket_, [](const event::Body& said) -> StandIn::Reaction {
                 if (std::holds_alternative<event::Server>(said))
                   return {{event::UseScheduler{"job-fair"}, event::UseScheduler{"nonsense"},
                            event::UseScheduler{"", 0, 0, "default"}}};
                 return {};
               }};
  const Control control{socket_,
                        about_,
                        load_,
                        [this](std::string_view line) { say(line); },
                        maps_,
                        [](const auto*, const auto&) {},
                        service.value().get()};
  const event::Server said = node.await<event::Server>(1).front();
  EXPECT_EQ(said.scheduler, "fifo");
  EXPECT_EQ(said.scheduler_by, "default");
  const auto used = node.await<event::SchedulerUsed>(3);
  EXPECT_EQ(used[0].server, "s1");
  EXPECT_EQ(used[0].scheduler, "job-fair");
  EXPECT_EQ(used[0].previous, "fifo");
  EXPECT_EQ(used[0].error, "");
  EXPECT_EQ(used[1].scheduler, "job-fair") << "nothing has changed";
  EXPECT_NE(used[1].error.find("unknown request scheduler 'nonsense'"), std::string::npos) << used[1].error;
  EXPECT_EQ(used[2].scheduler, "fifo") << "the one with which it was started";
  EXPECT_EQ(used[2].previous, "job-fair");
  EXPECT_EQ(used[2].scheduler_by, "default");

  const bus::Fd client{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (directory_.string() + "/forward").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const std::string pids = node.await<event::AskApplication>(1).front().pids;
  EXPECT_EQ(pids.substr(0, pids.find(' ')), std::to_string(getpid()));
}

TEST_F(ControlTest, GoesOnWithoutHocketdAndComesBackToIt) {
  Control control{socket_, about_, load_, [this](std::string_view line) { say(line); }, maps_};
  EXPECT_EQ(wait_for_lines(1).front().find("without hocketd: "), 0U);
  load_.operations = 1;
  {
    StandIn node{socket_, say_nothing};
    node.await<event::Server>(1);
    EXPECT_EQ(node.await<event::ServerLoad>(1).front().operations, 1);
    EXPECT_NE(wait_for_lines(2).back().find("answers again"), std::string::npos);
  }
  EXPECT_EQ(wait_for_lines(3).back().find("without hocketd: "), 0U);
  StandIn next{socket_, say_nothing};
  next.await<event::Server>(1);
}

TEST_F(ControlTest, TriesAgainWhereItIsRefused) {
  StandIn node{socket_, refuse_servers};
  const Control control{socket_, about_, load_, [this](std::string_view line) { say(line); }, maps_};
  EXPECT_EQ(wait_for_lines(1).front(), "without hocketd: hocketd refuses: the name is taken");
  node.await<event::Server>(2);
}

}  // namespace
}  // namespace hocket::server
