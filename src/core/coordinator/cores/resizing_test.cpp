// Tests resizes and joins case by case. Random and hostile orders: resizing_property_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/coordinator.hpp"
#include "coordinator/script_testing.hpp"

namespace hocket::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Lines;
using ::testing::StartsWith;

// With 8 cores and a time limit of 60 s for joins.
CoordinatorSettings eight_core_settings() {
  CoordinatorSettings settings = testing::usual_settings();
  settings.cores = 8;
  settings.join_limit = std::chrono::seconds{60};
  return settings;
}

class ResizingTest : public testing::Script {
 protected:
  ResizingTest() : Script(eight_core_settings()) {}

  void hello(std::uint64_t member, const std::string& name, std::int64_t processes = 1) {
    Script::hello(member, "job-" + name, name, processes);
  }
  // Makes member 1 of application "app", which computes with `processes`.
  void malleable(std::int64_t processes, std::int64_t iteration = 0, std::int64_t sleeping = 0,
                 const std::string& method = "merge single, collective blocking") {
    hello(1, "app", processes);
    at(0, 1, event::Malleable{processes, iteration, sleeping, method});
  }
  Lines resize(std::int64_t processes, std::int64_t at_iteration = 0, const std::string& places = "") {
    return at(1, tool, event::Resize{"app", processes, false, at_iteration, places});
  }
  Lines resize_by(std::int64_t processes) { return at(1, tool, event::Resize{"app", processes, true, 0, ""}); }
  static event::Reconfiguration record(std::uint64_t request, bool done, std::int64_t sources, std::int64_t targets) {
    event::Reconfiguration record;
    record.request = RequestId{request};
    record.done = done;
    record.sources = sources;
    record.targets = targets;
    return record;
  }
  event::Application listed(const std::string& name = "app") {
    for (const auto& [id, application] : coordinator.cluster().applications()) {
      if (application.name == name) return coordinator.describe(application, {});
    }
    return {};
  }
  Lines start_processes(std::uint64_t request, std::int64_t count, std::int64_t ms = 0) {
    return at(ms, 1, event::StartProcesses{RequestId{request}, count, "port", 4711, {}, {}});
  }

  static constexpr std::uint64_t tool = 100;
};

TEST_F(ResizingTest, AToolNamesTheNodesToLeave) {
  malleable(4);
  at(1, 1, event::Malleable{4, 0, 0, "merge", 0, "n1=2 n2=2"});
  const auto leave = [&](std::int64_t processes, const std::string& nodes) {
    return at(2, tool, event::Resize{"app", processes, false, 0, "", {}, nodes}).front();
  };
  EXPECT_THAT(leave(2, "n2 n1=0"), HasSubstr("REFUSED cannot resize: leave: 'n1=0' is no node to leave"));
  EXPECT_THAT(leave(6, "n2"), HasSubstr("leave: 'app' would grow"));
  EXPECT_THAT(leave(2, "n3=1"), HasSubstr("'app' has no process on 'n3': it runs on n1=2 n2=2"));
  EXPECT_EQ(leave(2, "n2"), "1 RECONFIGURE 1 to 2 at 0 leaving n2");
  event::Reconfiguration said = record(1, true, 4, 2);
  said.nodes = "n1=2";
  said.left = "n2 n2";
  at(3, 1, said);
  EXPECT_EQ(listed().nodes, "n1=2");
}

TEST_F(ResizingTest, TellsTheCommandingMemberAndThenTheTool) {
  malleable(2);
  EXPECT_EQ(resize(4, 120), Lines{"1 RECONFIGURE 1 to 4 at 120"});
  EXPECT_EQ(listed().resizing_to, 4);
  EXPECT_EQ(at(2, 1, record(1, true, 2, 4)), Lines{"100 RECONFIGURATION 1 done 2 to 4"});
  EXPECT_EQ(listed().processes, 4);
  EXPECT_EQ(listed().resizing_to, 0);
  EXPECT_EQ(listed().reconfigurations, 1);
  EXPECT_TRUE(listed().malleable);
  EXPECT_EQ(resize_by(-3), Lines{"1 RECONFIGURE 2 to 1 at 0"});
}

