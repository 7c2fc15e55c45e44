#include "server/turn_course.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "server/times_testing.hpp"

namespace hocket::server {
namespace {

using std::chrono::milliseconds;
using I = TurnInput;
using M = TurnMessage;
using S = TurnState;
using testing::at;
using Lines = std::vector<std::string>;

constexpr std::array<const char*, turn_states> states{"idle", "asked", "has", "yields", "pauses", "alone"};
constexpr std::array<const char*, turn_inputs> inputs{"hold",       "done",    "quiet",  "grant", "preempt",
                                                      "slice_over", "give_up", "expire", "lose"};
constexpr std::array<const char*, 4> messages{"", "start", "finish", "paused"};

// Lists the inputs that have an effect in a state.
Lines effects_in(S state) {
  Lines lines;
  for (std::size_t input = 0; input < turn_inputs; ++input) {
    const TurnStep step = turn_step(state, static_cast<I>(input));
    if (step.next == state && step.message == M::none) continue;
    std::string line = inputs[input];
    if (step.next != state) line += std::string(" -> ") + states[static_cast<std::size_t>(step.next)];
    if (step.message != M::none) line += std::string(": ") + messages[static_cast<std::size_t>(step.message)];
    lines.push_back(line);
  }
  return lines;
}

TEST(TurnStates, ATurnIsAskedForUsedAndGivenBack) {
  EXPECT_EQ(effects_in(S::idle), (Lines{"hold -> asked: start"}));
  EXPECT_EQ(effects_in(S::asked),
            (Lines{"done -> idle: finish", "grant -> has", "give_up -> alone: finish", "lose -> alone"}));
  EXPECT_EQ(effects_in(S::has), (Lines{"done -> idle: finish", "preempt -> pauses", "slice_over -> yields",
                                       "expire -> idle", "lose -> alone"}));
  EXPECT_EQ(effects_in(S::yields),
            (Lines{"done -> idle: finish", "quiet -> idle: finish", "expire -> idle", "lose -> alone"}));
  EXPECT_EQ(effects_in(S::pauses),
            (Lines{"done -> idle: finish", "quiet -> asked: paused", "expire -> idle", "lose -> alone"}));
  EXPECT_EQ(effects_in(S::alone), (Lines{"done -> idle"}));
}

constexpr TurnLimits test_limits{milliseconds{1000}, milliseconds{300}, milliseconds{100}, milliseconds{2}};
using Sent = TurnCourse::Messages;

TEST(TurnCourse, StoresUnderAGrantAndEndsSoonAfterTheLastWrite) {
  TurnCourse course{test_limits};
  EXPECT_EQ(course.look({true, false}, at(0)), Sent{M::start});
  EXPECT_FALSE(course.may_store());
  course.take(I::grant, at(10));
  EXPECT_TRUE(course.may_store());
  EXPECT_EQ(course.look({true, true}, at(11)), Sent{});
  EXPECT_EQ(course.look({false, false}, at(20)), Sent{});
  EXPECT_EQ(course.due(), at(22));
  EXPECT_EQ(course.look({true, false}, at(21)), Sent{}) << "another write followed at once";
  EXPECT_EQ(course.look({false, false}, at(30)), Sent{});
  EXPECT_EQ(course.look({false, false}, at(32)), Sent{M::finish});
}

TEST(TurnCourse, ALongStoreAsksAgainWhenItsBatchesHaveEnded) {
  TurnCourse course{test_limits};
  course.look({true, false}, at(0));
  course.take(I::grant, at(0));
  EXPECT_EQ(course.due(), at(100));
  EXPECT_EQ(course.look({true, true}, at(100)), Sent{});
  EXPECT_FALSE(course.may_store());
  EXPECT_TRUE(course.has_lease()) << "a batch still writes";
  EXPECT_EQ(course.look({true, false}, at(105)), (Sent{M::finish, M::start}));
}

TEST(TurnCourse, APauseIsAnsweredWhenNothingIsUnderWay) {
  TurnCourse course{test_limits};
  course.look({true, false}, at(0));
  course.take(I::grant, at(0));
  EXPECT_EQ(course.take(I::preempt, at(5)), Sent{});
  EXPECT_EQ(course.look({true, true}, at(6)), Sent{});
  EXPECT_EQ(course.look({true, false}, at(9)), Sent{M::paused});
  EXPECT_EQ(course.state(), S::asked);
  course.take(I::grant, at(20));
  EXPECT_TRUE(course.may_store());
}

TEST(TurnCourse, NoWaitIsWithoutABound) {
  TurnCourse silent{test_limits};
  silent.look({true, false}, at(0));
  EXPECT_EQ(silent.due(), at(300));
  EXPECT_EQ(silent.look({true, false}, at(300)), Sent{M::finish});
  EXPECT_TRUE(silent.may_store());

  TurnCourse queued{test_limits};
  queued.look({true, false}, at(0));
  for (std::int64_t ms = 200; ms < 1000; ms += 200) {
    queued.hear(at(ms));
    EXPECT_EQ(queued.look({true, false}, at(ms + 1)), Sent{});
  }
  EXPECT_EQ(queued.due(), at(1000));
  EXPECT_EQ(queued.look({true, false}, at(1000)), Sent{M::finish});
  EXPECT_TRUE(queued.may_store());
  EXPECT_EQ(queued.look({false, false}, at(1100)), Sent{});
  EXPECT_EQ(queued.look({true, false}, at(1200)), Sent{M::start}) << "the next time it asks again";
}

TEST(TurnCourse, AWaitInVainIsWithdrawnAtOnce) {
  TurnCourse course{test_limits};
  course.look({true, false}, at(0));
  EXPECT_EQ(course.look({false, false}, at(1)), Sent{M::finish}) << "somebody waited, so it was stored";
  EXPECT_EQ(course.state(), S::idle);
}

// hocketd, its messages, and the server's batches in any order. `peer` is the request as hocketd knows it.
TEST(TurnCourseProperty, StoresOnlyInItsTurnAndAlwaysInTime) {
  std::int64_t stored = 0, alone = 0, paused = 0;
  for (std::uint64_t seed = 0; seed < 3'000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random{seed};
    TurnCourse course{test_limits};
    enum { none, queued, granted } peer = none;
    bool told = false, connected = true;
    TurnCourse::Held held;
    Time now = at(0), asked = at(0);
    const auto send = [&](const Sent& sent) {
      for (const M message : sent) {
        if (!connected) continue;
        ASSERT_TRUE(message != M::start || peer == none) << "one request at a time";
        if (message == M::paused) {
          ASSERT_EQ(peer, granted);
          ++paused;
        }
        ASSERT_TRUE(message != M::paused || !held.under_way) << "it has stopped";
        const bool gives_up = message == M::finish && course.state() == S::alone;
        ASSERT_TRUE(message != M::finish || gives_up || !held.under_way || !held.any);
        peer = message == M::start || message == M::paused ? queued : none;
        told = false;
        if (peer == queued) asked = now;
      }
    };
    for (int i = 0; i < 200 && !::testing::Test::HasFatalFailure(); ++i) {
      now += milliseconds{random() % 40};
      if (course.due() < now) now = course.due();
      switch (random() % 8) {
        case 0: held.any = true; break;
        case 1: held = {}; break;
        case 2:
          if (held.any && course.may_store()) held.under_way = true;  // the loop begins a batch
          break;
        case 3: held.under_way = false; break;
        case 4:
          if (peer == queued && random() % 2 == 0) {
            peer = granted;
            send(course.take(I::grant, now));
          } else if (peer == queued) {
            course.hear(now);
          }
          break;
        case 5:
          if (peer == granted && !told) {
            told = true;
            send(course.take(I::preempt, now));
          }
          break;
        case 6:
          if (peer == granted && random() % 8 == 0) {
            peer = none;
            send(course.take(I::expire, now));
          }
          break;
        default:
          if (random() % 30 == 0) {
            connected = !connected;
            peer = none;
            send(course.take(I::lose, now));
          }
      }
      send(course.look(held, now));
      if (!connected && course.state() != S::idle) send(course.take(I::lose, now));  // START_IO cannot be sent
      ASSERT_TRUE(!course.may_store() || course.state() == S::alone || peer == granted);
      ASSERT_TRUE(course.state() != S::asked || now - asked <= test_limits.longest) << "held for too long";
      ASSERT_TRUE(course.state() != S::idle || !held.any || held.under_way) << "nobody asks for what is held";
      stored += course.state() == S::has ? 1 : 0;
      alone += course.state() == S::alone ? 1 : 0;
    }
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(stored, 1'000);
  EXPECT_GT(alone, 1'000);
  EXPECT_GT(paused, 100);
}

}  // namespace
}  // namespace hocket::server
