// The course of a server's turn for one application: when it asks, stores, and gives the turn back. The table and its
// time limits. Pure.
//
//  idle ──hold──► asked ──grant──► has ──slice_over──► yields ──quiet──► idle
//                  │ ▲              └──preempt──► pauses
//                  │ └─────────────────quiet─────────┘
//                  └──give_up, lose──► alone        done leads to idle from everywhere
//
// A server that answers writes before they are in the file stores them later, when nobody waits for that. It then takes
// its turn at the target as a member of the application that wrote. What somebody waits for is stored in any state.
#pragma once

#include <vector>

#include "base/time.hpp"

namespace hocket::server {

enum class TurnState {
  idle,    // has asked for nothing
  asked,   // START_IO was sent, or PAUSED_IO
  has,     // granted
  yields,  // granted; begins no batch, and gives the turn back when none is under way
  pauses,  // likewise, because PAUSE_IO came
  alone,   // stores without a turn: hocketd is missing or silent, or the wait was too long
};
inline constexpr std::size_t turn_states = 6;

enum class TurnInput {
  hold,        // the server holds something
  done,        // it holds nothing any more
  quiet,       // no batch of the application is under way
  grant,       // GRANT_IO
  preempt,     // PAUSE_IO
  slice_over,  // the grant is as long as one may be
  give_up,     // the wait has passed a time limit, or hocketd refuses
  expire,      // LEASE_EXPIRED
  lose,        // the connection has ended
};
inline constexpr std::size_t turn_inputs = 9;

// The message that a step sends.
enum class TurnMessage { none, start, finish, paused };

struct TurnStep {
  TurnState next{};
  TurnMessage message = TurnMessage::none;
};

// Returns the step for an input in a state. An input that means nothing in a state changes nothing, so messages may
// cross.
TurnStep turn_step(TurnState state, TurnInput input);

struct TurnLimits {
  Duration longest = std::chrono::seconds{30};     // wait for a grant; as long as the kernel keeps dirty pages
  Duration answer = std::chrono::seconds{5};       // without a message of hocketd during that wait
  Duration slice = std::chrono::seconds{1};        // of a grant, so that others get their turn between two
  Duration linger = std::chrono::milliseconds{2};  // before a grant ends, for writes that follow at once
};

class TurnCourse {
 public:
  using Messages = std::vector<TurnMessage>;

  explicit TurnCourse(TurnLimits limits) : limits_(limits) {}

  // What the server holds of the application.
  struct Held {
    bool any = false;
    bool under_way = false;  // batches of it are
  };
  // Takes in what is held now, and the time. Returns what is to be sent, in order. To be called when `held` changes,
  // and when `due` has come.
  Messages look(Held held, Time now);
  // Takes in a message of hocketd, or the loss of the connection.
  Messages take(TurnInput input, Time now);
  // Notes that hocketd has said that the request is queued.
  void hear(Time now) { heard_ = now; }

  TurnState state() const { return state_; }
  bool may_store() const { return state_ == TurnState::has || state_ == TurnState::alone; }
  bool has_lease() const {
    return state_ == TurnState::has || state_ == TurnState::yields || state_ == TurnState::pauses;
  }
  // Returns the time of the next `look`, whatever comes until then; Time::max() if it is not needed.
  Time due() const;
  // True if the wait has passed a limit that is not hocketd's silence.
  bool waited_too_long(Time now) const { return state_ == TurnState::asked && now - since_ >= limits_.longest; }

 private:
  void feed(TurnInput input, Time now, Messages& sent);

  TurnLimits limits_;
  TurnState state_ = TurnState::idle;
  Time since_{};              // of the state
  Time heard_{};              // asked: the last message of hocketd
  Time empty_ = Time::max();  // since when nothing is held; Time::max(): something is
};

}  // namespace hocket::server