TEST_F(ResizingTest, TheToolMayChooseTheMethods) {
  malleable(2);
  EXPECT_EQ(at(1, tool, event::Resize{"app", 4, false, 0, "", "baseline/p2p"}),
            Lines{"1 RECONFIGURE 1 to 4 at 0 by baseline/p2p"});
}

TEST_F(ResizingTest, MethodsThatWouldFillAMessageAreRefused) {
  malleable(2);
  const Lines refused = at(1, tool, event::Resize{"app", 4, false, 0, "", std::string(8000, 'x')});
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_THAT(refused[0], HasSubstr("methods have 8000 bytes"));
  EXPECT_EQ(at(2, tool, event::Resize{"app", 4, false, 0, "", std::string(256, 'x')}).size(), 1U);
  EXPECT_EQ(listed().resizing_to, 4);
}

TEST_F(ResizingTest, WhatWasGivenUpChangesNothingAndIsTold) {
  malleable(2);
  resize(4);
  EXPECT_EQ(at(2, 1, record(1, false, 2, 4)), Lines{"100 RECONFIGURATION 1 not done 2 to 4"});
  EXPECT_EQ(listed().processes, 2);
  EXPECT_EQ(listed().resizing_to, 0);
  EXPECT_EQ(listed().reconfigurations, 0);
}

TEST_F(ResizingTest, TheApplicationsOwnWishIsNobodysAnswer) {
  malleable(2);
  resize(4);
  EXPECT_EQ(at(2, 1, record(0, true, 2, 3)), Lines{});
  EXPECT_EQ(listed().processes, 3);
  EXPECT_EQ(listed().resizing_to, 4) << "the tool's is still to come";
}

TEST_F(ResizingTest, AnApplicationMayAskForItself) {
  malleable(2);
  const auto asks = [this](std::int64_t processes) { return at(1, 1, event::Resize{"", processes, false, 0, ""}); };
  EXPECT_EQ(asks(4), Lines{"1 RECONFIGURE 1 to 4 at 0"});
  EXPECT_EQ(listed().resizing_to, 4);
  EXPECT_EQ(at(2, 1, record(1, true, 2, 4)), Lines{"1 RECONFIGURATION 1 done 2 to 4"});
  // REFUSED would end its requests for I/O.
  EXPECT_THAT(asks(9), ElementsAre(StartsWith("1 RECONFIGURATION 0 not done 0 to 0cannot resize: 9 processes")));
  EXPECT_EQ(asks(5), Lines{"1 RECONFIGURE 2 to 5 at 0"});
  EXPECT_EQ(at(3, 1, event::Bye{}), Lines{}) << "nobody waits for the answer";
}

TEST_F(ResizingTest, AToolsResizeComesBeforeTheApplicationsOwn) {
  malleable(2);
  resize(4);
  EXPECT_THAT(at(1, 1, event::Resize{"", 3, false, 0, ""}), ElementsAre(HasSubstr("is being resized to 4 processes")));
}

TEST_F(ResizingTest, AnotherMemberTakesOver) {
  malleable(2);
  hello(2, "app", 1);
  resize(4);
  EXPECT_EQ(at(2, 1, event::Bye{}), Lines{}) << "a baseline reconfiguration: its sources leave";
  EXPECT_EQ(at(3, 2, record(1, true, 2, 4)), Lines{"100 RECONFIGURATION 1 done 2 to 4"});
  EXPECT_EQ(resize(2),
            Lines{"100 REFUSED cannot resize: 'app' has lost the process that receives resize requests: try again "
                  "when another has taken over"});
  at(4, 2, event::Malleable{4, 10, 0, "baseline single"});
  EXPECT_EQ(resize(2), Lines{"2 RECONFIGURE 2 to 2 at 0"});
}

TEST_F(ResizingTest, AnApplicationThatEndsIsNotResized) {
  malleable(2);
  resize(4);
  EXPECT_EQ(at(2, 1, event::Bye{}), Lines{"100 REFUSED 'app' ended before it was resized"});
  malleable(2);
  hello(2, "app");
  resize(4);
  EXPECT_EQ(at(2, 1, event::Lost{}), Lines{"100 REFUSED 'app' ended before it was resized"});
  EXPECT_EQ(listed().resizing_to, 0);
}

