// Tests the turns of I/O servers that store what an application wrote before: they are requests of the application, but
// no access of its program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "coordinator/coordinator.hpp"
#include "coordinator/script_testing.hpp"
#include "event/applicant.hpp"
#include "explain/explain.hpp"

namespace hocket::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Lines;

// Application a is member 1, b is member 2. The servers of a are members 11 and 12, one of b is member 21.
class WriteBackTest : public testing::AccessScript {
 protected:
  WriteBackTest() { choose(policy::fcfs); }
  void choose(const policy::Policy& policy) {
    restart(testing::usual_settings(policy));
    hello(1, "job-a", "a", 4);
    hello(2, "job-b", "b", 4);
    for (const std::uint64_t server : {11, 12, 21}) hello(server, server < 20 ? "job-a" : "job-b", "x", 0);
  }
  Lines stores(std::int64_t ms, std::uint64_t server, std::uint64_t request) {
    return start(ms, server, request, "dev:8:1", 1'000, std::string{event::write_back});
  }
  event::Application row(std::string_view name, std::int64_t ms) {
    for (const auto& [id, application] : coordinator.cluster().applications())
      if (application.name == name) return coordinator.describe(application, Time{} + std::chrono::milliseconds{ms});
    return {};
  }
};

TEST_F(WriteBackTest, TheTargetStaysWithTheWriterUntilAllIsStored) {
  start(0, 1, 1);
  EXPECT_EQ(stores(1, 11, 1), Lines{"11 GRANT_IO 1 waited 0"}) << "the application has the target";
  EXPECT_EQ(stores(2, 12, 1), Lines{"12 GRANT_IO 1 waited 0"});
  EXPECT_THAT(finish(3, 1, 1), IsEmpty());
  EXPECT_EQ(start(4, 2, 1), Lines{"2 QUEUED_IO 1 position 1 behind a"});
  EXPECT_THAT(finish(5, 11, 1), IsEmpty());
  EXPECT_EQ(finish(9, 12, 1), Lines{"2 GRANT_IO 1 waited 5"}) << "without an idle hold: the phase is over";
}

TEST_F(WriteBackTest, BetweenTwoAccessesAnIdleHoldFollows) {
  start(1, 1, 1);
  stores(1, 11, 1);
  finish(2, 1, 1, false);
  start(3, 2, 1);
  EXPECT_THAT(finish(10, 11, 1), IsEmpty());
  EXPECT_EQ(start(20, 1, 2), Lines{"1 GRANT_IO 2 waited 0"});
}

TEST_F(WriteBackTest, WhatNobodyWaitsForWaitsItsTurn) {
  start(0, 1, 1);
  EXPECT_THAT(stores(1, 21, 1), ElementsAre("21 QUEUED_IO 1 position 1 behind a", "0 DECISION 1 fcfs hold b 4 to 4"));
  EXPECT_EQ(start(2, 2, 1), Lines{"2 QUEUED_IO 1 position 2 behind a"}) << "its own access too";
  EXPECT_THAT(finish(7, 1, 1), ElementsAre("21 GRANT_IO 1 waited 6", "2 GRANT_IO 1 waited 5"));
}

TEST_F(WriteBackTest, TheProgramNeitherWaitsNorDoesIo) {
  start(0, 1, 1);
  stores(1, 21, 1);
  EXPECT_EQ(row("b", 5).state, "computing");
  EXPECT_EQ(row("b", 50).wait, Duration{});
  finish(10, 1, 1);
  EXPECT_EQ(row("b", 15).state, "computing");
  start(20, 2, 1);
  EXPECT_EQ(row("b", 21).state, "io");
  finish(30, 2, 1);
  EXPECT_EQ(row("b", 31).state, "computing") << "the server still stores";
}

// The phase of the program ends although its servers store: it is learned, and the next one begins anew.
TEST_F(WriteBackTest, ThePhaseOfTheProgramEndsWithoutIt) {
  start(0, 1, 1);
  stores(1, 11, 1);
  finish(100, 1, 1, false);
  event::IoPhase phase;
  phase.end = Time{} + std::chrono::milliseconds{100};
  phase.io = std::chrono::milliseconds{100};
  phase.operations = 1;
  phase.bytes_written = 1'000;
  phase.target = "dev:8:1";
  at(210, 1, phase);
  const auto& application = coordinator.cluster().applications().begin()->second;
  EXPECT_EQ(application.demand.since, Time{});
  EXPECT_GT(application.io.phase_s, 0);
  finish(900, 11, 1);
  EXPECT_EQ(application.demand.served_s, 0) << "what servers store is no progress of a phase";
}

TEST_F(WriteBackTest, AServerThatEndsOrIsSilentLosesItsTurn) {
  stores(0, 11, 1);
  start(1, 2, 1);
  EXPECT_EQ(at(5, 11, event::Lost{"ended"}), Lines{"2 GRANT_IO 1 waited 4"});
  finish(6, 2, 1);
  stores(7, 12, 1);
  start(8, 2, 2);
  EXPECT_THAT(tick(10'007), ElementsAre("12 LEASE_EXPIRED 1 a dev:8:1", "2 GRANT_IO 2 waited 9999"));
}

TEST_F(WriteBackTest, WhatTheServersOfADeadApplicationStoreKeepsItsTurn) {
  start(0, 1, 1);
  stores(1, 11, 1);
  start(2, 2, 1);
  EXPECT_THAT(at(3, 1, event::Lost{"killed"}), IsEmpty());
  EXPECT_EQ(at(8, 11, event::FinishIo{RequestId{1}}), Lines{"2 GRANT_IO 1 waited 6"});
}

TEST_F(WriteBackTest, ItIsPreemptedAsOneAndIsNoNewcomerItself) {
  choose(policy::interrupt);
  stores(0, 11, 1);
  const Lines told = start(1, 2, 1);
  EXPECT_THAT(told, ::testing::Contains("11 PAUSE_IO 1 because of b"));
  EXPECT_EQ(at(3, 11, event::PausedIo{RequestId{1}}), Lines{"2 GRANT_IO 1 waited 2"});
  for (const std::string& line : stores(4, 12, 1)) EXPECT_THAT(line, ::testing::Not(::testing::HasSubstr("PAUSE_IO")));
  const Lines freed = finish(9, 2, 1);
  EXPECT_THAT(freed, ::testing::Contains(::testing::HasSubstr("12 GRANT_IO 1")));
  EXPECT_THAT(freed, ::testing::Contains(::testing::HasSubstr("11 GRANT_IO 1")));
}

// Programs and servers ask, finish, pause, and go, in any order under each policy. Under fcfs nobody has the target
// beside another application. In the end nobody holds it or waits, and the counts of the programs are right throughout.
TEST(WriteBackProperty, NobodyIsLeftAndProgramsAreCountedAlone) {
  std::int64_t beside_own = 0;
  for (const policy::Policy* const policy :
       {&policy::fcfs, &policy::interrupt, &policy::dynamic, &policy::cost, &policy::interfere, &policy::set_10}) {
    for (std::uint64_t seed = 0; seed < 150; ++seed) {
      SCOPED_TRACE(std::string{policy->name} + " seed " + std::to_string(seed));
      std::mt19937_64 random{seed};
      Coordinator coordinator{testing::usual_settings(*policy)};
      struct Sender {
        bool here = false, server = false;
        std::uint64_t app = 0, last = 0;
        enum { none, queued, granted, told } standing = none;
      };
      std::map<std::uint64_t, Sender> senders;
      std::int64_t ms = 0;
      const auto run = [&](std::uint64_t member, event::Body body) {
        for (const Command& command : coordinator.handle(testing::event_of(ms, member, std::move(body)))) {
          const auto found = senders.find(command.to.value);
          if (found == senders.end()) continue;
          Sender& to = found->second;
          if (const auto* grant = std::get_if<event::GrantIo>(&command.body); grant && grant->request.value == to.last)
            to.standing = Sender::granted;
          if (std::holds_alternative<event::PauseIo>(command.body)) to.standing = Sender::told;
          if (std::holds_alternative<event::LeaseExpired>(command.body)) to.standing = Sender::none;
        }
        std::map<std::uint64_t, std::array<std::int64_t, 2>> counts;
        for (const auto& [id, one] : senders) {
          if (!one.here || one.server || one.standing == Sender::none) continue;
          ++counts[one.app][one.standing == Sender::queued ? 0 : 1];
        }
        for (const auto& [id, application] : coordinator.cluster().applications()) {
          const std::uint64_t app = application.job == "job-1" ? 1 : application.job == "job-2" ? 2 : 3;
          ASSERT_EQ(application.waiting, counts[app][0]) << "at " << ms;
          ASSERT_EQ(application.granted, counts[app][1]) << "at " << ms;
        }
        const model::Target* target = coordinator.cluster().find_target("disk");
        if (target == nullptr || policy != &policy::fcfs) return;
        ASSERT_LE(target->holders.size(), 1U) << "at " << ms;
        for (const model::Holder& holder : target->holders)
          beside_own += holder.stores > 0 && holder.accesses() > 0 ? 1 : 0;
      };
      for (std::uint64_t app = 1; app <= 3; ++app) {
        senders[app] = {false, false, app};
        senders[10 + app] = {false, true, app};
        senders[20 + app] = {false, true, app};
      }
      const auto step = [&](std::uint64_t id, Sender& one, std::uint64_t what) {
        if (!one.here) {
          one = {true, one.server, one.app};
          return run(
              id, event::Hello{"job-" + std::to_string(one.app), "x", "/bin/x", "mpich", "1", 9, one.server ? 0 : 4});
        }
        const RequestId request{one.last};
        if (one.standing == Sender::none && what < 70) {
          one.standing = Sender::queued;
          return run(id, event::StartIo{RequestId{++one.last}, "disk", "",
                                        one.server ? std::string{event::write_back} : "write",
                                        static_cast<std::int64_t>(random() % 1'000'000)});
        }
        if (one.standing == Sender::told && what < 50) {
          one.standing = Sender::queued;
          return run(id, event::PausedIo{request});
        }
        if (one.standing != Sender::none && what < 80) {
          one.standing = Sender::none;
          return run(id, event::FinishIo{request, std::chrono::milliseconds{random() % 50}, 10, random() % 2 == 0});
        }
        if (what > 96) {
          one.here = false;
          one.standing = Sender::none;
          return run(id, event::Lost{"ended"});
        }
        run(0, event::Tick{});
      };
      for (int i = 0; i < 120 && !::testing::Test::HasFatalFailure(); ++i) {
        ms += static_cast<std::int64_t>(random() % 200);
        if (const auto due = coordinator.deadline(); due && to_ns(*due) / 1'000'000 < ms) run(0, event::Tick{});
        auto one = std::next(senders.begin(), static_cast<std::ptrdiff_t>(random() % senders.size()));
        step(one->first, one->second, random() % 100);
      }
      for (auto& [id, one] : senders) {
        if (!one.here) continue;
        one.here = false;
        one.standing = Sender::none;
        run(id, event::Bye{});
      }
      ASSERT_TRUE(coordinator.cluster().applications().empty());
      ASSERT_EQ(coordinator.cluster().find_target("disk"), nullptr);
    }
  }
  EXPECT_GT(beside_own, 100);
}

}  // namespace
}  // namespace hocket::coordinator
