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
  ForwardingTest() = default;
  explicit ForwardingTest(const CoordinatorSettings& settings) : Script(settings) {}

  // Member 11 is s1, 12 is s2, …
  Lines server(std::uint64_t number, const std::string& scheduler = "fifo", const std::string& by = {}) {
    const std::string name = "s" + std::to_string(number);
    event::Server said{name, "unix:/" + name, "/scratch", 1 << 20, false, 700 + static_cast<std::int64_t>(number)};
    said.scheduler = scheduler;
    said.scheduler_by = by;
    return at(1, 10 + number, said);
  }
  Lines schedule(const std::string& servers, const std::string& name) {
    return at(2, tool, event::SetServer{servers, "scheduler", {}, name});
  }
  Lines used(std::uint64_t number, const std::string& name, const std::string& error = {}, const std::string& by = {}) {
    event::SchedulerUsed said{"s" + std::to_string(number), name, "fifo", 3};
    said.error = event::Prose{error};
    said.scheduler_by = by;
    return at(3, 10 + number, said);
  }
  Lines weigh(const std::string& application, std::int64_t weight) {
    event::SetServer set{"", "weight", application};
    set.weight = weight;
    return at(2, tool, set);
  }
  event::Application listed(const std::string& name) {
    const model::Application* const found = coordinator.cluster().find_application(name);
    return found == nullptr ? event::Application{} : coordinator.describe(*found, Time{});
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

TEST_F(ForwardingTest, VouchesForEachMemberOfAnApplication) {
  server(1);
  for (const std::int64_t rank : {0, 1}) {
    event::Hello hello{"job-1", "solver", "/bin/solver", "mpich", "", 1, rank == 0 ? 2 : 0};
    hello.peer_pid = 500 + rank;
    at(1, 1 + static_cast<std::uint64_t>(rank), hello);
  }
  event::Hello write_back{"job-1", "solver", "/bin/solver", "mpich", "", 1, 0};
  write_back.peer_pid = 701;  // of s1
  at(1, 3, write_back);
  EXPECT_EQ(at(4, 11, event::AskApplication{"500 9"}), Lines{"11 APPLICATION_FOR of 500 9: 500 solver 2"});
  EXPECT_EQ(at(4, 11, event::AskApplication{"501 9"}), Lines{"11 APPLICATION_FOR of 501 9: 501 solver 2"});
  EXPECT_EQ(at(4, 11, event::AskApplication{"701 9"}), Lines{"11 APPLICATION_FOR of 701 9: 0  0"}) << "an I/O server";
  at(5, 1, event::Bye{});
  EXPECT_EQ(at(6, 11, event::AskApplication{"501 9"}), Lines{"11 APPLICATION_FOR of 501 9: 501 solver 0"});
}

TEST_F(ForwardingTest, DoesNotBelieveAnApplicationAboutItsProcess) {
  server(1);
  event::Hello forged{"forged", "forged", "/bin/forged", "mpich", "", 500, 8};
  forged.peer_pid = 700;
  at(1, 1, forged);
  EXPECT_EQ(at(4, 11, event::AskApplication{"501 500"}), Lines{"11 APPLICATION_FOR of 501 500: 0  0"});
  EXPECT_EQ(at(4, 11, event::AskApplication{"701 700"}), Lines{"11 APPLICATION_FOR of 701 700: 700 forged 8"});
}

// ---- weights ------------------------------------------------------------------------------------------------------

TEST_F(ForwardingTest, ServersLearnTheWeightsOfApplications) {
  server(1);
  application(1, "solver", 500, 8);
  server(2, "");
  EXPECT_EQ(listed("solver").weight, 1);
  EXPECT_EQ(listed("solver").weight_by, "default");
  EXPECT_EQ(weigh("solver", 4), (Lines{"11 APPLICATION_WEIGHT solver 4", "12 APPLICATION_WEIGHT solver 4",
                                       "0 DECISION 1 set-aside weigh-application solver 0 to 0"}));
  EXPECT_EQ(listed("solver").weight, 4);
  EXPECT_EQ(listed("solver").weight_by, "");
  EXPECT_EQ(weigh("solver", 4), Lines{}) << "it is so already";
  EXPECT_EQ(at(4, 11, event::AskApplication{"501 500"}), Lines{"11 APPLICATION_FOR of 501 500: 500 solver 8 weight 4"});
  EXPECT_EQ(server(3).back(), "13 APPLICATION_WEIGHT solver 4") << "a server that comes later";
  EXPECT_EQ(weigh("solver", 0).front(), "11 APPLICATION_WEIGHT solver 1");
  EXPECT_EQ(listed("solver").weight_by, "default");
}

TEST_F(ForwardingTest, AWeightThatCannotBeIsALine) {
  server(1);
  application(1, "solver", 500, 8);
  for (const std::int64_t wrong : {-1, 1001}) {
    EXPECT_EQ(weigh("solver", wrong),
              Lines{"99 REFUSED invalid weight " + std::to_string(wrong) + ": must be 1 to 1000, or 0 for no choice"});
  }
  EXPECT_EQ(weigh("nobody", 2), Lines{"99 REFUSED no application 'nobody' is running: 'hocket ls' lists them"});
}

// ---- hocket.toml ---------------------------------------------------------------------------------------------------

class ConfiguredTest : public ForwardingTest {
 protected:
  ConfiguredTest() : ForwardingTest(settings()) {}
  static CoordinatorSettings settings() {
    CoordinatorSettings made = testing::usual_settings();
    made.request_scheduler = "wfq";
    made.application_weights = {{"solver", 4}};
    return made;
  }
};

TEST_F(ConfiguredTest, AServerForWhichNobodyHasChosenUsesTheSchedulerOfTheConfiguration) {
  EXPECT_EQ(server(1, "fifo", "default"), Lines{"11 USE_SCHEDULER wfq by configuration"});
  EXPECT_EQ(used(1, "wfq", "", "configuration"), Lines{"0 DECISION 1 set-aside schedule s1 0 to 0"});
  EXPECT_EQ(row("s1").scheduler_by, "configuration");
  EXPECT_EQ(server(2, "job-fair", ""), Lines{}) << "an operator has started it so";
  EXPECT_EQ(server(3, "wfq", "configuration"), Lines{}) << "it is so already";
  EXPECT_EQ(server(4, "sjf", "policy"), Lines{"14 USE_SCHEDULER wfq by configuration"}) << "of an earlier hocketd";
  EXPECT_EQ(server(5, "", ""), Lines{}) << "it carries out no forwarded calls";
}

TEST_F(ConfiguredTest, AnOperatorGivesTheChoiceBack) {
  server(1, "job-fair", "");
  EXPECT_EQ(schedule("s1", "default"), Lines{"11 USE_SCHEDULER wfq by configuration"});
}

TEST_F(ConfiguredTest, AServerThatRefusesTheSchedulerOfTheConfigurationKeepsItsOwn) {
  server(1, "fifo", "default");
  EXPECT_EQ(used(1, "fifo", "unknown request scheduler", "configuration"),
            Lines{"0 DECISION 1 set-aside leave s1 0 to 0"});
  EXPECT_EQ(row("s1").scheduler, "fifo");
  EXPECT_EQ(row("s1").scheduler_by, "default");
}

TEST_F(ConfiguredTest, EachRunOfANameHasItsWeightUnlessAnOperatorSaysAnother) {
  server(1, "wfq", "");
  application(1, "solver", 500, 8);
  at(1, 2, event::Hello{"another job", "solver", "/bin/solver", "mpich", "", 1, 8});
  EXPECT_EQ(listed("solver").weight, 4);
  EXPECT_EQ(listed("solver-2").weight, 4);
  EXPECT_EQ(listed("solver-2").weight_by, "configuration");
  weigh("solver-2", 7);
  EXPECT_EQ(listed("solver-2").weight, 7);
  weigh("solver-2", 0);
  EXPECT_EQ(listed("solver-2").weight, 4);
  const Lines come = server(2, "wfq", "");
  ASSERT_GE(come.size(), 2U);
  EXPECT_EQ(Lines(come.end() - 2, come.end()),
            (Lines{"12 APPLICATION_WEIGHT solver 4", "12 APPLICATION_WEIGHT solver-2 4"}));
}

TEST_F(ForwardingTest, WithoutAConfigurationAnEarlierOneEnds) {
  EXPECT_EQ(server(1, "fifo", "default"), Lines{});
  EXPECT_EQ(server(2, "wfq", "configuration"), Lines{"12 USE_SCHEDULER  by default"});
  EXPECT_EQ(schedule("s1", "default"), Lines{"11 USE_SCHEDULER  by default"});
}

}  // namespace
}  // namespace hocket::coordinator