TEST_F(ResizingTest, WhoAskedMayTakeItBack) {
  malleable(2);
  resize(4, 120);
  EXPECT_EQ(at(2, tool, event::WithdrawResize{}), Lines{"1 WITHDRAW_RESIZE 1"});
  EXPECT_EQ(listed().resizing_to, 4) << "it may have begun";
  EXPECT_EQ(at(3, 1, record(1, false, 2, 4)), Lines{"100 RECONFIGURATION 1 not done 2 to 4"});
  EXPECT_EQ(listed().resizing_to, 0);
  EXPECT_EQ(at(4, tool, event::WithdrawResize{}),
            Lines{"100 REFUSED no resize that you requested is under way: nothing to withdraw"});
}

TEST_F(ResizingTest, AToolThatIsLostHasTakenItBack) {
  malleable(2);
  resize(4, 120);
  EXPECT_EQ(at(2, 101, event::Lost{}), Lines{}) << "another tool";
  EXPECT_EQ(at(2, tool, event::Lost{}), Lines{"1 WITHDRAW_RESIZE 1"});
  at(3, 1, record(1, false, 2, 4));
  EXPECT_EQ(resize(3), Lines{"1 RECONFIGURE 2 to 3 at 0"});
}

TEST_F(ResizingTest, WhatHasBegunGoesOn) {
  malleable(2);
  hello(9, "other");
  resize(4);
  at(2, tool, event::WithdrawResize{});
  EXPECT_EQ(at(3, 9, event::WithdrawResize{RequestId{1}, true}), Lines{}) << "another's";
  EXPECT_EQ(at(3, 1, event::WithdrawResize{RequestId{2}, true}), Lines{}) << "another request";
  EXPECT_EQ(at(3, 1, event::WithdrawResize{RequestId{1}, true}), Lines{"100 WITHDRAW_RESIZE 1 begun"});
  EXPECT_EQ(at(4, 1, record(1, true, 2, 4)), Lines{"100 RECONFIGURATION 1 done 2 to 4"});
}

TEST_F(ResizingTest, AnAnswerThatWasLostIsNotWaitedFor) {
  malleable(2);
  resize(4, 120);
  const auto phase = [this](std::int64_t s, std::int64_t index, std::int64_t iteration) {
    event::IoPhase said;
    said.index = index;
    said.start = said.end = Time{} + std::chrono::seconds{s};
    said.iteration = iteration;
    said.processes = 3;
    return at(s * 1000, 1, said);
  };
  EXPECT_EQ(phase(1, 0, 110), Lines{});
  EXPECT_EQ(phase(200, 1, 115), Lines{}) << "it is not there yet";
  EXPECT_EQ(phase(201, 2, 120), Lines{}) << "it may not have heard of it";
  EXPECT_EQ(phase(1000, 3, 150), Lines{}) << "it has begun, and may need 60 s and four I/O periods";
  EXPECT_EQ(phase(1050, 4, 155), Lines{});
  EXPECT_EQ(listed().resizing_to, 4);
  EXPECT_EQ(phase(9000, 5, 160),
            Lines{"100 REFUSED 'app' did not report how its resize ended: it is past iteration 160 "
                  "with 3 processes"});
  EXPECT_EQ(listed().resizing_to, 0);
  EXPECT_EQ(listed().processes, 3);
  EXPECT_EQ(at(9'000'001, 1, record(1, true, 3, 4)), Lines{}) << "late";
  EXPECT_EQ(listed().processes, 4);
  EXPECT_EQ(at(9'000'002, tool, event::Resize{"app", 2, false, 0, ""}), Lines{"1 RECONFIGURE 2 to 2 at 0"});
}

