#include "coordinator/cores/course_states.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "coordinator/state_table_testing.hpp"

namespace hocket::coordinator::course_states {
namespace {

using A = CourseAction;
using I = CourseInput;
using S = CourseState;
using Lines = std::vector<std::string>;

constexpr testing::Names<11> states{"none",    "changing", "changed",   "shifting", "returning", "unasked",
                                    "awaited", "probing",  "measuring", "hurrying", "stranded"};
constexpr testing::Names<18> inputs{"change",   "shift",    "probe",   "reach",  "too_late",  "refuse",
                                    "back",     "unsent",   "retry",   "lose",   "phase",     "overdue",
                                    "own_size", "measured", "reclaim", "disown", "no_change", "take_over"};
constexpr testing::Names<11> actions{"begin",  "keep_cores", "cancel", "go_back",      "plan_back", "ask_again",
                                     "settle", "measure",    "arrive", "drop_passing", "forget"};

// Returns the names of the actions, separated by blanks.
std::string words_of(A action) {
  std::string words;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (!does(action, static_cast<A>(1U << i))) continue;
    words.append(words.empty() ? "" : " ").append(actions.at(i));
  }
  return words;
}

Lines effects_in(S state) { return testing::effects_in(state, &course_step, states, inputs, words_of); }

TEST(CourseStates, BeginWithADecision) {
  EXPECT_EQ(effects_in(S::none),
            (Lines{"change -> changing: begin", "shift -> shifting: begin", "probe -> probing: begin"}));
}

TEST(CourseStates, APermanentChangeStaysUntilItsCoresArePutToOtherUse) {
  EXPECT_EQ(effects_in(S::changing),
            (Lines{"reach -> changed: settle", "refuse -> hurrying: cancel go_back", "lose -> hurrying: cancel go_back",
                   "overdue -> hurrying: keep_cores cancel go_back", "reclaim -> hurrying: keep_cores go_back",
                   "disown -> hurrying: keep_cores go_back", "take_over -> none: forget"}));
  EXPECT_EQ(effects_in(S::changed),
            (Lines{"change -> changing: begin", "shift -> shifting: begin", "overdue -> none: cancel forget",
                   "own_size -> none: cancel forget", "reclaim -> hurrying: go_back", "disown -> hurrying: go_back",
                   "no_change -> none: forget", "take_over -> none: forget"}));
}

TEST(CourseStates, ATemporaryChangeReturnsAsPlanned) {
  EXPECT_EQ(effects_in(S::shifting),
            (Lines{"reach -> returning: plan_back", "too_late -> hurrying: cancel go_back",
                   "refuse -> hurrying: cancel go_back", "lose -> hurrying: cancel go_back",
                   "phase -> hurrying: keep_cores cancel go_back", "overdue -> hurrying: keep_cores cancel go_back",
                   "reclaim -> hurrying: keep_cores go_back", "take_over -> none: forget"}));
  EXPECT_EQ(effects_in(S::returning),
            (Lines{"refuse -> hurrying: ask_again", "back -> awaited: arrive", "unsent -> unasked", "lose -> stranded",
                   "phase -> hurrying: cancel go_back", "overdue -> hurrying: cancel go_back",
                   "reclaim -> hurrying: go_back", "take_over -> none: forget"}));
  EXPECT_EQ(effects_in(S::unasked), (Lines{"back -> awaited: arrive", "retry -> returning: go_back",
                                           "phase -> hurrying: cancel go_back", "overdue -> hurrying: cancel go_back",
                                           "reclaim -> hurrying: go_back", "take_over -> none: forget"}));
  EXPECT_EQ(effects_in(S::awaited), (Lines{"phase -> changed: drop_passing", "overdue -> changed: drop_passing",
                                           "own_size -> changed: drop_passing", "take_over -> none: forget"}));
}

TEST(CourseStates, AMeasurementGoesFromSizeToSizeAndReturnsAtOnce) {
  EXPECT_EQ(effects_in(S::probing),
            (Lines{"reach -> measuring: measure", "refuse -> hurrying: cancel go_back",
                   "lose -> hurrying: cancel go_back", "overdue -> hurrying: keep_cores cancel go_back",
                   "reclaim -> hurrying: keep_cores go_back", "take_over -> none: forget"}));
  EXPECT_EQ(effects_in(S::measuring), (Lines{"probe -> probing: begin", "overdue -> hurrying: cancel go_back",
                                             "own_size -> hurrying: cancel go_back", "measured -> hurrying: go_back",
                                             "reclaim -> hurrying: go_back", "take_over -> none: forget"}));
}

TEST(CourseStates, AnApplicationThatHurriesIsAskedUntilItIsBack) {
  EXPECT_EQ(effects_in(S::hurrying), (Lines{"refuse: ask_again", "back -> changed: arrive", "unsent -> stranded",
                                            "lose -> stranded", "take_over -> none: forget"}));
  EXPECT_EQ(effects_in(S::stranded),
            (Lines{"back -> changed: arrive", "retry -> hurrying: go_back", "take_over -> none: forget"}));
}

// Returns the names of the states that satisfy the predicate.
template <class Predicate>
Lines those_that(Predicate predicate) {
  Lines names;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (predicate(static_cast<S>(i))) names.emplace_back(states.at(i));
  }
  return names;
}

TEST(CourseStates, TellWhatIsUnderWay) {
  EXPECT_EQ(those_that(is_under_way), (Lines{"changing", "shifting", "probing"}));
  EXPECT_EQ(those_that(awaits_answer), (Lines{"changing", "shifting", "returning", "probing", "hurrying"}));
  EXPECT_EQ(those_that(needs_retry), (Lines{"unasked", "stranded"}));
  EXPECT_EQ(those_that(is_hurried), (Lines{"hurrying", "stranded"}));
}

