#include "collective_plan/stopping.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <string>

#include "layout/model_testing.hpp"

namespace hocket::collective_plan {
namespace {

using Signal = StopWord::Signal;
using layout::testing::draw;
using layout::testing::Random;

// Carries messages in order, each with a random delay; or acts as a board, where a later message overwrites an unread
// one.
class Line {
 public:
  Line(Random& random, bool is_board) : random_(random), is_board_(is_board) {}

  void say(const StopWord& word) {
    if (is_board_) words_.clear();
    words_.push_back(word);
  }
  std::optional<StopWord> hear() {
    if (words_.empty() || draw(random_, 0, 3) > 0) return std::nullopt;
    const StopWord word = words_.front();
    if (!is_board_) words_.pop_front();  // a message on a board is read again
    return word;
  }

 private:
  Random& random_;
  bool is_board_;
  std::deque<StopWord> words_;
};

// An aggregator with two collective buffers; its round numbers rise, with gaps.
struct Aggregator {
  Aggregator(Random& random, bool is_board) : orders(random, is_board), answers(random, is_board) {
    for (std::int64_t round = draw(random, 0, 2), left = draw(random, 0, 12); left > 0; --left) {
      rounds.push_back(round);
      round += draw(random, 0, 4) == 0 ? draw(random, 2, 5) : 1;
    }
  }
  bool has_next() const { return begun < rounds.size(); }
  bool ended() const { return stored == rounds.size(); }
  std::int64_t last_begun() const { return begun == 0 ? -1 : rounds[begun - 1]; }

  Line orders, answers;
  Stopping stopping;
  std::vector<std::int64_t> rounds;
  std::size_t begun = 0, stored = 0;
};

class Access {
 public:
  explicit Access(std::uint64_t seed) : random_(seed), leader_(0) {
    const auto count = static_cast<std::size_t>(draw(random_, 1, 5));
    for (std::size_t i = 0; i < count; ++i) aggregators_.emplace_back(random_, draw(random_, 0, 1) == 0);
    leader_ = StopLeader(count);
    apart_ = draw(random_, 1, 6);
    often_ = draw(random_, 0, 1) * 40;  // 0: a stop is requested all the time
  }

  // Runs the access to its end, which must come. Returns how often it was suspended.
  int run() {
    constexpr int limit = 200'000;
    for (int step = 0; !over(); ++step) {
      if (step == limit) {
        ADD_FAILURE() << "somebody waits for ever";
        return stops_;
      }
      const std::int64_t who = draw(random_, -1, static_cast<std::int64_t>(aggregators_.size()) - 1);
      if (who < 0)
        lead();
      else
        advance(aggregators_[static_cast<std::size_t>(who)]);
    }
    return stops_;
  }

 private:
  bool over() const { return leader_.all_ended(); }

  void lead() {
    if (draw(random_, 0, often_) == 0) wanted_ = true;
    for (std::size_t i = 0; i < aggregators_.size(); ++i)
      if (const auto word = aggregators_[i].answers.hear()) leader_.hear(i, *word);
    if (const auto word = leader_.speak(wanted_)) say(*word);
    if (const auto round = leader_.stopped_at()) {
      all_stand_at(*round);
      wanted_ = false;
      ++stops_;
      say(leader_.go());
    }
  }

  void say(const StopWord& word) {
    for (std::size_t i = 0; i < aggregators_.size(); ++i)
      if (!leader_.has_ended(i)) aggregators_[i].orders.say(word);
  }

  void advance(Aggregator& one) {
    if (const auto word = one.orders.hear()) {
      const bool stops = one.stopping.hear(*word) && word->kind == Signal::stop;
      if (stops) heard_by_then_ = std::max(heard_by_then_, one.last_begun());
    }
    if (one.stored < one.begun && fed(one) && draw(random_, 0, 2) == 0) ++one.stored;
    const bool free = one.begun - one.stored < 2;
    if (free && one.has_next() && one.stopping.may_begin(one.rounds[one.begun])) {
      one.stopping.begins(one.rounds[one.begun]);
      ++one.begun;
    }
    std::optional<std::int64_t> held;
    if (one.stored == one.begun && one.has_next() && !one.stopping.may_begin(one.rounds[one.begun]))
      held = one.rounds[one.begun];
    if (const auto word = one.stopping.speak(held, one.ended())) one.answers.say(*word);
  }

