#include "coordinator/joins/join_states.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "coordinator/state_table_testing.hpp"

namespace hocket::coordinator::join_states {
namespace {

using A = JoinAction;
using I = JoinInput;
using S = JoinState;
using Lines = std::vector<std::string>;

constexpr testing::Names<4> states{"none", "starting", "complete", "broken"};
constexpr testing::Names<10> inputs{"start", "ready", "all_ready", "fail",      "expire",
                                    "quit",  "stop",  "end",       "hand_over", "abandon"};
constexpr testing::Names<8> actions{"", "start", "refuse", "count", "tell_ready", "tell_failed", "kill", "give_up"};

Lines effects_in(S state) {
  return testing::effects_in(state, &join_step, states, inputs,
                             [](A action) { return actions.at(static_cast<std::size_t>(action)); });
}

TEST(JoinStates, BeginWithARequest) { EXPECT_EQ(effects_in(S::none), (Lines{"start -> starting: start"})); }

TEST(JoinStates, NothingIsLeftOfAJoinThatEndsBeforeAllAreReady) {
  EXPECT_EQ(effects_in(S::starting),
            (Lines{"start: refuse", "ready: count", "all_ready -> complete: tell_ready", "fail -> none: give_up",
                   "expire -> none: give_up", "quit -> none: give_up", "stop -> none: kill", "end -> none: kill",
                   "hand_over -> none: kill", "abandon -> none: kill"}));
}

TEST(JoinStates, WhenAllAreReadyTheApplicationTakesThemIn) {
  EXPECT_EQ(effects_in(S::complete), (Lines{"start: refuse", "fail -> broken: tell_failed", "stop -> none: kill",
                                            "end -> none", "abandon -> none: kill"}));
  EXPECT_EQ(effects_in(S::broken),
            (Lines{"start: refuse", "stop -> none: kill", "end -> none", "abandon -> none: kill"}));
}

// The started processes and what the asking member was told of them. The model knows nothing of states.
class Processes {
 public:
  void take(I input, A action) {
    switch (action) {
      case A::start:
        EXPECT_FALSE(run_) << "started twice";
        run_ = true;
        waiting_ = 1 + started_ % 3;
        ready_ = told_failed_ = false;
        ++started_;
        break;
      case A::refuse: EXPECT_TRUE(run_) << "refused without a reason"; break;
      case A::count: EXPECT_GT(waiting_--, 0) << "more were ready than were started"; break;
      case A::tell_ready:
        EXPECT_TRUE(run_ && waiting_ == 0 && !ready_) << "told too early, or twice";
        ready_ = true;
        break;
      case A::tell_failed:
        EXPECT_TRUE(run_ && ready_ && !told_failed_) << "told twice";
        told_failed_ = true;
        break;
      case A::give_up:
        EXPECT_FALSE(ready_) << "the application may be about to take them in";
        told_failed_ = true;
        kill();
        break;
      case A::kill: kill(); break;
      case A::nothing: break;
    }
    EXPECT_TRUE(input != I::start || action == A::start || action == A::refuse) << "a request was lost";
  }
  // States that no join is under way any more. Processes are left to an application that knows of them.
  void end(I by) {
    EXPECT_TRUE(!run_ || (ready_ && by == I::end)) << "processes of nobody";
    const bool is_its_own = by == I::stop || by == I::end || by == I::hand_over || by == I::abandon;
    EXPECT_TRUE(is_its_own || told_failed_) << "the application waits for ever";
    joined_ += run_;
    run_ = false;
  }
  bool run() const { return run_; }
  bool are_all_ready() const { return run_ && waiting_ == 0; }
  std::int64_t joined() const { return joined_; }

 private:
  void kill() {
    EXPECT_TRUE(run_) << "killed twice";
    run_ = false;
    waiting_ = 0;
  }

  bool run_ = false;
  bool ready_ = false;
  bool told_failed_ = false;
  std::int64_t waiting_ = 0;  // started processes that are not ready
  std::int64_t started_ = 0;
  std::int64_t joined_ = 0;
};

TEST(JoinStatesProperty, NoProcessIsLeftToNobodyAndEachJoinEnds) {
  std::int64_t joined = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random{seed};
    Processes processes;
    S state = S::none;
    const auto feed = [&](I input) {
      const S before = state;
      const JoinTransition step = join_step(state, input);
      state = step.next;
      processes.take(input, step.action);
      if (state == S::none && before != S::none) processes.end(input);
      EXPECT_EQ(processes.run(), state != S::none);
    };
    for (int i = 0; i < 200; ++i) {
      const auto input = random() % 2 == 0 ? I::ready : static_cast<I>(random() % inputs.size());
      if (input == I::all_ready) continue;  // it only follows from `ready`
      feed(input);
      if (state == S::starting && processes.are_all_ready()) feed(I::all_ready);
    }
    // Either the time limit ends it, or the application goes on or ends.
    feed(I::expire);
    feed(random() % 2 == 0 ? I::end : I::abandon);
    EXPECT_EQ(state, S::none);
    joined += processes.joined();
    if (::testing::Test::HasFailure()) FAIL();
  }
  EXPECT_GT(joined, 500) << "the histories reached too little";
}

}  // namespace
}  // namespace hocket::coordinator::join_states