TEST_F(ResizingTest, RefusesWhatCannotBe) {
  const auto refused = [](const std::string& why) { return Lines{"100 REFUSED cannot resize: " + why}; };
  EXPECT_EQ(resize(2), refused("no application runs"));
  hello(9, "app-b");
  EXPECT_EQ(resize(2), refused("no application 'app' runs; did you mean 'app-b'? There are: app-b"));
  hello(1, "app", 2);
  EXPECT_EQ(resize(3), refused("'app' is not malleable: it does not call hocket_malleable_create and "
                               "hocket_malleable_begin, or its MPI cannot start processes"));
  malleable(2, 150);
  EXPECT_EQ(resize(0), refused("'app' has 2 processes and would have 0: it needs at least 1"));
  EXPECT_EQ(resize_by(-2), refused("'app' has 2 processes and would have 0: it needs at least 1"));
  EXPECT_EQ(resize(2), refused("'app' has 2 processes already"));
  EXPECT_EQ(resize_by(0), refused("'app' has 2 processes already"));
  EXPECT_EQ(resize(8), refused("8 processes for 'app' are too many: there are 8 cores, 1 of them used by other "
                               "applications; ask for fewer, or set 'cores' of [coordinator] in hocket.toml"));
  EXPECT_EQ(resize(3, -1), refused("iteration -1 does not exist: give 1 or more, or 0 for the next one"));
  EXPECT_EQ(resize(3, 150),
            refused("iteration 150 is past: 'app' has done 150; give a later one, or 0 for the next one"));
  EXPECT_EQ(resize(4, 0, "n1 :2"),
            refused("places: ':2' is no place: write NODE or NODE:CORE, one for each new process"));
  EXPECT_EQ(resize(4, 0, "n1 n1:0 n1:1"), refused("places: 3 are given, but 'app' gets 2 processes that must be "
                                                  "started: give one place for each, or none"));
  EXPECT_EQ(listed().resizing_to, 0);
  EXPECT_EQ(resize(3, 151), Lines{"1 RECONFIGURE 1 to 3 at 151"});
  EXPECT_EQ(resize(4), refused("'app' is being resized to 3 processes already: wait until it has ended"));
}

TEST_F(ResizingTest, RelativeSizesDoNotOverflow) {
  malleable(2);
  EXPECT_THAT(resize_by(std::numeric_limits<std::int64_t>::max()).at(0), ::testing::HasSubstr("are too many"));
  EXPECT_THAT(resize_by(std::numeric_limits<std::int64_t>::min()).at(0), ::testing::HasSubstr("needs at least 1"));
}

TEST_F(ResizingTest, ResizesUnderWayCountTheirCores) {
  hello(9, "other");
  at(0, 9, event::Malleable{2, 0, 0, ""});
  at(0, tool, event::Resize{"other", 6, false, 0, ""});
  malleable(1);
  EXPECT_THAT(resize(3).at(0), ::testing::HasSubstr("6 of them used by other applications"));
  EXPECT_EQ(resize(2), Lines{"1 RECONFIGURE 2 to 2 at 0"});
}

TEST_F(ResizingTest, ShrinkingIsAllowedWhereThereAreTooFewCores) {
  malleable(20);
  EXPECT_EQ(resize(15), Lines{"1 RECONFIGURE 1 to 15 at 0"});
}

TEST_F(ResizingTest, PlacesAreForProcessesThatAreStarted) {
  malleable(2, 0, 1);
  EXPECT_EQ(resize(4, 0, "n1:3"), Lines{"1 RECONFIGURE 1 to 4 at 0 on n1:3"}) << "one sleeps and is woken";
  at(2, 1, record(1, false, 2, 4));
  at(3, 1, event::Malleable{2, 0, 0, "baseline plain"});
  EXPECT_EQ(resize(3, 0, " n1 n2  n3:0 "), Lines{"1 RECONFIGURE 2 to 3 at 0 on  n1 n2  n3:0 "});
}

TEST_F(ResizingTest, AJoinIsReadyWhenAllAre) {
  malleable(1);
  EXPECT_EQ(start_processes(5, 2), Lines{"0 START_PROCESSES 5 count 2 port port pid 4711 app 1"});
  hello(2, "app");
  hello(3, "app");
  EXPECT_EQ(at(1, 2, event::ProcessReady{RequestId{5}}), Lines{});
  EXPECT_EQ(at(1, 2, event::ProcessReady{RequestId{5}}), Lines{}) << "said twice";
  EXPECT_EQ(at(1, 3, event::ProcessReady{RequestId{4}}), Lines{}) << "of another request";
  EXPECT_EQ(at(1, 3, event::ProcessReady{RequestId{5}}), Lines{"1 PROCESSES_READY 5"});
  EXPECT_EQ(coordinator.deadline(), std::nullopt);
  EXPECT_TRUE(coordinator.awaits(AppId{1}, RequestId{5}));
  EXPECT_EQ(at(2, 1, record(0, true, 1, 3)), Lines{});
  EXPECT_FALSE(coordinator.awaits(AppId{1}, RequestId{5}));
  EXPECT_EQ(at(3, 0, event::ProcessFailed{RequestId{5}, AppId{1}, "ended"}), Lines{});
}