  // True if the round's data may have arrived. Ranks have few chunks in flight: the data of a round do not arrive
  // before all aggregators have begun the rounds well before it.
  bool fed(const Aggregator& one) const {
    const std::int64_t round = one.rounds[one.stored];
    return std::all_of(aggregators_.begin(), aggregators_.end(), [&](const Aggregator& other) {
      return !other.has_next() || other.rounds[other.begun] >= round - apart_;
    });
  }

  void all_stand_at(std::int64_t round) {
    bool any_left = false;
    for (const Aggregator& one : aggregators_) {
      EXPECT_EQ(one.stored, one.begun);
      any_left |= !one.ended();
      EXPECT_TRUE(one.ended() || one.last_begun() <= round);
      EXPECT_TRUE(!one.has_next() || one.rounds[one.begun] > round);
    }
    EXPECT_TRUE(any_left);
    EXPECT_LE(round, std::max(heard_by_then_, next_)) << "one had not begun that round when it heard the word";
    heard_by_then_ = -1;
    next_ = std::numeric_limits<std::int64_t>::max();
    std::size_t stored = 0;
    for (const Aggregator& one : aggregators_) {
      stored += one.stored;
      if (one.has_next()) next_ = std::min(next_, one.rounds[one.begun]);
    }
    EXPECT_TRUE(stops_ == 0 || stored > stored_) << "nothing was done since the last stop";
    stored_ = stored;
  }

  Random random_;
  std::deque<Aggregator> aggregators_;
  StopLeader leader_;
  std::int64_t apart_ = 0;
  std::int64_t often_ = 0;
  std::int64_t heard_by_then_ = -1;  // last round that any had begun when it received `stop`
  std::int64_t next_ = -1;           // first round that was held at the last stop
  std::size_t stored_ = 0;           // rounds stored at the last stop
  bool wanted_ = false;
  int stops_ = 0;
};

TEST(Stopping, AllStopAfterOneRoundAndNobodyWaitsForEver) {
  int stops = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    stops += Access(seed).run();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(stops, 1000);
}

TEST(Stopping, BeginsNothingMoreThanTheOneThatIsFarthest) {
  Stopping behind, ahead;
  StopLeader leader(2);
  behind.begins(3);
  ahead.begins(7);
  EXPECT_EQ(leader.speak(false), std::nullopt);
  const auto stop = leader.speak(true);
  ASSERT_EQ(stop, (StopWord{Signal::stop, 1, -1}));
  behind.hear(*stop), ahead.hear(*stop);
  EXPECT_FALSE(behind.may_begin(4));
  leader.hear(0, behind.speak({}, false).value());
  EXPECT_EQ(leader.speak(true), std::nullopt);
  leader.hear(1, ahead.speak({}, false).value());
  const auto until = leader.speak(true);
  ASSERT_EQ(until, (StopWord{Signal::until, 1, 7}));
  behind.hear(*until), ahead.hear(*until);
  EXPECT_EQ(behind.speak(4, false), std::nullopt) << "it waits for that round no more";
  EXPECT_TRUE(behind.may_begin(7));
  EXPECT_FALSE(behind.may_begin(8));
  leader.hear(1, ahead.speak(9, false).value());
  EXPECT_EQ(behind.speak({}, false), std::nullopt);
  leader.hear(0, behind.speak(8, false).value());
  EXPECT_EQ(leader.speak(true), std::nullopt);
  EXPECT_EQ(leader.stopped_at(), 7);
  const StopWord go = leader.go();
  EXPECT_TRUE(behind.hear(go));
  EXPECT_FALSE(behind.hear(go));
  EXPECT_TRUE(behind.may_begin(8));
  EXPECT_EQ(leader.stopped_at(), std::nullopt);
  // Stops again at once. No round has begun meanwhile, but one gets done before the next suspension.
  const StopWord again = leader.speak(true).value();
  behind.hear(again), ahead.hear(again);
  leader.hear(0, behind.speak({}, false).value());
  leader.hear(1, ahead.speak({}, false).value());
  EXPECT_EQ(leader.speak(true), (StopWord{Signal::until, 2, 8}));
}

TEST(Stopping, IsOverWhereAllEndFirst) {
  Stopping one;
  StopLeader leader(1);
  one.hear(leader.speak(true).value());
  leader.hear(0, one.speak({}, true).value());
  EXPECT_EQ(leader.speak(true), std::nullopt);
  EXPECT_TRUE(leader.all_ended());
  EXPECT_EQ(leader.stopped_at(), std::nullopt);
  EXPECT_EQ(one.speak({}, true), std::nullopt);
}

}  // namespace
}  // namespace hocket::collective_plan
