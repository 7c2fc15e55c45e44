// How the aggregators of a collective access stop between two rounds, all at the same one, and go on: what rank 0 of
// the file says to them, and what they answer. Pure: who carries the words is elsewhere (brake.hpp).
//
// There is no barrier between rounds while nobody is to stop. Then rank 0 says `stop`: each aggregator begins no
// further round, and answers with the last that it has begun. The largest of those is the round after which all stop
// (`until`): who is behind goes on to it, and answers `at` when all that it has begun is stored, with the round that it
// would begin next. When all are there, the access stands still until `go`. However soon the next `stop` comes, the
// first of those rounds is done before the access stands still again. Who has ended all of its rounds says so, once, at
// any time, and is asked no more.
//
// Words may be overtaken by later ones of the same sender: only the last one counts.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace hocket::runtime::io {

struct StopWord {
  enum class Kind : std::uint8_t {
    silent,
    go,  // rank 0's
    stop,
    until,
    begun,  // an aggregator's
    at,
    ended,
  };
  Kind kind = Kind::silent;
  std::int64_t number = 0;  // of the stop that it is about, counted from 1 in an access
  std::int64_t round = -1;  // of `until`, `begun` and `at`; -1: none
  bool operator==(const StopWord&) const = default;
};

// An aggregator's part.
class Stopping {
 public:
  // Of rank 0. False: the same word again, which changes nothing.
  bool hear(const StopWord& word);
  bool may_begin(std::int64_t round) const { return round <= limit_; }
  // Precondition: it may.
  void begins(std::int64_t round) { begun_ = round; }
  // From the word to stop to that to go on.
  bool told_to_stop() const { return asked_ != Asked::nothing; }
  bool has_ended() const { return ended_; }
  // What is to be said now, once each. `held`: the next round, where it could not be begun, and all that has been is
  // stored; that it may by now, as a word has come since, is seen here. `ended`: all is stored, and there is no further
  // round.
  std::optional<StopWord> speak(std::optional<std::int64_t> held, bool ended);

 private:
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
  enum class Asked : std::uint8_t { nothing, begun, at, answered };

  Asked asked_ = Asked::nothing;
  bool ended_ = false;
  StopWord heard_;
  std::int64_t begun_ = -1;
  std::int64_t limit_ = unlimited;
};

// Rank 0's part.
class StopLeader {
 public:
  explicit StopLeader(std::size_t aggregators) : last_(aggregators) {}

  void hear(std::size_t aggregator, const StopWord& word);
  bool has_ended(std::size_t aggregator) const { return last_[aggregator].kind == StopWord::Kind::ended; }
  bool all_ended() const;
  // Whether answers are awaited.
  bool asks() const { return state_ == State::stopping || state_ == State::settling; }
  // What is to be said to all who have not ended. `wanted`: they are to stop.
  std::optional<StopWord> speak(bool wanted);
  // The round after which all stand still: from then on until `go`.
  std::optional<std::int64_t> stopped_at() const;
  StopWord go();

 private:
  enum class State : std::uint8_t { running, stopping, settling, stopped };

  bool all_said(StopWord::Kind kind) const;

  State state_ = State::running;
  std::int64_t number_ = 0;
  std::int64_t round_ = -1;
  std::int64_t next_ = -1;  // after the last stop: the first round that any began
  std::vector<StopWord> last_;
};

}  // namespace hocket::runtime::io