TEST_F(ResizingTest, AJoinFailsOnce) {
  malleable(1);
  start_processes(5, 2);
  EXPECT_EQ(at(1, 0, event::ProcessFailed{RequestId{5}, AppId{1}, "exit code 3"}),
            (Lines{"0 STOP_PROCESSES 5 app 1", "1 PROCESSES_READY 5 failed: exit code 3"}));
  EXPECT_EQ(at(1, 0, event::ProcessFailed{RequestId{5}, AppId{1}, "signal 9"}), Lines{});
  EXPECT_EQ(start_processes(6, 1), Lines{"0 START_PROCESSES 6 count 1 port port pid 4711 app 1"});
}

TEST_F(ResizingTest, AJoinThatTakesTooLongIsGivenUp) {
  malleable(1);
  start_processes(5, 2, 1000);
  ASSERT_TRUE(coordinator.deadline());
  EXPECT_EQ(to_ns(*coordinator.deadline()), 61'000'000'000);
  EXPECT_EQ(tick(60'999), Lines{});
  EXPECT_EQ(tick(61'000), (Lines{"0 STOP_PROCESSES 5 app 1",
                                 "1 PROCESSES_READY 5 failed: 0 of 2 processes were ready after 60 s "
                                 "(join_limit_s of [coordinator] in hocket.toml)"}));
  EXPECT_EQ(coordinator.deadline(), std::nullopt);
}

TEST_F(ResizingTest, AProcessThatEndsBetweenReadyAndJoinedIsTold) {
  malleable(1);
  start_processes(5, 2);
  hello(2, "app");
  hello(3, "app");
  at(1, 2, event::ProcessReady{RequestId{5}});
  at(1, 3, event::ProcessReady{RequestId{5}});
  EXPECT_EQ(at(2, 2, event::Lost{}), Lines{"1 PROCESSES_READY 5 failed: a joining process ended before it had joined"})
      << "the other may be joining: nobody kills it";
  EXPECT_EQ(at(3, 0, event::ProcessFailed{RequestId{5}, AppId{1}, "signal 9"}), Lines{});
}

TEST_F(ResizingTest, WhoIsNotWantedIsStopped) {
  malleable(1);
  start_processes(5, 2);
  EXPECT_EQ(at(1, 1, event::StopProcesses{RequestId{4}, {}}), Lines{});
  EXPECT_EQ(at(1, 1, event::StopProcesses{RequestId{5}, {}}), Lines{"0 STOP_PROCESSES 5 app 1"});
  start_processes(6, 2);
  EXPECT_EQ(at(1, 1, record(0, false, 1, 3)), Lines{"0 STOP_PROCESSES 6 app 1"});
  start_processes(7, 2);
  EXPECT_EQ(at(1, 1, event::Lost{}), Lines{"0 STOP_PROCESSES 7 app 1"});
  EXPECT_EQ(coordinator.deadline(), std::nullopt);
}

TEST_F(ResizingTest, OnlyTheCommandingMemberStartsProcesses) {
  malleable(1);
  hello(2, "app");
  EXPECT_EQ(
      at(1, 2, event::StartProcesses{RequestId{1}, 1, "port", 1, {}, {}}),
      Lines{"2 PROCESSES_READY 1 failed: START_PROCESSES of a member that did not send the last MALLEABLE: only that "
            "member may send it"});
  EXPECT_EQ(start_processes(1, 0),
            Lines{"1 PROCESSES_READY 1 failed: 0 processes cannot be started: ask for 1 to 4096"});
  start_processes(2, 1);
  EXPECT_THAT(start_processes(3, 1).at(0), ::testing::HasSubstr("are being started for request 2 already"));
}

}  // namespace
}  // namespace hocket::coordinator
