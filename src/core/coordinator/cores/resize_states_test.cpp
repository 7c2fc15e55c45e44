#include "coordinator/cores/resize_states.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/state_table_testing.hpp"

namespace hocket::coordinator::resize_states {
namespace {

using A = ResizeAction;
using I = ResizeInput;
using Lines = std::vector<std::string>;
using enum ResizeState;

constexpr testing::Names<5> states{"none", "of_policy", "of_tool", "due", "overdue"};
constexpr testing::Names<10> inputs{"tool_asks", "policy_asks", "answer", "show",     "reach",
                                    "pass",      "expire",      "lose",   "withdraw", "begin"};
constexpr testing::Names<9> actions{"",        "send",     "refuse",    "report", "note", "start_limit",
                                    "give_up", "withdraw", "tell_begun"};

Lines effects_in(ResizeState state) {
  return testing::effects_in(state, &resize_step, states, inputs,
                             [](A action) { return actions.at(static_cast<std::size_t>(action)); });
}

TEST(ResizeStates, NobodyWaitsWithoutAResize) {
  EXPECT_EQ(effects_in(none), (Lines{"tool_asks -> of_tool: send", "policy_asks -> of_policy: send"}));
}

TEST(ResizeStates, AResizeOfAPolicyIsReplacedByAnyOther) {
  EXPECT_EQ(effects_in(of_policy), (Lines{"tool_asks -> of_tool: send", "policy_asks: send", "answer -> none",
                                          "show -> none", "lose -> none"}));
}

TEST(ResizeStates, AResizeOfAToolLastsUntilTheToolHasItsAnswer) {
  EXPECT_EQ(effects_in(of_tool),
            (Lines{"tool_asks: refuse", "policy_asks: refuse", "answer -> none: report", "reach -> due: note",
                   "lose -> none: give_up", "withdraw: withdraw", "begin: tell_begun"}));
  EXPECT_EQ(effects_in(due),
            (Lines{"tool_asks: refuse", "policy_asks: refuse", "answer -> none: report", "pass -> overdue: start_limit",
                   "lose -> none: give_up", "withdraw: withdraw", "begin: tell_begun"}));
  EXPECT_EQ(effects_in(overdue),
            (Lines{"tool_asks: refuse", "policy_asks: refuse", "answer -> none: report", "expire -> none: give_up",
                   "lose -> none: give_up", "withdraw: withdraw", "begin: tell_begun"}));
}

TEST(ResizeStates, KnowWhichAreOfATool) {
  EXPECT_FALSE(is_of_tool(none));
  EXPECT_FALSE(is_of_tool(of_policy));
  EXPECT_TRUE(is_of_tool(of_tool));
  EXPECT_TRUE(is_of_tool(due));
  EXPECT_TRUE(is_of_tool(overdue));
}

// Counts what tools and the application were told, and knows nothing of states.
class Tally {
 public:
  void take(I input, A action) {
    switch (action) {
      case A::send:
        EXPECT_FALSE(tool_waits_) << "the request of a tool was displaced";
        tool_waits_ = input == I::tool_asks;
        runs_ = true;
        break;
      case A::refuse: EXPECT_TRUE(tool_waits_) << "refused without a reason"; break;
      case A::report:
      case A::give_up:
        EXPECT_TRUE(tool_waits_) << "an answer that no tool waits for, or the second one";
        ++answers_;
        break;
      case A::withdraw:
      case A::tell_begun: EXPECT_TRUE(tool_waits_) << "a message about a request that no tool made"; break;
      case A::nothing:
      case A::note:
      case A::start_limit: break;
    }
    const bool asks = input == I::tool_asks || input == I::policy_asks;
    EXPECT_TRUE(!asks || action == A::send || action == A::refuse) << "a request was lost";
  }
  // States that no resize is under way any more.
  void end(A by) {
    EXPECT_TRUE(runs_);
    EXPECT_EQ(tool_waits_, by == A::report || by == A::give_up) << "a tool was left without an answer";
    runs_ = tool_waits_ = false;
  }
  bool runs() const { return runs_; }
  std::int64_t answers() const { return answers_; }

 private:
  bool runs_ = false;
  bool tool_waits_ = false;
  std::int64_t answers_ = 0;
};

TEST(ResizeStatesProperty, EachToolHasOneAnswerAndEachHistoryEnds) {
  std::int64_t answers = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random{seed};
    Tally tally;
    ResizeState state = none;
    const auto feed = [&](I input) {
      const ResizeState before = state;
      const ResizeStep step = resize_step(state, input);
      state = step.next;
      tally.take(input, step.action);
      if (state == none && before != none) tally.end(step.action);
      EXPECT_EQ(tally.runs(), state != none);
    };
    for (int i = 0; i < 200; ++i) feed(static_cast<I>(random() % inputs.size()));
    // Either the answer is lost, as the I/O phases show, or the application goes.
    if (is_of_tool(state)) {
      for (const I input : {I::reach, I::pass, I::expire}) feed(input);
    } else {
      feed(I::lose);
    }
    EXPECT_EQ(state, none);
    answers += tally.answers();
    if (::testing::Test::HasFailure()) FAIL();
  }
  EXPECT_GT(answers, 3'000) << "the histories reached too little";
}

}  // namespace
}  // namespace hocket::coordinator::resize_states
