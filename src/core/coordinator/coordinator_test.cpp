// Tests the coordinator case by case. Random and hostile orders: coordinator_property_test.cpp.
#include "coordinator/coordinator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/arbitration/request_states.hpp"
#include "coordinator/script_testing.hpp"

namespace hocket::coordinator {
namespace {

using testing::Lines;

class CoordinatorTest : public testing::AccessScript {};

TEST_F(CoordinatorTest, WelcomesMembersOfOneJobAsOneApplication) {
  EXPECT_EQ(hello(1, "job-a", "jacobi"), Lines{"1 WELCOME app 1 jacobi fcfs"});
  EXPECT_EQ(hello(2, "job-a", "jacobi"), Lines{"2 WELCOME app 1 jacobi fcfs"});
  EXPECT_EQ(hello(3, "job-b", "jacobi"), Lines{"3 WELCOME app 2 jacobi-2 fcfs"});
  EXPECT_EQ(hello(1, "job-a", "jacobi"), Lines{"1 WELCOME app 1 jacobi fcfs"}) << "said again";
  at(1, 1, event::Bye{});
  at(1, 2, event::Lost{});
  EXPECT_EQ(hello(4, "job-c", "jacobi"), Lines{"4 WELCOME app 3 jacobi fcfs"}) << "the name is free again";
}

// Reported: first that no period fits, then that policies leave the application alone.
TEST_F(CoordinatorTest, SaysThatAnApplicationHasNoPeriod) {
  hello(1, "job-a");
  at(0, 0, event::SetPolicy{"fcfs+phase-shift"});
  std::int64_t start = 1000;
  const auto phase = [&](std::int64_t index, std::int64_t gap) {
    start += 1000 + gap;
    event::IoPhase said;
    said.index = index;
    said.start = Time{} + std::chrono::milliseconds{start};
    said.end = said.start + std::chrono::milliseconds{1000};
    said.io = std::chrono::milliseconds{1000};
    said.target = "dev:8:1";
    return at(start + 1000, 1, said);
  };
  Lines told;
  std::int64_t index = 0;
  for (; index < 40; ++index) {
    for (const std::string& line : phase(index, index * index * 7919 % 20011)) told.push_back(line);
  }
  EXPECT_EQ(told, (Lines{"0 MODEL app irregular", "0 DECISION 1 phase-shift leave app 4 to 4"}));
  EXPECT_EQ(coordinator.describe(coordinator.cluster().applications().at(AppId{1}), {}).model, "irregular");
  told.clear();
  for (; index < 80; ++index) {
    for (const std::string& line : phase(index, 5000)) told.push_back(line);
  }
  EXPECT_EQ(told, Lines{"0 MODEL app regular"});
}

TEST_F(CoordinatorTest, AToolIsNoApplication) {
  EXPECT_EQ(at(0, 9, event::Hello{"", "hocket ls", "", "", "0.1", 5, 0}), Lines{"9 WELCOME app 0  fcfs"});
  EXPECT_TRUE(coordinator.cluster().applications().empty());
  EXPECT_EQ(start(1, 9, 1),
            Lines{"9 REFUSED START_IO of a member that belongs to no application: send HELLO with 'mpi' "
                  "before it"});
}

TEST_F(CoordinatorTest, AMemberThatReturnsAloneIsANewApplication) {
  hello(1, "job-a");
  hello(2, "job-a");
  at(1, 1, event::Lost{});
  EXPECT_EQ(hello(3, "job-a"), Lines{"3 WELCOME app 1 app fcfs"}) << "the application went on";
  at(2, 2, event::Lost{});
  at(2, 3, event::Lost{});
  EXPECT_EQ(hello(4, "job-a"), Lines{"4 WELCOME app 2 app fcfs"});
  EXPECT_EQ(start(3, 4, 57), Lines{"4 GRANT_IO 57 waited 0"}) << "its requests are counted on from before";
}

TEST_F(CoordinatorTest, GrantsOneApplicationAtATime) {
  for (const std::uint64_t m : {1u, 2u, 3u})
    hello(m, "job" + std::to_string(m), std::string(1, static_cast<char>('a' + m - 1)));
  EXPECT_EQ(start(10, 1, 1), Lines{"1 GRANT_IO 1 waited 0"});
  EXPECT_EQ(start(20, 2, 1), Lines{"2 QUEUED_IO 1 position 1 behind a"});
  EXPECT_EQ(start(30, 3, 1), Lines{"3 QUEUED_IO 1 position 2 behind a"});
  EXPECT_EQ(finish(50, 1, 1), Lines{"2 GRANT_IO 1 waited 30"});
  EXPECT_EQ(start(60, 1, 2), Lines{"1 QUEUED_IO 2 position 2 behind b"});
  EXPECT_EQ(finish(70, 2, 1), Lines{"3 GRANT_IO 1 waited 40"});
  EXPECT_EQ(finish(80, 3, 1), Lines{"1 GRANT_IO 2 waited 20"});
  EXPECT_EQ(finish(90, 1, 2), Lines{});
  EXPECT_EQ(coordinator.deadline(), std::nullopt);
}

TEST_F(CoordinatorTest, TargetsAreIndependent) {
  hello(1, "a");
  hello(2, "b");
  EXPECT_EQ(start(1, 1, 1, "dev:8:1"), Lines{"1 GRANT_IO 1 waited 0"});
  EXPECT_EQ(start(1, 2, 1, "dev:8:2"), Lines{"2 GRANT_IO 1 waited 0"});
}

TEST_F(CoordinatorTest, AnApplicationDoesNotExcludeItself) {
  hello(1, "a");
  hello(2, "a");
  hello(3, "b");
  EXPECT_EQ(start(1, 1, 1), Lines{"1 GRANT_IO 1 waited 0"});
  EXPECT_EQ(start(2, 3, 1), Lines{"3 QUEUED_IO 1 position 1 behind app"});
  EXPECT_EQ(start(3, 1, 2), Lines{"1 GRANT_IO 2 waited 0"});
  EXPECT_EQ(start(4, 2, 1), Lines{"2 GRANT_IO 1 waited 0"}) << "another member of the application";
  EXPECT_EQ(finish(5, 1, 1), Lines{});
  EXPECT_EQ(finish(6, 2, 1), Lines{});
  EXPECT_EQ(start(7, 1, 3), Lines{"1 GRANT_IO 3 waited 0"});
  EXPECT_EQ(start(7, 2, 2), Lines{"2 GRANT_IO 2 waited 0"});
  EXPECT_EQ(finish(8, 1, 2), Lines{});
  EXPECT_EQ(finish(8, 1, 3), Lines{});
  EXPECT_EQ(finish(9, 2, 2), Lines{"3 GRANT_IO 1 waited 7"});
  start(10, 1, 4);
  start(11, 2, 3);
  EXPECT_EQ(finish(12, 3, 1), (Lines{"1 GRANT_IO 4 waited 2", "2 GRANT_IO 3 waited 1"})) << "all that it waits with";
}

TEST_F(CoordinatorTest, KeepsTheTargetBetweenTheOperationsOfAPhase) {
  hello(1, "a");
  hello(2, "b");
  start(0, 1, 1);
  start(5, 2, 1);
  EXPECT_EQ(finish(10, 1, 1, false), Lines{});
  EXPECT_EQ(deadline_ms(), 110);
  EXPECT_EQ(start(50, 1, 2), Lines{"1 GRANT_IO 2 waited 0"});
  EXPECT_EQ(finish(100, 1, 2, false), Lines{});
  EXPECT_EQ(tick(199), Lines{});
  EXPECT_EQ(tick(200), Lines{"2 GRANT_IO 1 waited 195"});
  EXPECT_EQ(start(210, 1, 3), Lines{"1 QUEUED_IO 3 position 1 behind app-2"});
}

TEST_F(CoordinatorTest, APhaseWithoutEndHoldsTheFirstInTheQueueUpForOneTurn) {
  hello(1, "job-a", "a");
  hello(2, "job-b", "b");
  start(0, 1, 1);
  EXPECT_EQ(start(500, 2, 1), Lines{"2 QUEUED_IO 1 position 1 behind a"});
  std::uint64_t request = 1;
  for (std::int64_t ms = 1000; ms < 3500; ms += 100) {
    EXPECT_EQ(finish(ms, 1, request, false), Lines{}) << "kept at " << ms;
    ++request;
    EXPECT_EQ(start(ms + 10, 1, request), Lines{"1 GRANT_IO " + std::to_string(request) + " waited 0"}) << ms;
  }
  EXPECT_EQ(finish(3510, 1, request, false), Lines{"2 GRANT_IO 1 waited 3010"}) << "b has waited for 3 s";
  ++request;
  EXPECT_EQ(start(3520, 1, request), (Lines{"1 QUEUED_IO " + std::to_string(request) + " position 1 behind b"}));
  EXPECT_EQ(finish(3600, 2, 1), (Lines{"1 GRANT_IO " + std::to_string(request) + " waited 80"}));
}

TEST_F(CoordinatorTest, AfterATurnOverlappingOperationsQueueToo) {
  hello(1, "job-a", "a");
  hello(2, "job-b", "b");
  start(0, 1, 1);
  start(10, 2, 1);
  EXPECT_EQ(start(3020, 1, 2), Lines{"1 QUEUED_IO 2 position 2 behind a"}) << "operation 1 still runs";
  EXPECT_EQ(finish(3100, 1, 1, false), Lines{"2 GRANT_IO 1 waited 3090"});
  EXPECT_EQ(finish(3200, 2, 1), Lines{"1 GRANT_IO 2 waited 180"});
}

TEST_F(CoordinatorTest, AKeptTargetNeedsNoTickWhileNobodyWaits) {
  hello(1, "a");
  hello(2, "b");
  start(0, 1, 1);
  finish(10, 1, 1, false);
  EXPECT_EQ(coordinator.deadline(), std::nullopt);
  EXPECT_EQ(start(50, 2, 1), Lines{"2 QUEUED_IO 1 position 1 behind app"}) << "still kept";
  EXPECT_EQ(deadline_ms(), 110);
  EXPECT_EQ(tick(110), Lines{"2 GRANT_IO 1 waited 60"});
  finish(120, 2, 1, false);
  EXPECT_EQ(start(300, 1, 2), Lines{"1 GRANT_IO 2 waited 0"}) << "no longer kept";
  EXPECT_EQ(coordinator.cluster().find_target("dev:8:1")->holders.size(), 1u);
}

TEST_F(CoordinatorTest, TheEndOfAPhaseFreesAKeptTarget) {
  hello(1, "a");
  hello(2, "b");
  start(0, 1, 1);
  start(5, 2, 1);
  finish(10, 1, 1, false);
  event::IoPhase phase;
  phase.end = time_from_ns(10'000'000);
  EXPECT_EQ(at(20, 1, phase), Lines{"2 GRANT_IO 1 waited 15"});
}

TEST_F(CoordinatorTest, WhoDoesNotRenewLosesTheGrant) {
  hello(1, "a", "slow");
  hello(2, "b");
  start(0, 1, 1);
  start(1000, 2, 1);
  at(5000, 1, event::RenewIo{RequestId{1}});
  EXPECT_EQ(tick(10000), Lines{"2 QUEUED_IO 1 position 1 behind slow"});
  at(14000, 2, event::RenewIo{RequestId{1}});  // a waiting request has no lease to renew
  EXPECT_EQ(tick(15000), (Lines{"1 LEASE_EXPIRED 1 slow dev:8:1", "2 GRANT_IO 1 waited 14000"}));
  EXPECT_EQ(finish(16000, 1, 1), Lines{}) << "the old holder's end is harmless";
  EXPECT_EQ(at(16000, 1, event::RenewIo{RequestId{1}}), Lines{});
  EXPECT_EQ(start(17000, 1, 2), Lines{"1 QUEUED_IO 2 position 1 behind app"});
  EXPECT_EQ(deadline_ms(), 18000) << "the reminder comes before the end of the lease";
  EXPECT_EQ(finish(18000, 2, 1), Lines{"1 GRANT_IO 2 waited 1000"});
}

TEST_F(CoordinatorTest, WhatAMemberDoesOnATargetRenewsItsLeasesThere) {
  hello(1, "a");
  start(0, 1, 1);
  EXPECT_EQ(deadline_ms(), 10000);
  start(4000, 1, 2);
  EXPECT_EQ(deadline_ms(), 14000);
  start(5000, 1, 3, "other");
  EXPECT_EQ(deadline_ms(), 14000);
  finish(6000, 1, 2);
  finish(6000, 1, 3);
  EXPECT_EQ(deadline_ms(), 16000);
}

TEST_F(CoordinatorTest, WhoWaitsIsRemindedWithItsPosition) {
  hello(1, "a", "first");
  hello(2, "b");
  hello(3, "c");
  start(0, 1, 1);
  start(100, 2, 1);
  start(200, 3, 1);
  EXPECT_EQ(deadline_ms(), 1100);
  EXPECT_EQ(tick(1100), (Lines{"2 QUEUED_IO 1 position 1 behind first", "3 QUEUED_IO 1 position 2 behind first"}));
  EXPECT_EQ(deadline_ms(), 2100);
  finish(1500, 2, 1);
  EXPECT_EQ(tick(2100), Lines{"3 QUEUED_IO 1 position 1 behind first"});
}

TEST_F(CoordinatorTest, TheLostGiveBackEverythingAtOnce) {
  for (const std::uint64_t m : {1u, 2u, 3u, 4u}) hello(m, "job" + std::to_string(m));
  start(0, 1, 1);
  start(0, 1, 2, "other");
  start(1, 2, 1);
  start(2, 3, 1);
  start(3, 4, 1, "other");
  at(4, 2, event::Lost{"killed"});
  EXPECT_EQ(at(5, 1, event::Lost{"killed"}), (Lines{"3 GRANT_IO 1 waited 3", "4 GRANT_IO 1 waited 2"}));
  EXPECT_EQ(at(6, 1, event::Lost{"killed"}), Lines{});
  EXPECT_EQ(coordinator.cluster().applications().size(), 2u);
}

TEST_F(CoordinatorTest, WhatIsKeptGoesWithTheApplication) {
  hello(1, "a");
  hello(2, "b");
  start(0, 1, 1);
  finish(1, 1, 1, false);
  start(2, 2, 1);
  EXPECT_EQ(at(3, 1, event::Bye{}), Lines{"2 GRANT_IO 1 waited 1"});
}

TEST_F(CoordinatorTest, AQueuedRequestCanBeGivenUp) {
  for (const std::uint64_t m : {1u, 2u, 3u}) hello(m, "job" + std::to_string(m));
  start(0, 1, 1);
  start(1, 2, 1);
  start(2, 3, 1);
  EXPECT_EQ(finish(3, 2, 1), Lines{});
  EXPECT_EQ(finish(4, 1, 1), Lines{"3 GRANT_IO 1 waited 2"});
}

TEST_F(CoordinatorTest, InterfereReleasesAllWhoWait) {
  for (const std::uint64_t m : {1u, 2u, 3u}) hello(m, "job" + std::to_string(m));
  start(0, 1, 1);
  start(1, 2, 1);
  start(2, 3, 1);
  EXPECT_EQ(at(10, 9, event::SetPolicy{"interfere"}), (Lines{"2 GRANT_IO 1 waited 9", "3 GRANT_IO 1 waited 8"}));
  EXPECT_EQ(coordinator.policies().access->name, "interfere");
  EXPECT_EQ(at(11, 9, event::SetPolicy{"fcfs"}), Lines{});
  EXPECT_EQ(finish(12, 1, 1), Lines{});
  EXPECT_EQ(start(13, 1, 2), Lines{"1 QUEUED_IO 2 position 1 behind app-2"}) << "until both are done";
  EXPECT_EQ(finish(14, 2, 1), Lines{});
  EXPECT_EQ(finish(15, 3, 1), Lines{"1 GRANT_IO 2 waited 2"});
}

TEST_F(CoordinatorTest, RefusesWhatCannotBe) {
  EXPECT_EQ(start(0, 1, 1).at(0).substr(0, 19), "1 REFUSED START_IO ");
  hello(1, "a");
  start(1, 1, 5);
  EXPECT_EQ(start(2, 1, 5),
            Lines{"1 REFUSED START_IO: request 5 is not above 5, the last one: count requests upwards"});
  finish(3, 1, 5);
  EXPECT_EQ(start(4, 1, 5).size(), 1u);
  EXPECT_EQ(start(4, 1, 0).at(0).substr(0, 10), "1 REFUSED ");
  EXPECT_EQ(at(5, 9, event::SetPolicy{"fcsf"}).at(0).substr(0, 59),
            "9 REFUSED unknown policy 'fcsf': did you mean 'fcfs'? there");
  for (std::uint64_t request = 6; request < 6 + 1024; ++request) start(6, 1, request);
  EXPECT_EQ(start(7, 1, 6 + 1024).at(0).substr(0, 43), "1 REFUSED START_IO: request 1030 is one too");
}

TEST_F(CoordinatorTest, IgnoresWhatItDoesNotKnow) {
  hello(1, "a");
  EXPECT_EQ(finish(1, 1, 1), Lines{});
  EXPECT_EQ(finish(1, 7, 1), Lines{});
  EXPECT_EQ(at(1, 7, event::RenewIo{RequestId{1}}), Lines{});
  EXPECT_EQ(at(1, 7, event::IoPhase{}), Lines{});
  EXPECT_EQ(at(1, 7, event::Bye{}), Lines{});
  EXPECT_EQ(at(1, 1, event::GrantIo{RequestId{1}, {}, "dev:8:1"}), Lines{});
  EXPECT_EQ(at(1, 1, event::User{"MINE", {}}), Lines{});
  EXPECT_EQ(coordinator.events(), 8);
}

TEST_F(CoordinatorTest, TimeDoesNotGoBack) {
  hello(1, "a");
  hello(2, "b");
  start(1000, 1, 1);
  start(500, 2, 1);
  EXPECT_EQ(finish(100, 1, 1), Lines{"2 GRANT_IO 1 waited 0"});
  EXPECT_EQ(deadline_ms(), 11000);
  event::Event late = testing::event_of(0, 0, event::Tick{});
  late.time = Time::max();
  EXPECT_EQ(handle(late), Lines{"2 LEASE_EXPIRED 1 app-2 dev:8:1"});
  late.time = Time::min();
  coordinator.handle(late);
  EXPECT_EQ(start(2000, 1, 2), Lines{"1 GRANT_IO 2 waited 0"});
  EXPECT_GT(coordinator.deadline(), time_from_ns(0));
}

TEST_F(CoordinatorTest, DescribesAnApplication) {
  hello(1, "job-a", "jacobi");
  for (int i = 0; i < 4; ++i) {
    event::IoPhase phase;
    phase.index = i;
    phase.start = time_from_ns((i * 1000 + 100) * 1'000'000LL);
    phase.end = phase.start + std::chrono::milliseconds{250};
    phase.io = std::chrono::milliseconds{200};
    phase.wait = std::chrono::milliseconds{50};
    phase.cpu = std::chrono::milliseconds{600};
    phase.comm = std::chrono::milliseconds{150};
    phase.bytes_written = 1000;
    at(i * 1000 + 400, 1, phase);
    at(i * 1000 + 401, 1, phase);  // reported twice, counted once
  }
  start(3900, 1, 1, "dev:8:3");
  const model::Application& application = coordinator.cluster().applications().at(AppId{1});
  const event::Application row = coordinator.describe(application, time_from_ns(3'950'000'000));
  EXPECT_EQ(row.application, "jacobi");
  EXPECT_EQ(row.job, "job-a");
  EXPECT_EQ(row.program, "/bin/jacobi");
  EXPECT_EQ(row.mpi, "mpich");
  EXPECT_EQ(row.node, "node1");
  EXPECT_EQ(row.processes, 4);
  EXPECT_EQ(row.state, "io");
  EXPECT_EQ(row.since, time_from_ns(3'900'000'000));
  EXPECT_EQ(row.target, "dev:8:3");
  EXPECT_EQ(row.phases, 4);
  EXPECT_EQ(row.period, std::chrono::seconds{1});
  EXPECT_EQ(row.period_spread, Duration{});
  EXPECT_EQ(row.duration, std::chrono::milliseconds{200});
  EXPECT_DOUBLE_EQ(row.io_ratio, 0.2);
  EXPECT_EQ(row.io, std::chrono::milliseconds{800});
  EXPECT_EQ(row.wait, std::chrono::milliseconds{200});
  EXPECT_EQ(row.bytes_written, 4000);
  EXPECT_EQ(row.last_io_start, time_from_ns(3'100'000'000));
  EXPECT_EQ(row.last_io_end, time_from_ns(3'350'000'000));
  EXPECT_EQ(row.next_start, time_from_ns(4'100'000'000));
}

TEST_F(CoordinatorTest, ReportsOfOneProcessCountAsBusyTimeAndAreNoPhase) {
  hello(1, "job-a");
  at(0, 2, event::Hello{"job-a", "app", "/bin/app", "mpich", "0.1", 100, 0});
  hello(3, "job-b", "other");
  event::IoPhase phase;
  phase.start = phase.end = time_from_ns(1'000'000'000);
  phase.end += std::chrono::milliseconds{300};
  phase.io = std::chrono::milliseconds{200};
  phase.wait = std::chrono::milliseconds{100};
  phase.cpu = std::chrono::milliseconds{700};
  phase.bytes_written = 1000;
  start(1100, 1, 1);
  at(1300, 1, phase);
  finish(1350, 1, 1, false);
  start(1360, 3, 1);

  event::IoPhase own = phase;
  own.of_one_process = true;
  own.io_intervals = "0:300000000";
  own.cpu = std::chrono::milliseconds{500};
  EXPECT_EQ(at(1370, 2, own), Lines{}) << "it is no end of a phase: the target stays kept";
  const model::Application& application = coordinator.cluster().applications().at(AppId{1});
  const event::Application row = coordinator.describe(application, time_from_ns(1'400'000'000));
  EXPECT_EQ(row.phases, 1);
  EXPECT_EQ(row.duration, std::chrono::milliseconds{200});
  EXPECT_EQ(row.io, std::chrono::milliseconds{300});
  EXPECT_EQ(row.wait, Duration{}) << "one of the two was in I/O while the other waited";
  EXPECT_EQ(row.bytes_written, 2000);
  EXPECT_EQ(row.cpu, std::chrono::milliseconds{600});
  EXPECT_EQ(row.cpu_most, std::chrono::milliseconds{700});
}

TEST(RequestStates, AreAsTheTableSays) {
  using model::RequestState;
  using A = RequestAction;
  using I = RequestInput;
  EXPECT_EQ(action_of(RequestState::queued, I::grant), A::grant);
  EXPECT_EQ(action_of(RequestState::queued, I::finish), A::withdraw);
  EXPECT_EQ(action_of(RequestState::queued, I::renew), A::ignore);
  EXPECT_EQ(action_of(RequestState::queued, I::expire), A::ignore);
  EXPECT_EQ(action_of(RequestState::queued, I::leave), A::withdraw);
  EXPECT_EQ(action_of(RequestState::granted, I::grant), A::ignore);
  EXPECT_EQ(action_of(RequestState::granted, I::finish), A::release);
  EXPECT_EQ(action_of(RequestState::granted, I::renew), A::renew);
  EXPECT_EQ(action_of(RequestState::granted, I::expire), A::revoke);
  EXPECT_EQ(action_of(RequestState::granted, I::leave), A::revoke);
}

TEST_F(CoordinatorTest, WhoIsGrantedBesideOthersIsToldItsShare) {
  at(0, 9, event::SetPolicy{"set-10"});
  hello(1, "job-a");
  hello(2, "job-b");
  EXPECT_EQ(start(10'000, 1, 1), Lines{"1 GRANT_IO 1 waited 0"});
  const Lines told = start(100'000, 2, 1);
  EXPECT_EQ(std::count(told.begin(), told.end(), "1 GRANT_IO 1 waited 0 share 0.91"), 1);
  EXPECT_EQ(std::count(told.begin(), told.end(), "2 GRANT_IO 1 waited 0 share 0.09"), 1);
  const Lines ended = finish(100'001, 1, 1);
  EXPECT_EQ(std::count(ended.begin(), ended.end(), "2 GRANT_IO 1 waited 0"), 1) << "all of it";
}

TEST_F(CoordinatorTest, NoShareOutlivesThePolicyThatGaveIt) {
  at(0, 9, event::SetPolicy{"set-10"});
  hello(1, "job-a");
  hello(2, "job-b");
  start(10'000, 1, 1);
  start(100'000, 2, 1);
  const Lines told = at(100'001, 9, event::SetPolicy{"fcfs"});
  EXPECT_EQ(std::count(told.begin(), told.end(), "1 GRANT_IO 1 waited 0"), 1);
  EXPECT_EQ(std::count(told.begin(), told.end(), "2 GRANT_IO 1 waited 0"), 1);
}

// The time slice ends with the operations then under way, however the application's processes alternate.
TEST_F(CoordinatorTest, OperationsThatOverlapDoNotKeepATargetForEver) {
  hello(1, "job-a");
  hello(2, "job-a");
  hello(3, "job-b");
  start(0, 1, 1);
  start(10, 3, 1);
  start(2000, 2, 1);
  finish(3500, 1, 1, false);
  EXPECT_EQ(start(3600, 1, 2), Lines{"1 QUEUED_IO 2 position 2 behind app"});
  const Lines told = tick(4600);
  EXPECT_EQ(std::count(told.begin(), told.end(), "1 GRANT_IO 2 waited 1000"), 1) << "the second may need it";
  finish(4700, 2, 1, false);
  start(4800, 2, 2);
  tick(5800);
  EXPECT_EQ(finish(6000, 1, 2, false).front(), "3 GRANT_IO 1 waited 5990");
}

// A member that waits for its own request cannot end the operation that it has.
TEST_F(CoordinatorTest, AMemberThatHasTheTargetIsNotHeldUpThoughOthersWereOverdueBefore) {
  for (const int app : {1, 2, 3}) hello(app, "job-" + std::to_string(app));
  start(0, 1, 1);
  start(10, 2, 1);
  start(20, 3, 1);
  EXPECT_EQ(finish(4000, 1, 1).front(), "2 GRANT_IO 1 waited 3990");
  EXPECT_EQ(start(4001, 2, 2), Lines{"2 QUEUED_IO 2 position 2 behind app-2"});
  Lines told = tick(5001);
  EXPECT_EQ(std::count(told.begin(), told.end(), "2 GRANT_IO 2 waited 1000"), 1);
  finish(5100, 2, 1, false);
  start(5200, 2, 3);
  EXPECT_EQ(deadline_ms(), 6001) << "reminders";
  told = tick(10'200);
  EXPECT_EQ(std::count(told.begin(), told.end(), "2 GRANT_IO 3 waited 5000"), 1) << "beside what began late, too";
  finish(10'300, 2, 2, false);
  EXPECT_EQ(finish(10'400, 2, 3, false).front(), "3 GRANT_IO 1 waited 10380");
}

// No IO_PHASE reports the phase of a step: its FINISH_IO does.
TEST_F(CoordinatorTest, APhaseIsOverWhereItsLastOperationSaysSo) {
  at(0, 9, event::SetPolicy{"interrupt"});
  hello(1, "job-a");
  hello(2, "job-b");
  start(1, 1, 1);
  finish(2, 1, 1);
  start(3, 1, 2);
  start(10, 2, 1);
  const Lines told = at(20, 1, event::PausedIo{RequestId{2}});
  EXPECT_EQ(told, Lines{"2 GRANT_IO 1 waited 10"});
  finish(30, 2, 1);
  EXPECT_EQ(coordinator.cluster().applications().begin()->second.demand.interruptions, 1);
  finish(40, 1, 2);
  start(50, 1, 3);
  EXPECT_EQ(coordinator.cluster().applications().begin()->second.demand.interruptions, 0);
}

// A step ends, and what was prepared is complete later.
TEST_F(CoordinatorTest, AFinishedStepKeepsTheTargetUntilWhatWasPreparedIsComplete) {
  hello(1, "job-a");
  hello(2, "job-b");
  event::InformIo over;
  over.phase_over = true;
  EXPECT_EQ(at(0, 1, over), Lines{}) << "no phase";
  start(1, 1, 1);
  start(2, 2, 1);
  EXPECT_EQ(at(3, 1, over), Lines{}) << "another member may have begun the next phase";
  EXPECT_EQ(finish(10, 1, 1, false), Lines{}) << "idle hold";
  EXPECT_EQ(start(20, 1, 2), Lines{"1 GRANT_IO 2 waited 0"}) << "the next file";
  EXPECT_EQ(finish(30, 1, 2, false), Lines{});
  EXPECT_EQ(at(35, 1, over), Lines{"2 GRANT_IO 1 waited 33"});
  start(40, 1, 3);
  EXPECT_EQ(coordinator.cluster().applications().begin()->second.demand.since, time_from_ns(40'000'000)) << "a new one";
}

// An inner level knows more, so the policy decides anew.
TEST_F(CoordinatorTest, WhatIsInformedDuringAPhaseIsDecidedUpon) {
  static const policy::Policy by_files{
      "by-files", "", [](const policy::View& view, const event::Event&) {
        policy::AccessDecision decision;
        if (view.target.holders.empty())
          decision.grants = {{view.target.waiting.front().member, view.target.waiting.front().id}};
        for (const model::Holder& holder : view.target.holders)
          if (holder.application->demand.files > 1 && !holder.pausing)
            decision.interruptions.push_back(holder.application->id);
        return decision;
      }};
  restart(testing::usual_settings(by_files));
  hello(1, "job-a");
  hello(2, "job-b");
  EXPECT_EQ(start(1, 1, 1), Lines{"1 GRANT_IO 1 waited 0"});
  start(2, 2, 1);
  const Lines told = at(3, 1, event::InformIo{1000, "files=4\n", 4});
  EXPECT_EQ(std::count(told.begin(), told.end(), "1 PAUSE_IO 1 because of app-2"), 1);
}

// Rank 0's collective may need just the process whose own access waits because of the pause.
TEST_F(CoordinatorTest, AnApplicationThatIsToPauseIsNotHeldUpByItsOwnRequests) {
  at(0, 9, event::SetPolicy{"interrupt"});
  hello(1, "job-a");
  hello(2, "job-a");
  hello(3, "job-b");
  start(1, 1, 1);
  start(2, 2, 1);
  const Lines told = start(10, 3, 1);
  EXPECT_EQ(std::count(told.begin(), told.end(), "1 PAUSE_IO 1 because of app-2"), 1);
  EXPECT_EQ(std::count(told.begin(), told.end(), "2 PAUSE_IO 1 because of app-2"), 1);
  EXPECT_EQ(at(20, 2, event::PausedIo{RequestId{1}}), Lines{});
  tick(1010);
  EXPECT_EQ(deadline_ms(), 1020);
  EXPECT_EQ(tick(1020), (Lines{"2 GRANT_IO 1 waited 1000", "2 PAUSE_IO 1 because of app-2"}));
  // The pause is still in force when the other process's request comes.
  EXPECT_EQ(at(1030, 2, event::PausedIo{RequestId{1}}), Lines{});
  EXPECT_EQ(finish(1035, 2, 1), Lines{});
  EXPECT_EQ(finish(1040, 1, 1), Lines{"3 GRANT_IO 1 waited 1030"});
}

class PolicyThatWaits : public testing::AccessScript {};

// A timer at each nanosecond would keep the daemon busy as long as a request waits.
TEST_F(PolicyThatWaits, IsNotAskedAgainAtOnce) {
  static const policy::Policy impatient{"impatient", "", [](const policy::View& view, const event::Event&) {
                                          policy::AccessDecision decision;
                                          decision.again = view.now + Duration{1};
                                          return decision;
                                        }};
  restart(testing::usual_settings(impatient));
  hello(1);
  start(5, 1, 1, "disk");
  Time now = *coordinator.deadline();
  for (int asked = 0; asked < 10; ++asked) {
    handle({now, {}, event::Tick{}});
    ASSERT_TRUE(coordinator.deadline());
    EXPECT_GE(*coordinator.deadline(), now + std::chrono::milliseconds{1});
    now = *coordinator.deadline();
  }
}

}  // namespace
}  // namespace hocket::coordinator
