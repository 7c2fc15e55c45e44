// Tests the DECISIONs about waits that the access policy does not explain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/coordinator.hpp"
#include "coordinator/script_testing.hpp"
#include "explain/explain.hpp"

namespace hocket::coordinator {
namespace {

using ::testing::ElementsAre;
using testing::event_of;
using ::testing::IsEmpty;

// A policy like those in Python: it returns its actions, but no reasons.
policy::AccessDecision without_choices(const policy::View& view, const event::Event&) {
  policy::AccessDecision decision;
  if (view.target.holders.empty()) {
    decision.grants = {{view.target.waiting.front().member, view.target.waiting.front().id}};
  } else if (view.target.waiting.back().bytes == 1) {
    decision.interruptions = {view.target.holders.front().application->id};
  }
  return decision;
}
constexpr policy::Policy silent{"silent", "", without_choices};

// A DECISION is the line "WHO ACTION WHOM", and other commands are none.
class WaitingTest : public testing::Script {
 protected:
  void choose(const policy::Policy& policy) {
    CoordinatorSettings settings = testing::usual_settings(policy);
    settings.access.most_interruptions = 3;
    restart(settings);
    for (const std::uint64_t member : {1, 2, 3}) {
      const std::string name(1, static_cast<char>('a' + member - 1));
      hello(member, name, name, 1);
    }
  }
  std::optional<std::string> line_of(const Command& command) override {
    const auto* decision = std::get_if<event::Decision>(&command.body);
    if (decision == nullptr) return std::nullopt;
    EXPECT_FALSE(command.to);
    EXPECT_EQ(decision->policy, coordinator.policies().access->name);
    EXPECT_EQ(decision->number, ++number);
    text = explain::sentence(*decision);
    return decision->decided_for + " " + decision->action + " " + decision->because_of;
  }
  testing::Lines start(std::int64_t ms, std::uint64_t member, std::uint64_t request, std::int64_t bytes = 10) {
    return Script::start(ms, member, request, "disk", bytes, "write");
  }

  std::int64_t number = 0;
  std::string text;
};

TEST_F(WaitingTest, IsToldOnceOfAPhaseAndHolder) {
  choose(policy::fcfs);
  EXPECT_THAT(start(1, 1, 1), IsEmpty());
  EXPECT_THAT(start(2, 2, 1), ElementsAre("b wait a"));
  EXPECT_EQ(text, "'b' waits for 'a' on disk");
  EXPECT_THAT(start(3, 2, 2), IsEmpty()) << "the same wait";
  EXPECT_THAT(start(4, 3, 1), ElementsAre("c wait a"));
  EXPECT_THAT(tick(2000), IsEmpty()) << "reminders are no decisions";
  EXPECT_THAT(finish(2010, 1, 1), IsEmpty());
  EXPECT_THAT(start(2020, 1, 2), ElementsAre("a wait b"));
  finish(2030, 2, 1);
  finish(2040, 2, 2);
  EXPECT_THAT(start(2050, 2, 3), ElementsAre("b wait c")) << "a phase of its own, or another holder";
}

TEST_F(WaitingTest, IsNotToldWhereNobodyWaits) {
  choose(policy::interfere);
  EXPECT_THAT(start(1, 1, 1), IsEmpty());
  EXPECT_THAT(start(2, 2, 1), IsEmpty());
}

TEST_F(WaitingTest, IsNotToldTwiceWhereThePolicySpeaks) {
  choose(policy::interrupt);
  start(1, 1, 1);
  EXPECT_THAT(start(2, 2, 1), ElementsAre("b interrupt a"));
}

TEST_F(WaitingTest, InterruptionsAreToldForPoliciesThatGiveNoReason) {
  choose(silent);
  start(1, 1, 1);
  EXPECT_THAT(start(2, 2, 1), ElementsAre("b wait a"));
  EXPECT_THAT(start(3, 3, 1, 1), ElementsAre("c interrupt a"));
}

// Two processes of one application, times in seconds. The first waits 1 to 2, writes 2 to 4, waits 6 to 7 and writes 7
// to 8. The second waits 1 to 3 and writes 3 to 5.
TEST_F(WaitingTest, OfSeveralProcessesIsTheTimeInWhichOneWaitsAndNoneIsInIo) {
  constexpr std::int64_t s = 1'000'000'000;
  choose(policy::interfere);
  hello(4, "a", "a", 1);
  const auto report = [&](std::uint64_t member, std::int64_t index, std::int64_t from, std::int64_t granted,
                          std::int64_t to) {
    event::IoPhase phase;
    phase.index = index;
    phase.start = time_from_ns(from * s);
    phase.end = time_from_ns(to * s);
    phase.io = Duration{(to - granted) * s};
    phase.wait = Duration{(granted - from) * s};
    phase.cpu = Duration{static_cast<std::int64_t>(member) * s / 10};
    phase.io_intervals = std::to_string((granted - from) * s) + ":" + std::to_string((to - granted) * s);
    phase.wait_intervals = "0:" + std::to_string((granted - from) * s);
    coordinator.handle(event_of(to * 1000 + 100, member, phase));
  };
  report(1, 0, 1, 2, 4);
  report(4, 0, 1, 3, 5);
  const model::Application& application = *coordinator.cluster().find(AppId{1});
  EXPECT_EQ(application.history.last()->io, Duration{3 * s}) << "of the phase, too";
  report(1, 1, 6, 7, 8);
  const event::Application row = coordinator.describe(application, time_from_ns(10 * s));
  EXPECT_EQ(row.io, Duration{4 * s});
  EXPECT_EQ(row.wait, Duration{2 * s});
  EXPECT_EQ(row.cpu, std::chrono::milliseconds{300}) << "the mean of 0.2 s and 0.4 s";
  EXPECT_EQ(row.cpu_most, std::chrono::milliseconds{400});
}

TEST_F(WaitingTest, CountsWhileItLasts) {
  choose(policy::fcfs);
  start(1, 1, 1);
  start(1000, 2, 1);
  const model::Application& application = *coordinator.cluster().find(AppId{2});
  EXPECT_EQ(coordinator.describe(application, time_from_ns(1'500'000'000)).wait, std::chrono::milliseconds{500});
  finish(2000, 1, 1);
  EXPECT_EQ(coordinator.describe(application, time_from_ns(2'500'000'000)).wait, std::chrono::seconds{1});
}

}  // namespace
}  // namespace hocket::coordinator
