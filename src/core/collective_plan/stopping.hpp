// Protocol by which the aggregators of a collective access stop between two rounds, all after the same one, and
// resume: the messages of rank 0 of the file, and the answers. Pure state machines; brake.hpp carries the messages.
//
// There is no barrier between rounds while no stop is requested. For a stop, rank 0 sends `stop`: each aggregator
// begins no further round, and answers with the last that it has begun (`begun`). The largest of those is the round
// after which all stop; rank 0 sends it as `until`. An aggregator that is behind continues to that round. It answers
// `at`, with the round that it would begin next, when everything that it has begun is stored. When all have answered,
// the access is suspended until `go`. However soon the next `stop` comes, at least the first of those next rounds is
// done before the next suspension. An aggregator that has ended all of its rounds sends `ended`, once, at any time, and
// needs no further message.
//
// A later message of a sender may overwrite an earlier one: only the last one counts.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace hocket::collective_plan {

// One message of the protocol, in either direction.
struct StopWord {
  enum class Signal : std::uint8_t {
    silent,
    go,  // from rank 0: these three
    stop,
    until,
    begun,  // from an aggregator: these three
    at,
    ended,
  };
  Signal kind = Signal::silent;
  std::int64_t number = 0;  // number of the stop that it concerns, counted from 1 within an access
  std::int64_t round = -1;  // of `until`, `begun` and `at`; -1: none
  bool operator==(const StopWord&) const = default;
};

// An aggregator's side of the protocol.
class Stopping {
 public:
  // Takes a message of rank 0. Returns false if it is the one taken last, which changes nothing.
  bool hear(const StopWord& word);
  // True if the round may begin now.
  bool may_begin(std::int64_t round) const { return round <= limit_; }
  // Notes that the round begins. Precondition: may_begin(round).
  void begins(std::int64_t round) { begun_ = round; }
  // True from `stop` until `go`.
  bool told_to_stop() const { return asked_ != AwaitedAnswer::nothing; }
  bool has_ended() const { return ended_; }
  // Returns the message to send to rank 0 now, if any; each is returned once. `held` is the next round, if it could
  // not begin and everything begun is stored; a message taken since may allow it, which this function checks.
  // `ended`: everything is stored, and there is no further round.
  std::optional<StopWord> speak(std::optional<std::int64_t> held, bool ended);

 private:
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
  // The answer that rank 0 waits for.
  enum class AwaitedAnswer : std::uint8_t { nothing, begun, at, answered };

  AwaitedAnswer asked_ = AwaitedAnswer::nothing;
  bool ended_ = false;
  StopWord heard_;                  // the last message of rank 0
  std::int64_t begun_ = -1;         // the last round that has begun; -1: none
  std::int64_t limit_ = unlimited;  // the last round that may begin
};

// Rank 0's side of the protocol. Aggregators are numbered 0 … aggregators - 1.
class StopLeader {
 public:
  explicit StopLeader(std::size_t aggregators) : last_(aggregators) {}

  // Takes the last message of an aggregator; taking it again changes nothing.
  void hear(std::size_t aggregator, const StopWord& word);
  bool has_ended(std::size_t aggregator) const { return last_[aggregator].kind == StopWord::Signal::ended; }
  bool all_ended() const;
  // True while rank 0 waits for answers.
  bool asks() const { return state_ == StopState::stopping || state_ == StopState::settling; }
  // Returns the message to send to all aggregators that have not ended, if any. `wanted`: the access should stop.
  std::optional<StopWord> speak(bool wanted);
  // Returns the round after which all are suspended, from the last answer until go(); else no value.
  std::optional<std::int64_t> stopped_at() const;
  // Returns the message that resumes the access. Precondition: stopped_at() has a value.
  StopWord go();

 private:
  // running → `stop` → stopping → `until` → settling → all answered → stopped → `go` → running.
  enum class StopState : std::uint8_t { running, stopping, settling, stopped };

  bool all_said(StopWord::Signal kind) const;

  StopState state_ = StopState::running;
  std::int64_t number_ = 0;
  std::int64_t round_ = -1;  // after which all stop
  // Earliest round that begins after the last stop. A later `until` is at least this round, so that work gets done
  // between two stops.
  std::int64_t next_ = -1;  // after the last stop: the first round that any began
  std::vector<StopWord> last_;
};

}  // namespace hocket::collective_plan
