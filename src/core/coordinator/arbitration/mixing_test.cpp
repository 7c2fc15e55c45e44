// Tests access policies that differ between applications and between targets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "coordinator/script_testing.hpp"
#include "explain/explain.hpp"

namespace hocket::coordinator {
namespace {

using testing::Lines;

class Mixing : public testing::AccessScript {
 protected:
  Mixing() {
    hello(1, "job-a", "a");
    hello(2, "job-b", "b");
    hello(3, "job-c", "c");
  }
  Lines set_for_application(std::int64_t ms, const std::string& application, const std::string& policy) {
    return at(ms, 9, event::SetPolicy{policy, {}, application});
  }
  Lines set_for_target(std::int64_t ms, const std::string& policy, bool allow = false,
                       const std::string& target = "dev:8:1") {
    return at(ms, 9, event::SetPolicy{policy, {}, {}, target, allow});
  }
  // Leaves out HELD_TARGETS and overruled names, but notes them.
  std::optional<std::string> line_of(const Command& command) override {
    if (const auto* decision = std::get_if<event::Decision>(&command.body); decision && decision->action == "held") {
      overruled.push_back(explain::sentence(*decision));
      return std::nullopt;
    }
    const auto* held = std::get_if<event::HeldTargets>(&command.body);
    if (held == nullptr) return AccessScript::line_of(command);
    told.push_back(std::to_string(command.to.value) + " " + held->targets);
    return std::nullopt;
  }
  // Member `id` starts an access of a file on dev:8:1 for which the application names another target.
  Lines start_renamed(std::int64_t ms, std::uint64_t id, std::uint64_t request, const std::string& target = "mine") {
    event::StartIo asked{RequestId{request}, target, "/scratch/f", "MPI_File_write_all", 10};
    asked.parts = "ost3";
    asked.file_system = "dev:8:1";
    return at(ms, id, asked);
  }
  std::string policy_of(std::uint64_t app) const {
    return coordinator.describe(coordinator.cluster().applications().at(AppId{app}), {}).policy;
  }