// A course with an application that does anything. It knows which requests are not answered and which changes are in
// force, but no sizes: an application has the size of a change, or that below it.
class World {
 public:
  explicit World(std::uint64_t seed) : random_(seed) {}

  void step() {
    const auto input = static_cast<I>(pick(inputs.size()));
    switch (input) {
      case I::reach:
      case I::too_late:
      case I::refuse:
      case I::back: return answer(one_in(2));
      case I::unsent:
      case I::no_change: return;  // these only follow from others
      case I::retry: return retry();
      case I::lose: return lose();
      case I::own_size:
        if (state_ == S::none || awaits_answer(state_) || needs_retry(state_)) return;
        away_ = one_in(2);
        break;
      case I::take_over:
        if (!one_in(10)) return;
        break;
      default: break;
    }
    feed(input);
  }

  // From now on the application does what it is asked, and no policy wants the change any more.
  void calm_down() {
    obeys_ = true;
    for (int i = 0; i < 12 && state_ != S::none; ++i) {
      answer(true);
      retry();
      for (const I input : {I::disown, I::phase, I::measured}) feed(input);
    }
    EXPECT_EQ(state_, S::none) << "a history without an end";
    EXPECT_FALSE(request_ || away_) << "cores were lost";
  }

  std::int64_t ended() const { return ended_; }
  std::int64_t recalled() const { return recalled_; }
  std::int64_t stranded() const { return stranded_; }

 private:
  std::uint64_t pick(std::uint64_t n) { return random_() % n; }
  bool one_in(std::uint64_t n) { return pick(n) == 0; }

  void answer(bool done) {
    if (!request_) return;
    request_ = may_begin_ = false;
    if (is_under_way(state_)) {
      away_ = done || one_in(2);
      return feed(!done ? I::refuse : state_ == S::shifting && one_in(3) ? I::too_late : I::reach);
    }
    kept_ = false;
    away_ = !done;
    feed(done ? I::back : I::refuse);
  }
  void retry() {
    if (needs_retry(state_)) feed(away_ ? I::retry : I::back);
  }
  void lose() {
    if (!request_) return;
    request_ = may_begin_ = false;
    feed(I::lose);
  }

  void feed(I input) {
    apply(input);
    EXPECT_EQ(request_, awaits_answer(state_)) << "after " << inputs.at(static_cast<std::size_t>(input));
    EXPECT_TRUE(!kept_ || is_hurried(state_)) << "cores are kept for nothing";
    EXPECT_EQ(passing_ || lasting_, state_ != S::none) << "a change was lost";
    stranded_ += state_ == S::stranded;
  }

  void apply(I input) {
    const CourseStep step = course_step(state_, input);
    state_ = step.next;
    if (does(step.action, A::begin)) begin(input);
    if (does(step.action, A::keep_cores)) {
      EXPECT_TRUE(may_begin_);
      kept_ = true;
      ++recalled_;
    }
    const bool asks = does(step.action, A::go_back | A::plan_back | A::ask_again);
    if (does(step.action, A::cancel) && asks && !request_ && !away_) return apply(I::back);
    if (asks) ask_back();
    if (does(step.action, A::arrive)) arrive();
    if (does(step.action, A::drop_passing)) drop();
    if (does(step.action, A::forget)) {
      EXPECT_TRUE(!away_ || input != I::no_change) << "it did not return";
      request_ = may_begin_ = kept_ = away_ = passing_ = lasting_ = false;
      ++ended_;
    }
  }

  void begin(I input) {
    EXPECT_FALSE(request_) << "a decision over another one";
    (input == I::change ? lasting_ : passing_) = true;
    request_ = may_begin_ = true;
  }
  void ask_back() {
    EXPECT_TRUE(!may_begin_ || kept_) << "cores that the application may come to use are given to others";
    if (obeys_ || !one_in(4)) {
      request_ = true;
    } else if (!request_) {
      apply(I::unsent);
    }
  }
  void arrive() {
    EXPECT_FALSE(request_ || away_);
    kept_ = false;
    if (state_ == S::awaited) return;
    if (passing_) return drop();
    if (obeys_ || one_in(2)) apply(I::no_change);  // else a part of the permanent change remains
  }
  void drop() {
    passing_ = away_ = false;
    if (!lasting_) apply(I::no_change);
  }

  std::mt19937_64 random_;
  bool obeys_ = false;
  S state_ = S::none;
  bool request_ = false;    // a request is not answered
  bool may_begin_ = false;  // the application may have begun the request of the decision
  bool kept_ = false;       // the cores of that request are kept
  bool away_ = false;       // the application has another size than below the top change
  bool passing_ = false;
  bool lasting_ = false;
  std::int64_t ended_ = 0, recalled_ = 0, stranded_ = 0;
};

TEST(CourseStatesProperty, NoCoresAreGivenTwiceAndEachChangeIsUndone) {
  std::int64_t ended = 0, recalled = 0, stranded = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world{seed};
    for (int i = 0; i < 200; ++i) world.step();
    world.calm_down();
    if (::testing::Test::HasFailure()) FAIL();
    ended += world.ended();
    recalled += world.recalled();
    stranded += world.stranded();
  }
  EXPECT_GT(ended, 2'000) << "the histories reached too little";
  EXPECT_GT(recalled, 500);
  EXPECT_GT(stranded, 500);
}

}  // namespace
}  // namespace hocket::coordinator::course_states
