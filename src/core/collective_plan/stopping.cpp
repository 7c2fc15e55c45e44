#include "collective_plan/stopping.hpp"

#include <algorithm>

namespace hocket::collective_plan {

bool Stopping::hear(const StopWord& word) {
  if (word == heard_) return false;
  heard_ = word;
  switch (word.kind) {
    case StopWord::Signal::stop:
      limit_ = begun_;
      asked_ = AwaitedAnswer::begun;
      break;
    case StopWord::Signal::until:
      limit_ = word.round;
      asked_ = AwaitedAnswer::at;
      break;
    case StopWord::Signal::go:
      limit_ = unlimited;
      asked_ = AwaitedAnswer::nothing;
      break;
    default: break;
  }
  return true;
}

std::optional<StopWord> Stopping::speak(std::optional<std::int64_t> held, bool ended) {
  if (ended_) return std::nullopt;
  if (ended) {
    ended_ = true;
    return StopWord{StopWord::Signal::ended, heard_.number, begun_};
  }
  if (asked_ == AwaitedAnswer::begun) {
    asked_ = AwaitedAnswer::answered;
    return StopWord{StopWord::Signal::begun, heard_.number, begun_};
  }
  if (asked_ == AwaitedAnswer::at && held && !may_begin(*held)) {
    asked_ = AwaitedAnswer::answered;
    return StopWord{StopWord::Signal::at, heard_.number, *held};
  }
  return std::nullopt;
}

void StopLeader::hear(std::size_t aggregator, const StopWord& word) {
  // `ended` is final; a message read late must not undo it.
  if (!has_ended(aggregator)) last_[aggregator] = word;
}

bool StopLeader::all_ended() const {
  return std::all_of(last_.begin(), last_.end(),
                     [](const StopWord& word) { return word.kind == StopWord::Signal::ended; });
}

bool StopLeader::all_said(StopWord::Signal kind) const {
  return std::all_of(last_.begin(), last_.end(), [&](const StopWord& word) {
    return word.kind == StopWord::Signal::ended || (word.kind == kind && word.number == number_);
  });
}

std::optional<StopWord> StopLeader::speak(bool wanted) {
  if (all_ended()) {  // no round is left to stop
    state_ = StopState::running;
    return std::nullopt;
  }
  if (state_ == StopState::running && wanted) {
    state_ = StopState::stopping;
    return StopWord{StopWord::Signal::stop, ++number_, -1};
  }
  if (state_ == StopState::stopping && all_said(StopWord::Signal::begun)) {
    state_ = StopState::settling;
    // At least one more round than at the last stop gets done, however soon this stop follows.
    round_ = next_;
    for (const StopWord& word : last_)
      if (word.kind == StopWord::Signal::begun) round_ = std::max(round_, word.round);
    return StopWord{StopWord::Signal::until, number_, round_};
  }
  if (state_ == StopState::settling && all_said(StopWord::Signal::at)) {
    state_ = StopState::stopped;
    next_ = std::numeric_limits<std::int64_t>::max();
    for (const StopWord& word : last_)
      if (word.kind == StopWord::Signal::at) next_ = std::min(next_, word.round);
  }
  return std::nullopt;
}

std::optional<std::int64_t> StopLeader::stopped_at() const {
  return state_ == StopState::stopped ? std::optional(round_) : std::nullopt;
}

StopWord StopLeader::go() {
  state_ = StopState::running;
  return {StopWord::Signal::go, number_, -1};
}

}  // namespace hocket::collective_plan
