#include "runtime/io/stopping.hpp"

#include <algorithm>

namespace hocket::runtime::io {

using Kind = StopWord::Kind;

bool Stopping::hear(const StopWord& word) {
  if (word == heard_) return false;
  heard_ = word;
  switch (word.kind) {
    case Kind::stop:
      limit_ = begun_;
      asked_ = Asked::begun;
      break;
    case Kind::until:
      limit_ = word.round;
      asked_ = Asked::at;
      break;
    case Kind::go:
      limit_ = unlimited;
      asked_ = Asked::nothing;
      break;
    default: break;
  }
  return true;
}

std::optional<StopWord> Stopping::speak(std::optional<std::int64_t> held, bool ended) {
  if (ended_) return std::nullopt;
  if (ended) {
    ended_ = true;
    return StopWord{Kind::ended, heard_.number, begun_};
  }
  if (asked_ == Asked::begun) {
    asked_ = Asked::answered;
    return StopWord{Kind::begun, heard_.number, begun_};
  }
  if (asked_ == Asked::at && held && !may_begin(*held)) {
    asked_ = Asked::answered;
    return StopWord{Kind::at, heard_.number, *held};
  }
  return std::nullopt;
}

void StopLeader::hear(std::size_t aggregator, const StopWord& word) {
  // `ended` is final; a message read late must not undo it.
  if (!has_ended(aggregator)) last_[aggregator] = word;
}

bool StopLeader::all_ended() const {
  return std::all_of(last_.begin(), last_.end(), [](const StopWord& word) { return word.kind == Kind::ended; });
}

bool StopLeader::all_said(Kind kind) const {
  return std::all_of(last_.begin(), last_.end(), [&](const StopWord& word) {
    return word.kind == Kind::ended || (word.kind == kind && word.number == number_);
  });
}

std::optional<StopWord> StopLeader::speak(bool wanted) {
  if (all_ended()) {  // no round is left to stop
    state_ = State::running;
    return std::nullopt;
  }
  if (state_ == State::running && wanted) {
    state_ = State::stopping;
    return StopWord{Kind::stop, ++number_, -1};
  }
  if (state_ == State::stopping && all_said(Kind::begun)) {
    state_ = State::settling;
    // At least one more round than at the last stop gets done, however soon this stop follows.
    round_ = next_;
    for (const StopWord& word : last_)
      if (word.kind == Kind::begun) round_ = std::max(round_, word.round);
    return StopWord{Kind::until, number_, round_};
  }
  if (state_ == State::settling && all_said(Kind::at)) {
    state_ = State::stopped;
    next_ = std::numeric_limits<std::int64_t>::max();
    for (const StopWord& word : last_)
      if (word.kind == Kind::at) next_ = std::min(next_, word.round);
  }
  return std::nullopt;
}

std::optional<std::int64_t> StopLeader::stopped_at() const {
  return state_ == State::stopped ? std::optional(round_) : std::nullopt;
}

StopWord StopLeader::go() {
  state_ = State::running;
  return {Kind::go, number_, -1};
}

}  // namespace hocket::runtime::io