  Lines told, overruled;
};

TEST_F(Mixing, AnApplicationThatIsSwitchedOffNeverWaitsAndOthersWaitForIt) {
  EXPECT_EQ(set_for_application(0, "b", "none"), Lines{});
  EXPECT_EQ(start(1, 1, 1), Lines{"1 GRANT_IO 1 waited 0"});
  EXPECT_EQ(start(2, 2, 1), Lines{"2 GRANT_IO 1 waited 0"});
  EXPECT_EQ(start(3, 3, 1), Lines{"3 QUEUED_IO 1 position 1 behind a"});
  EXPECT_EQ(finish(10, 1, 1), Lines{});
  EXPECT_EQ(finish(12, 2, 1), Lines{"3 GRANT_IO 1 waited 9"});
  EXPECT_EQ(policy_of(1), "fcfs");
  EXPECT_EQ(policy_of(2), "interfere");
}

TEST_F(Mixing, ASwitchHoldsFromNowOnUntilItIsTakenBack) {
  start(0, 1, 1);
  EXPECT_EQ(start(1, 2, 1), Lines{"2 QUEUED_IO 1 position 1 behind a"});
  EXPECT_EQ(set_for_application(5, "b", "none"), Lines{"2 GRANT_IO 1 waited 4"});
  finish(6, 2, 1);
  set_for_application(7, "b", "default");
  EXPECT_EQ(start(8, 2, 2), Lines{"2 QUEUED_IO 2 position 1 behind a"});
}

TEST_F(Mixing, TheOperatorsTargetPolicyComesFirst) {
  set_for_application(0, "b", "none");
  set_for_target(0, "fcfs");
  start(1, 1, 1);
  start(1, 1, 2, "dev:8:2");
  EXPECT_EQ(start(2, 2, 1), Lines{"2 QUEUED_IO 1 position 1 behind a"});
  EXPECT_EQ(start(3, 2, 2, "dev:8:2"), Lines{"2 GRANT_IO 2 waited 0"}) << "no policy was set there";
  EXPECT_EQ(set_for_target(4, "fcfs", true), Lines{"2 GRANT_IO 1 waited 2"}) << "he allows it now";
}

TEST_F(Mixing, AnotherNameDoesNotLeaveWhatTheOperatorHolds) {
  start(0, 1, 1);
  EXPECT_EQ(start_renamed(1, 2, 1), Lines{"2 GRANT_IO 1 waited 0"}) << "a target that nobody holds may be renamed";
  finish(2, 2, 1);
  set_for_target(3, "fcfs");
  EXPECT_EQ(start_renamed(4, 2, 2), Lines{"2 QUEUED_IO 2 position 1 behind a"});
  EXPECT_EQ(overruled,
            Lines{"'b' named the target 'mine' for /scratch/f: the operator set the policy of dev:8:1, so it "
                  "asks for that"});
  EXPECT_EQ(finish(5, 1, 1), Lines{"2 GRANT_IO 2 waited 1"});
  finish(6, 2, 2);
  start(7, 1, 2);
  EXPECT_EQ(start_renamed(8, 2, 3), Lines{"2 QUEUED_IO 3 position 1 behind a"});
  EXPECT_EQ(overruled.size(), 1U) << "it is said once for a file and a name";
  EXPECT_EQ(at(9, 3, event::AskWait{1, "mine", 0, "ost3", "dev:8:1"}).size(), 1U);
}

TEST_F(Mixing, AnotherNameMayLeaveWhereTheOperatorAllowsItOrHoldsTheName) {
  start(0, 1, 1);
  set_for_target(1, "fcfs", true);
  EXPECT_EQ(start_renamed(2, 2, 1), Lines{"2 GRANT_IO 1 waited 0"});
  set_for_target(3, "fcfs");
  set_for_target(3, "fcfs", false, "pool");
  EXPECT_EQ(start_renamed(4, 3, 1, "pool"), Lines{"3 GRANT_IO 1 waited 0"}) << "the operator divides the file system";
  EXPECT_EQ(overruled, Lines{});
}

TEST_F(Mixing, MembersLearnWhatTheOperatorHolds) {
  set_for_target(0, "fcfs");
  EXPECT_EQ(told, (Lines{"1 dev:8:1", "2 dev:8:1", "3 dev:8:1"}));
  set_for_target(1, "dynamic");
  set_for_target(1, "fcfs", true, "dev:8:2");
  EXPECT_EQ(told.size(), 3U) << "the same targets are held";
  set_for_target(2, "fcfs", false, "dev:8:2");
  EXPECT_EQ(told.at(3), "1 dev:8:1\ndev:8:2");
  hello(4, "job-d", "d", 4, 3);
  const std::vector<Command>& commands =
      coordinator.handle(testing::event_of(4, 5, event::Hello{"e", "e", "", "mpich", "", 1, 1}));
  EXPECT_EQ(std::get<event::Welcome>(commands.front().body).held_targets, "dev:8:1\ndev:8:2");
  told.clear();
  set_for_target(5, "fcfs", true);
  EXPECT_EQ(told.at(0), "1 dev:8:2");
  EXPECT_EQ(told.size(), 5U);
}

TEST_F(Mixing, ATargetMayDifferFromTheDaemon) {
  at(0, 9, event::SetPolicy{"none"});
  set_for_target(0, "fcfs");
  start(1, 1, 1);
  EXPECT_EQ(start(2, 2, 1), Lines{"2 QUEUED_IO 1 position 1 behind a"});
  start(3, 1, 2, "dev:8:2");
  EXPECT_EQ(start(4, 3, 1, "dev:8:2"), Lines{"3 GRANT_IO 1 waited 0"});
  EXPECT_EQ(set_for_target(5, "default"), Lines{"2 GRANT_IO 1 waited 3"});
  EXPECT_TRUE(coordinator.access_policies().are_all_alike());
}

TEST_F(Mixing, OthersWhoTakeNoTurnsCannotHoldUpForEver) {
  set_for_application(0, "a", "none");
  set_for_application(0, "c", "none");
  start(0, 1, 1);
  start(0, 3, 1);
  EXPECT_EQ(start(10, 2, 1), Lines{"2 QUEUED_IO 1 position 1 behind a"});
  EXPECT_EQ(tick(3'009), (Lines{"2 QUEUED_IO 1 position 1 behind a"}));
  EXPECT_LE(deadline_ms(), 3'010);
  EXPECT_EQ(tick(3'010), Lines{"2 GRANT_IO 1 waited 3000"}) << "a time slice after it asked";
}

TEST_F(Mixing, ASwitchEndsWithItsApplication) {
  set_for_application(0, "b", "none");
  at(1, 2, event::Bye{});
  EXPECT_TRUE(coordinator.access_policies().are_all_alike());
}

TEST_F(Mixing, InterruptsOnlyApplicationsUnderTheSamePolicy) {
  set_for_application(0, "b", "interrupt");
  start(1, 1, 1);
  EXPECT_EQ(start(2, 2, 1), Lines{"2 QUEUED_IO 1 position 1 behind a"});
  finish(3, 1, 1);
  set_for_application(4, "c", "interrupt");
  EXPECT_EQ(start(5, 3, 1).front(), "2 PAUSE_IO 1 because of c");
}

TEST_F(Mixing, RefusesWhatMakesNoSense) {
  const auto refused = [&](const event::SetPolicy& set) { return at(1, 9, set).at(0); };
  EXPECT_THAT(refused({"fcfs", {}, "x"}), ::testing::HasSubstr("no application 'x' is running"));
  EXPECT_THAT(refused({"fcfs", {}, "a", "dev:8:1"}), ::testing::HasSubstr("for an application and for a target"));
  EXPECT_THAT(refused({"phase-shift", {}, "a"}), ::testing::HasSubstr("decides about cores"));
  EXPECT_THAT(refused({"fcfs", "io-time", "a"}), ::testing::HasSubstr("a metric holds for the whole daemon"));
  EXPECT_THAT(refused({"fcsf", {}, "a"}), ::testing::HasSubstr("did you mean 'fcfs'"));
  EXPECT_THAT(refused({"fcfs", {}, {}, std::string(257, 'x')}), ::testing::HasSubstr("has 257 bytes"));
  EXPECT_TRUE(coordinator.access_policies().are_all_alike());
  for (int i = 0; i < 64; ++i) set_for_target(2, "cost", false, std::to_string(i));
  EXPECT_THAT(refused({"fcfs", {}, {}, "x"}), ::testing::HasSubstr("64 targets have policies of their own"));
}

// Whatever is switched and in whatever order, requests are granted in the end, and nobody who is switched off waits.
TEST_F(Mixing, RandomSwitchesLoseNoRequest) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    restart(testing::usual_settings());
    std::mt19937_64 random{seed};
    const auto one_of = [&](std::uint64_t count) { return static_cast<std::uint64_t>(random() % count); };
    for (std::uint64_t id = 1; id <= 3; ++id) hello(id, "job" + std::to_string(id), std::string(1, "abc"[id - 1]));
    std::vector<std::uint64_t> last(4), granted(4);
    std::int64_t ms = 0;
    const auto note = [&](const Lines& lines) {
      for (const std::string& line : lines) {
        for (std::uint64_t id = 1; id <= 3; ++id) {
          const std::string head = std::to_string(id) + " GRANT_IO " + std::to_string(last[id]) + " ";
          if (line.starts_with(head)) granted[id] = last[id];
        }
      }
    };
    for (int step = 0; step < 300; ++step) {
      const std::uint64_t id = 1 + one_of(3);
      ms += static_cast<std::int64_t>(one_of(50));
      const std::string policy = std::vector<std::string>{"fcfs", "none", "default", "cost", "dynamic"}[one_of(5)];
      if (one_of(4) == 0) {
        note(one_of(2) == 0 ? set_for_application(ms, std::string(1, "abc"[id - 1]), policy)
                            : set_for_target(ms, policy, one_of(2) == 0));
      } else if (granted[id] == last[id] && one_of(2) == 0) {
        note(start(ms, id, ++last[id]));
      } else if (granted[id] == last[id] && last[id] > 0) {
        note(finish(ms, id, last[id]));
      }
      note(tick(ms));
    }
    for (int round = 0; round < 8; ++round) {
      for (std::uint64_t id = 1; id <= 3; ++id) {
        if (granted[id] == last[id]) note(finish(ms, id, last[id]));
      }
      note(tick(ms += 1'000));
    }
    for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(granted[id], last[id]) << "seed " << seed << ", member " << id;
  }
}

}  // namespace
}  // namespace hocket::coordinator
