// Tests delegations: an application that is alone on a target begins operations without a grant.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "coordinator/coordinator.hpp"
#include "coordinator/script_testing.hpp"
#include "event/applicant.hpp"

namespace hocket::coordinator {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Lines;

// Member 1 is of application a, 2 of b; 11 is another one of a. 3 is of c, which knows no delegations. An application
// gets a delegation after one second alone.
class DelegationTest : public testing::Script {
 protected:
  DelegationTest() { choose(policy::fcfs); }
  void choose(const policy::Policy& policy) {
    CoordinatorSettings settings = testing::usual_settings(policy);
    settings.delegate_after = std::chrono::seconds{1};
    settings.tell_waits = false;
    restart(settings);
    for (const std::uint64_t member : {1, 2, 11, 3}) {
      const std::string app{"abxxxxxxxxxa"[member == 11 ? 11 : member - 1]};
      event::Hello hello{"job-" + app, app, "/bin/" + app, "mpich", "0.1", 99, member == 11 ? 0 : 4};
      if (member == 3) hello.job = hello.application = "c";
      hello.delegations = member != 3;
      at(0, member, hello);
    }
  }
  // Member 1 gets a delegation with request 2, which ends at 2,010 ms.
  void delegate() {
    start(1, 1, 1);
    finish(10, 1, 1);
    ASSERT_EQ(start(2'000, 1, 2), Lines{"1 GRANT_IO 2 waited 0 delegated"});
    finish(2'010, 1, 2);
  }
  // A request that was begun under the delegation of request 2, `ago` before.
  Lines begun(std::int64_t ms, std::uint64_t member, std::uint64_t request, std::int64_t ago = 0,
              std::uint64_t delegation = 2) {
    event::StartIo start{RequestId{request}, "dev:8:1", "/f", "MPI_File_write_all", 10};
    start.delegation = RequestId{delegation};
    start.ago = milliseconds{ago};
    return at(ms, member, start);
  }
  Lines ended(std::int64_t ms, std::uint64_t member, std::uint64_t request, std::int64_t ago) {
    event::FinishIo finish{RequestId{request}};
    finish.ago = milliseconds{ago};
    return at(ms, member, finish);
  }
  Lines returns(std::int64_t ms, std::uint64_t member, std::uint64_t request) {
    return at(ms, member, event::ReturnIo{RequestId{request}});
  }
  const model::Application& application(std::string_view name) const {
    return *coordinator.cluster().find_application(std::string{name});
  }
};

TEST_F(DelegationTest, IsGivenToAnApplicationThatWasAloneForLongEnough) {
  EXPECT_EQ(start(1, 1, 1), Lines{"1 GRANT_IO 1 waited 0"});
  finish(10, 1, 1);
  EXPECT_EQ(start(1'000, 1, 2), Lines{"1 GRANT_IO 2 waited 0"});
  finish(1'000, 1, 2);
  EXPECT_EQ(start(1'001, 1, 3), Lines{"1 GRANT_IO 3 waited 0 delegated"});
  EXPECT_EQ(coordinator.describe(application("a"), Time{}).delegated, "dev:8:1");
  EXPECT_EQ(start(1'002, 1, 4), Lines{"1 GRANT_IO 4 waited 0"}) << "it has the delegation already";
  EXPECT_EQ(start(1'003, 11, 1), Lines{"11 GRANT_IO 1 waited 0 delegated"}) << "another member of the application";
}

TEST_F(DelegationTest, IsNotGivenToALibraryThatDoesNotKnowIt) {
  start(1, 3, 1);
  finish(2, 3, 1);
  EXPECT_EQ(start(5'000, 3, 2), Lines{"3 GRANT_IO 2 waited 0"});
}

TEST_F(DelegationTest, IsNotGivenWhereItIsTurnedOff) {
  restart(testing::usual_settings());
  event::Hello hello{"job", "a", "/bin/a", "mpich", "0.1", 99, 4};
  hello.delegations = true;
  at(0, 1, hello);
  start(1, 1, 1);
  finish(2, 1, 1);
  EXPECT_EQ(start(5'000, 1, 2), Lines{"1 GRANT_IO 2 waited 0"});
}

TEST_F(DelegationTest, TimeAloneBeginsAfterTheLastRequestOfAnother) {
  start(1, 2, 1);
  start(2, 1, 1);
  finish(3'000, 2, 1);
  finish(3'010, 1, 1);
  EXPECT_EQ(start(3'900, 1, 2), Lines{"1 GRANT_IO 2 waited 0"}) << "b had the target until 3,000 ms";
  finish(3'910, 1, 2);
  EXPECT_EQ(start(4'000, 1, 3), Lines{"1 GRANT_IO 3 waited 0 delegated"});
}

TEST_F(DelegationTest, ApplicationsThatAlternateGetNone) {
  for (std::int64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(start(i * 1'800 + 1, 1, i + 1), Lines{"1 GRANT_IO " + std::to_string(i + 1) + " waited 0"});
    finish(i * 1'800 + 500, 1, i + 1);
    EXPECT_EQ(start(i * 1'800 + 900, 2, i + 1), Lines{"2 GRANT_IO " + std::to_string(i + 1) + " waited 0"});
    finish(i * 1'800 + 1'400, 2, i + 1);
  }
}

TEST_F(DelegationTest, OperationsUnderItNeedNoAnswer) {
  delegate();
  EXPECT_THAT(begun(2'200, 1, 3, 150), IsEmpty());
  EXPECT_EQ(application("a").activity, model::Activity::io);
  EXPECT_EQ(application("a").since, Time{} + milliseconds{2'050}) << "when it began";
  EXPECT_THAT(ended(2'200, 1, 3, 50), IsEmpty());
  EXPECT_EQ(application("a").activity, model::Activity::computing);
  EXPECT_EQ(application("a").since, Time{} + milliseconds{2'150});
  EXPECT_EQ(application("a").accesses.last_end(), Time{} + milliseconds{2'150});
}

TEST_F(DelegationTest, NoLeaseRunsWhileNobodyElseAsks) {
  delegate();
  begun(2'200, 1, 3, 100);
  EXPECT_EQ(deadline_ms(), -1);
  EXPECT_THAT(tick(1'000'000), IsEmpty());
  EXPECT_EQ(start(1'000'001, 2, 1), (Lines{"1 RECALL_IO 2 because of b", "2 QUEUED_IO 1 position 1 behind a"}));
  EXPECT_EQ(deadline_ms(), 1'001'001) << "a reminder";
}

TEST_F(DelegationTest, AHolderThatComputesGivesTheTargetBackAtOnce) {
  delegate();
  EXPECT_EQ(start(3'000, 2, 1), (Lines{"1 RECALL_IO 2 because of b", "2 QUEUED_IO 1 position 1 behind a"}));
  EXPECT_EQ(returns(3'001, 1, 2), Lines{"2 GRANT_IO 1 waited 1"});
  EXPECT_EQ(start(3'002, 1, 3), Lines{"1 QUEUED_IO 3 position 1 behind b"}) << "as any other";
  EXPECT_EQ(finish(3'010, 2, 1), Lines{"1 GRANT_IO 3 waited 8"});
}

// A batch that was late on its way makes its events seem older than those of the batch before.
TEST_F(DelegationTest, EventsOfAMemberKeepTheirOrder) {
  delegate();
  ASSERT_EQ(start(2'100, 11, 1), Lines{"11 GRANT_IO 1 waited 0 delegated"});
  finish(2'110, 11, 1);
  begun(3'000, 1, 3, 100);
  ended(3'000, 1, 3, 190);
  tick(4'000);
  EXPECT_EQ(application("a").granted, 0);
  EXPECT_EQ(application("a").accesses.last_end(), Time{} + milliseconds{2'900});
}

TEST_F(DelegationTest, ATargetThatNobodyUsesAnyMoreIsGoneWithIt) {
  CoordinatorSettings settings = testing::usual_settings(policy::fcfs);
  settings.delegate_after = std::chrono::seconds{1};
  restart(settings);
  event::Hello hello{"job-a", "a", "/bin/a", "mpich", "0.1", 99, 4};
  hello.delegations = true;
  at(0, 1, hello);
  delegate();
  tick(60'000);  // its idle hold is over
  at(60'001, 9, event::SetPolicy{"interfere"});
  returns(60'002, 1, 2);
  EXPECT_EQ(coordinator.cluster().find_target("dev:8:1"), nullptr);
}

// What a member has begun under another delegation, which it still has, gets no lease that it does not know of.
TEST_F(DelegationTest, ARecallConcernsWhatWasBegunUnderItAlone) {
  choose(policy::interfere);
  const auto asks = [&](std::int64_t ms, std::uint64_t member, std::uint64_t request, const char* parts) {
    event::StartIo start{RequestId{request}, "dev:8:1", "/f", "MPI_File_write_all", 10};
    start.parts = parts;
    return at(ms, member, start);
  };
  choose(policy::fcfs);
  asks(1, 1, 1, "0");
  finish(2, 1, 1);
  ASSERT_EQ(asks(2'000, 1, 2, "0"), Lines{"1 GRANT_IO 2 waited 0 delegated"});
  finish(2'001, 1, 2);
  ASSERT_EQ(asks(2'002, 1, 3, "1"), Lines{"1 GRANT_IO 3 waited 0 delegated"});
  finish(2'003, 1, 3);
  EXPECT_THAT(begun(2'100, 1, 4, 10, 2), IsEmpty());
  asks(2'200, 2, 1, "1");
  EXPECT_EQ(returns(2'201, 1, 3), Lines{"2 GRANT_IO 1 waited 1"});
  finish(2'300, 2, 1);
  EXPECT_THAT(tick(100'000), IsEmpty()) << "no lease of request 4 has expired";
}

TEST_F(DelegationTest, AnIdleHoldGoesOn) {
  delegate();
  begun(2'060, 1, 3, 40);
  at(2'060, 1, event::FinishIo{RequestId{3}, {}, 0, false});
  start(2'100, 2, 1);
  EXPECT_THAT(returns(2'101, 1, 2), IsEmpty()) << "100 ms from the end of the access on";
  EXPECT_THAT(tick(2'159), IsEmpty());
  EXPECT_EQ(tick(2'160), Lines{"2 GRANT_IO 1 waited 60"});
}

TEST_F(DelegationTest, AnIdleHoldEndsWithThePhase) {
  delegate();
  begun(2'060, 1, 3, 40);
  at(2'060, 1, event::FinishIo{RequestId{3}, {}, 0, false});
  event::IoPhase phase;
  phase.end = Time{} + milliseconds{2'060};
  phase.ago = milliseconds{1};
  at(2'070, 1, phase);
  start(2'100, 2, 1);
  EXPECT_EQ(returns(2'101, 1, 2), Lines{"2 GRANT_IO 1 waited 1"});
}

TEST_F(DelegationTest, AnOperationUnderWayIsFinishedFirst) {
  delegate();
  EXPECT_EQ(start(3'000, 2, 1), (Lines{"1 RECALL_IO 2 because of b", "2 QUEUED_IO 1 position 1 behind a"}));
  EXPECT_THAT(begun(3'001, 1, 3, 500), IsEmpty());
  EXPECT_THAT(returns(3'001, 1, 2), IsEmpty());
  EXPECT_EQ(finish(3'100, 1, 3), Lines{"2 GRANT_IO 1 waited 100"});
}

TEST_F(DelegationTest, PoliciesSeeWhatWasBegun) {
  choose(policy::interrupt);
  delegate();
  start(3'000, 2, 1);
  begun(3'001, 1, 3, 500);
  EXPECT_THAT(returns(3'001, 1, 2),
              ElementsAre("1 PAUSE_IO 3 because of b", "0 DECISION 1 interrupt interrupt b 4 to 4"));
  EXPECT_EQ(at(3'002, 1, event::PausedIo{RequestId{3}, 5, 1}), Lines{"2 GRANT_IO 1 waited 2"});
  EXPECT_EQ(finish(3'050, 2, 1), Lines{"1 GRANT_IO 3 waited 48"});
}

TEST_F(DelegationTest, AHolderThatDoesNotAnswerLosesIt) {
  delegate();
  begun(2'900, 1, 3, 100);
  start(3'000, 2, 1);
  for (const std::int64_t ms : {4'000, 8'000, 12'000}) {
    EXPECT_THAT(tick(ms), ElementsAre("2 QUEUED_IO 1 position 1 behind a")) << "a reminder";
  }
  EXPECT_THAT(tick(13'000),
              ElementsAre("1 LEASE_EXPIRED 2 a dev:8:1", "1 LEASE_EXPIRED 3 a dev:8:1", "2 GRANT_IO 1 waited 10000"));
  EXPECT_THAT(begun(14'000, 1, 4, 3'000), IsEmpty()) << "what it had begun without knowing";
  EXPECT_THAT(finish(14'001, 1, 4), IsEmpty());
  EXPECT_THAT(returns(14'002, 1, 2), IsEmpty());
  EXPECT_EQ(start(14'003, 1, 5), Lines{"1 QUEUED_IO 5 position 1 behind b"});
}

// Whoever keeps sending, but does not give the delegation back, loses it as well.
TEST_F(DelegationTest, ALeaseIsNotRenewedAfterARecall) {
  delegate();
  start(3'000, 2, 1);
  begun(5'000, 1, 3);
  at(9'000, 1, event::RenewIo{RequestId{3}});
  at(9'000, 1, event::RenewIo{RequestId{2}});
  EXPECT_THAT(tick(13'000), ::testing::Contains("1 LEASE_EXPIRED 2 a dev:8:1"));
}

TEST_F(DelegationTest, AHolderThatDiesFreesTheTarget) {
  delegate();
  begun(2'900, 1, 3, 100);
  start(3'000, 2, 1);
  EXPECT_EQ(at(3'001, 1, event::Lost{"killed"}), Lines{"2 GRANT_IO 1 waited 1"});
}

TEST_F(DelegationTest, AnotherThatNoLongerAsksChangesNothing) {
  delegate();
  start(3'000, 2, 1);
  EXPECT_THAT(finish(3'001, 2, 1), IsEmpty());
  EXPECT_THAT(returns(3'002, 1, 2), IsEmpty());
  EXPECT_EQ(start(3'003, 1, 3), Lines{"1 GRANT_IO 3 waited 0"});
  finish(3'004, 1, 3);
  EXPECT_EQ(start(4'003, 1, 4), Lines{"1 GRANT_IO 4 waited 0 delegated"}) << "a second after the other's withdrawal";
}

TEST_F(DelegationTest, EachMemberGivesItsOwnBack) {
  delegate();
  EXPECT_EQ(start(2'500, 11, 1), Lines{"11 GRANT_IO 1 waited 0 delegated"});
  finish(2'510, 11, 1);
  EXPECT_EQ(start(3'000, 2, 1),
            (Lines{"1 RECALL_IO 2 because of b", "11 RECALL_IO 1 because of b", "2 QUEUED_IO 1 position 1 behind a"}));
  EXPECT_THAT(returns(3'001, 1, 2), IsEmpty());
  EXPECT_EQ(returns(3'002, 11, 1), Lines{"2 GRANT_IO 1 waited 2"});
}

TEST_F(DelegationTest, BatchesOfTwoMembersAreHandledInTheOrderOfTime) {
  delegate();
  start(2'500, 11, 1);
  finish(2'510, 11, 1);
  begun(2'800, 1, 3, 100);      // from 2,700 …
  ended(2'800, 1, 3, 20);       // … to 2,780
  begun(2'900, 11, 2, 250, 1);  // from 2,650 …
  ended(2'900, 11, 2, 160);     // … to 2,740
  EXPECT_EQ(application("a").activity, model::Activity::computing) << "nothing is handled yet";
  EXPECT_EQ(deadline_ms(), 2'650 + 500);
  tick(3'150);
  EXPECT_EQ(application("a").since, Time{} + milliseconds{2'650});
  EXPECT_EQ(application("a").activity, model::Activity::io);
  tick(3'280);
  EXPECT_EQ(application("a").since, Time{} + milliseconds{2'780}) << "one interval of I/O";
  EXPECT_EQ(application("a").activity, model::Activity::computing);
}

TEST_F(DelegationTest, WithTheLastAnswerEverythingIsKnown) {
  delegate();
  start(2'500, 11, 1);
  finish(2'510, 11, 1);
  begun(2'800, 1, 3, 100);
  start(2'850, 2, 1);
  returns(2'851, 1, 2);
  begun(2'852, 11, 2, 200, 1);
  EXPECT_EQ(returns(2'852, 11, 1), Lines{}) << "both are in an operation";
  EXPECT_EQ(application("a").granted, 2);
  EXPECT_THAT(finish(2'900, 1, 3), IsEmpty());
  EXPECT_EQ(finish(2'910, 11, 2), Lines{"2 GRANT_IO 1 waited 60"});
}

// Member 1 is in an operation at a recall, and has moved half of what its application has announced.
class HalfMoved : public DelegationTest {
 protected:
  // Returns the progress of the application, in seconds alone. `others`: another member has a delegation, too, so
  // events wait in the backlog.
  double progress(bool others) {
    choose(policy::fcfs);
    delegate();
    if (others) {
      start(2'500, 11, 1);
      finish(2'510, 11, 1);
    }
    start(2'850, 2, 1);
    event::StartIo operation{RequestId{3}, "dev:8:1", "/f", "MPI_File_write_all", 100};
    operation.delegation = RequestId{2};
    operation.ago = milliseconds{100};
    operation.phase_bytes = 100;
    at(2'851, 1, operation);
    at(2'851, 1, event::RenewIo{RequestId{3}, 50});
    returns(2'851, 1, 2);
    return application("a").demand.served_s;
  }
};

TEST_F(HalfMoved, IsKnownThoughAnotherMemberHasADelegation) {
  const double alone = progress(false);
  EXPECT_GT(alone, 0.4);
  EXPECT_LT(progress(true), alone / 2) << "it waits for the other answer";
  returns(2'851, 11, 1);
  EXPECT_DOUBLE_EQ(application("a").demand.served_s, alone);
}

TEST_F(HalfMoved, IsKnownThoughTheOtherMemberAnswersLate) {
  const double alone = progress(false);
  EXPECT_LT(progress(true), alone / 2);
  tick(2'851 + 500);
  EXPECT_DOUBLE_EQ(application("a").demand.served_s, alone);
}

TEST_F(DelegationTest, ANewPolicyRecalls) {
  delegate();
  EXPECT_EQ(at(3'000, 9, event::SetPolicy{"interfere"}), Lines{"1 RECALL_IO 2"});
  EXPECT_THAT(returns(3'001, 1, 2), IsEmpty());
  EXPECT_EQ(start(3'002, 1, 3), Lines{"1 GRANT_IO 3 waited 0 delegated"});
  event::SetPolicy for_target{"fcfs"};
  for_target.target = "dev:8:1";
  EXPECT_THAT(at(3'003, 9, for_target), ::testing::Contains("1 RECALL_IO 3"));
}

TEST_F(DelegationTest, RequestsForOtherPartsDoNotRecall) {
  const auto asks = [&](std::int64_t ms, std::uint64_t member, std::uint64_t request, const std::string& parts) {
    event::StartIo start{RequestId{request}, "lustre:x", "/f", "MPI_File_write_all", 10};
    start.parts = parts;
    return at(ms, member, start);
  };
  asks(1, 1, 1, "ost1");
  finish(2, 1, 1);
  EXPECT_EQ(asks(2'000, 1, 2, "ost1,ost2"), Lines{"1 GRANT_IO 2 waited 0 delegated"});
  finish(2'001, 1, 2);
  EXPECT_EQ(asks(2'002, 2, 1, "ost3"), Lines{"2 GRANT_IO 1 waited 0"});
  EXPECT_EQ(asks(2'003, 2, 2, "ost2"), (Lines{"1 RECALL_IO 2 because of b", "2 QUEUED_IO 2 position 1 behind a"}));
  EXPECT_EQ(returns(2'004, 1, 2), Lines{"2 GRANT_IO 2 waited 1"});
}

// a has one target and waits for the other, b the reverse: a delegation is no grant that makes a circle.
TEST_F(DelegationTest, ADelegationMakesNoDeadlock) {
  start(1, 2, 1, "other");
  delegate();
  EXPECT_EQ(start(3'000, 1, 3, "other"), Lines{"1 QUEUED_IO 3 position 1 behind b"});
  EXPECT_EQ(start(3'001, 2, 2), (Lines{"1 RECALL_IO 2 because of b", "2 QUEUED_IO 2 position 1 behind a"}));
  EXPECT_EQ(returns(3'002, 1, 2), Lines{"2 GRANT_IO 2 waited 1"});
}

TEST_F(DelegationTest, AWriteBackOfTheApplicationItselfDoesNotRecall) {
  delegate();
  EXPECT_EQ(start(3'000, 11, 1, "dev:8:1", 10, std::string{event::write_back}), Lines{"11 GRANT_IO 1 waited 0"});
  EXPECT_EQ(start(3'001, 2, 1), (Lines{"1 RECALL_IO 2 because of b", "2 QUEUED_IO 1 position 1 behind a"}));
  EXPECT_THAT(returns(3'002, 1, 2), IsEmpty()) << "the servers still store";
  EXPECT_EQ(finish(3'010, 11, 1), Lines{"2 GRANT_IO 1 waited 9"});
}

TEST_F(DelegationTest, WhatAMemberClaimsOfTimeIsBounded) {
  delegate();
  for (const std::int64_t ago : {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
    const std::uint64_t request = ago < 0 ? 3 : 4;
    event::StartIo start{RequestId{request}, "dev:8:1", "/f", "MPI_File_write_all", 10};
    start.delegation = RequestId{2};
    start.ago = Duration{ago};
    at(3'000, 1, start);
    EXPECT_GE(application("a").since, Time{} + milliseconds{2'010});
    EXPECT_LE(application("a").since, Time{} + milliseconds{3'000});
    event::FinishIo finish{RequestId{request}};
    finish.ago = Duration{ago};
    at(3'000, 1, finish);
    EXPECT_EQ(application("a").granted, 0);
  }
}

}  // namespace
}  // namespace hocket::coordinator
