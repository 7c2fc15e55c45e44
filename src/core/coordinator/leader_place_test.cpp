// Tests what a leader does that is not the first of the list: it grants turns, but gives out no cores and changes no
// server maps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/coordinator.hpp"
#include "coordinator/script_testing.hpp"

namespace hocket::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Lines;

constexpr std::int64_t all_cores = 12;
constexpr std::uint64_t tool = 99;

policy::CoreDecision expand_the_first(const policy::CoreView&, const event::Event&, AppId) {
  policy::CoreChange change;
  change.application = AppId{1};
  change.processes = 8;
  policy::CoreDecision decision;
  decision.changes.push_back(change);
  return decision;
}
constexpr policy::CorePolicy expanding{"expanding", "", policy::CoreKind::sharing, expand_the_first};

CoordinatorSettings settings_with(const policy::CorePolicy* shares) {
  CoordinatorSettings settings = testing::usual_settings();
  settings.policy.sharing = shares;
  settings.cores = all_cores;
  settings.probe = false;
  return settings;
}

class LeaderPlaceTest : public testing::Script {
 protected:
  explicit LeaderPlaceTest(const policy::CorePolicy* shares = nullptr) : Script(settings_with(shares)) {}

  void take_place(std::int64_t place, std::uint64_t said_by = 0) {
    EXPECT_THAT(at(0, said_by, event::LeaderPlace{place, "n1"}), IsEmpty());
  }
  void start_malleable() {
    hello(1, "job1", "app1", 4);
    at(0, 1, event::Malleable{4, 0, 0, "merge", 0});
  }
  Lines resize(std::int64_t processes) {
    event::Resize asked;
    asked.application = "app1";
    asked.processes = processes;
    return at(1, tool, asked);
  }
  std::optional<std::string> line_of(const Command& command) override {
    if (const auto* decision = std::get_if<event::Decision>(&command.body)) decision_ = *decision;
    return testing::describe(command);
  }
  Lines server() { return at(1, 11, event::Server{"s1", "unix:/s1", "/scratch", 1 << 20, false, 77}); }

  std::optional<event::Decision> decision_;  // the last one
};

TEST_F(LeaderPlaceTest, TheFirstGivesOutCoresAndTakesServers) {
  take_place(1);
  start_malleable();
  EXPECT_THAT(resize(6), ElementsAre("1 RECONFIGURE 1 to 6 at 0"));
  EXPECT_THAT(server(), ElementsAre("1 SERVER_MAP 1 s1"));
}

TEST_F(LeaderPlaceTest, ALaterOneGrantsTurns) {
  take_place(2);
  hello(1, "job1", "app1", 4);
  hello(2, "job2", "app2", 4);
  EXPECT_THAT(start(1, 1, 1), ElementsAre("1 GRANT_IO 1 waited 0"));
  EXPECT_THAT(start(2, 2, 1), ::testing::Contains("2 QUEUED_IO 1 position 1 behind app1"));
}

TEST_F(LeaderPlaceTest, ALaterOneGivesOutNoCores) {
  take_place(2);
  start_malleable();
  EXPECT_THAT(resize(6), ElementsAre("99 REFUSED cannot resize: this leader is not the first of the list, so it gives "
                                     "out no cores: 'app1' cannot grow here"));
  EXPECT_THAT(resize(2), ElementsAre("1 RECONFIGURE 1 to 2 at 0")) << "to shrink takes nobody's cores";
  EXPECT_THAT(at(2, tool, event::AskCores{"job3", "app3", 4, std::chrono::seconds{30}}),
              ElementsAre("99 CORES_FOR start 4 job3"))
      << "it starts as without hocketd";
  EXPECT_EQ(coordinator.cores().free(), all_cores - 4) << "nothing is kept for it";
}

TEST_F(LeaderPlaceTest, ALaterOneChangesNoServerMap) {
  server();
  EXPECT_EQ(coordinator.servers().epoch(), 1);
  take_place(3);
  const std::string refusal =
      "this leader is not the first of the list, so it changes no server map: ask the first one";
  EXPECT_THAT(at(2, 12, event::Server{"s2", "unix:/s2", "/scratch", 1 << 20, false, 78}),
              ElementsAre("12 REFUSED SERVER: " + refusal));
  EXPECT_THAT(at(3, tool, event::SetServer{"s1", "drain"}), ElementsAre("99 REFUSED SET_SERVER: " + refusal));
  event::SlowIoServer slow;
  slow.server = "s1";
  EXPECT_THAT(at(4, tool, slow), ElementsAre("99 REFUSED SLOW_IO_SERVER: " + refusal));
  EXPECT_EQ(coordinator.servers().epoch(), 1);
  at(5, 11, event::Lost{"connection closed"});
  EXPECT_EQ(coordinator.servers().epoch(), 2) << "accesses to a server that has ended would fail";
}

TEST_F(LeaderPlaceTest, ALaterPlaceCountsForGoodAndOnlyTheDaemonKnowsIt) {
  hello(1, "job1", "app1", 4);
  take_place(2, 1);
  EXPECT_EQ(coordinator.leader_place(), 1) << "a member has said it";
  take_place(2);
  take_place(1);
  EXPECT_EQ(coordinator.leader_place(), 2);
}

class LaterLeaderWithAPolicy : public LeaderPlaceTest {
 protected:
  LaterLeaderWithAPolicy() : LeaderPlaceTest(&expanding) {}
};

TEST_F(LaterLeaderWithAPolicy, LeavesChangesAloneAndSaysWhy) {
  take_place(2);
  start_malleable();
  ASSERT_TRUE(decision_);
  EXPECT_EQ(decision_->action, "leave");
  EXPECT_EQ(decision_->obstacle, event::because(event::circumstance::later_leader));
  EXPECT_EQ(decision_->wanted, 8);
}

}  // namespace
}  // namespace hocket::coordinator
