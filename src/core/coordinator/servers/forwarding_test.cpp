// Tests the commands about forwarded calls: which scheduler servers use, and whose clients they have.
#include <gtest/gtest.h>

#include "coordinator/coordinator.hpp"
#include "coordinator/script_testing.hpp"
#include "coordinator/servers/servers.hpp"

namespace hocket::coordinator {
namespace {

using testing::Lines;

class ForwardingTest : public testing::Script {
 protected:
  // Member 11 is s1, 12 is s2, …
  void server(std::uint64_t number) {
    const std::string name = "s" + std::to_string(number);
    event::Server said{name, "unix:/" + name, "/scratch", 1 << 20, false, 700 + static_cast<std::int64_t>(number)};
    said.scheduler = "fifo";
    at(1, 10 + number, said);
  }
  Lines schedule(const std::string& servers, const std::string& name) {
    return at(2, tool, event::SetServer{servers, "scheduler", {}, name});
  }
  Lines used(std::uint64_t number, const std::string& name, const std::string& error = {}) {
    event::SchedulerUsed said{"s" + std::to_string(number), name, "fifo", 3};
    said.error = event::Prose{error};
    return at(3, 10 + number, said);
  }
  void application(std::uint64_t member, const std::string& name, std::int64_t peer_pid, std::int64_t processes) {
    event::Hello hello{name, name, "/bin/" + name, "mpich", "", 1, processes};
    hello.peer_pid = peer_pid;
    at(1, member, hello);
  }
  event::IoServer row(const std::string& name) {
    for (const event::IoServer& one : coordinator.servers().describe(Time{}))
      if (one.server == name) return one;
    return {};
  }

  static constexpr std::uint64_t tool = 99;
};

TEST_F(ForwardingTest, OneServerOrAllAreToldTheScheduler) {
  server(1);
  server(2);
  EXPECT_EQ(schedule("s2", "job-fair"), Lines{"12 USE_SCHEDULER job-fair"});
  EXPECT_EQ(schedule("all", "wfq"), (Lines{"11 USE_SCHEDULER wfq", "12 USE_SCHEDULER wfq"}));
  event::SetServer twins{"s1", "scheduler", {}, "twins", 4, 4096};
  EXPECT_EQ(at(3, tool, twins), Lines{"11 USE_SCHEDULER twins 4 data servers of 4096"});
}

TEST_F(ForwardingTest, AServerThatHasGoneOrANameThatIsNoneIsALine) {
  server(1);
  at(2, 11, event::Lost{"gone"});
  const Lines gone{"99 REFUSED no server called 's1' runs; 'hocket servers' lists them"};
  EXPECT_EQ(schedule("s1", "job-fair"), gone);
  EXPECT_EQ(schedule("s9", "job-fair"), Lines{"99 REFUSED no server called 's9' runs; 'hocket servers' lists them"});
  EXPECT_EQ(schedule("all", "job-fair"), Lines{});
  server(2);
  EXPECT_EQ(schedule("s2", ""), Lines{"99 REFUSED SET_SERVER: '' is no name of a request scheduler"});
  EXPECT_EQ(schedule("s2", std::string(65, 'x')),
            Lines{"99 REFUSED SET_SERVER: '" + std::string(64, 'x') + "' is no name of a request scheduler"});
}

TEST_F(ForwardingTest, ListsTheSchedulerOnceTheServerUsesIt) {
  server(1);
  schedule("s1", "job-fair");
  EXPECT_EQ(row("s1").scheduler, "fifo");
  EXPECT_EQ(used(1, "fifo", "unknown request scheduler"), Lines{});
  EXPECT_EQ(row("s1").scheduler, "fifo");
  EXPECT_EQ(used(1, "job-fair"), Lines{"0 DECISION 1 set-aside schedule s1 0 to 0"});
  EXPECT_EQ(row("s1").scheduler, "job-fair");
  EXPECT_EQ(used(7, "job-fair"), Lines{}) << "no server";
}

TEST_F(ForwardingTest, SumsUpWhatServersReport) {
  server(1);
  event::ServerLoad load;
  load.forwarded = 10;
  load.forwarded_bytes = 1000;
  load.system_calls = 4;
  load.merged = 8;
  load.forward_waited = Duration{500};
  load.forward_queue = 3;
  load.forward_shares = "10 1000 500 app\n";
  at(2, 11, load);
  load.forward_queue = 0;
  load.forward_shares.clear();
  at(3, 11, load);
  const event::IoServer listed = row("s1");
  EXPECT_EQ(listed.forwarded, 20);
  EXPECT_EQ(listed.forwarded_bytes, 2000);
  EXPECT_EQ(listed.system_calls, 8);
  EXPECT_EQ(listed.merged, 16);
  EXPECT_EQ(listed.forward_waited, Duration{1000});
  EXPECT_EQ(listed.forward_queue, 0);
  EXPECT_EQ(listed.forward_shares, "10 1000 500 app\n");
}

TEST_F(ForwardingTest, VouchesForTheNearestProcessThatIsAnApplications) {
  server(1);
  application(1, "solver", 500, 8);
  application(2, "post", 600, 1);
  const auto ask = [this](const std::string& pids) { return at(4, 11, event::AskApplication{pids}); };
  EXPECT_EQ(ask("502 501 500 1"), Lines{"11 APPLICATION_FOR of 502 501 500 1: 500 solver 8"});
  EXPECT_EQ(ask("601 600 500"), Lines{"11 APPLICATION_FOR of 601 600 500: 600 post 1"});
  EXPECT_EQ(ask("7 1"), Lines{"11 APPLICATION_FOR of 7 1: 0  0"});
  EXPECT_EQ(ask("x 500"), Lines{"11 APPLICATION_FOR of x 500: 0  0"});
  EXPECT_EQ(ask(""), Lines{"11 APPLICATION_FOR of : 0  0"});
  EXPECT_EQ(at(5, tool, event::AskApplication{"500"}), Lines{}) << "only servers are told";
}

TEST_F(ForwardingTest, DoesNotBelieveAnApplicationAboutItsProcess) {
  server(1);
  event::Hello forged{"forged", "forged", "/bin/forged", "mpich", "", 500, 8};
  forged.peer_pid = 700;
  at(1, 1, forged);
  EXPECT_EQ(at(4, 11, event::AskApplication{"501 500"}), Lines{"11 APPLICATION_FOR of 501 500: 0  0"});
  EXPECT_EQ(at(4, 11, event::AskApplication{"701 700"}), Lines{"11 APPLICATION_FOR of 701 700: 700 forged 8"});
}

}  // namespace
}  // namespace hocket::coordinator
