// A StoringState says what an I/O server still has to store before a new epoch of the server map may begin. This file
// is its table. Pure.
//
//   clear ── tell ──► owes ── answer ──► clear          clear, owes ── lose ──► cut ── end, arrive ──► clear
//
// A server that writes behind holds data for the stripes that the map gives it. When another map moves stripes, the
// data must be in the file before any application uses the new map. Otherwise one byte would have two servers, and the
// older data could overwrite the newer ones. So the coordinator hands a new map out when no server owes or is cut.
#pragma once

#include "coordinator/state_table.hpp"

namespace hocket::coordinator {

enum class StoringState {
  clear,  // holds nothing of earlier epochs
  owes,   // was sent the new map, and has not answered
  cut,    // its connection has ended, but its process may live and store what it holds
};

enum class StoringInput {
  tell,    // a new epoch: the server is sent the map
  answer,  // MAP_STORED of the newest epoch
  lose,    // LOST
  end,     // SERVER_ENDED, or BYE: it has stored all, or what it held is gone with it
  arrive,  // SERVER: a new process, or the old one again, which is sent the map
};

enum class StoringAction {
  nothing,
  send,  // sends it the map
};

using StoringStep = StateStep<StoringState, StoringAction>;

namespace storing_table {

using StoringCell = StateCell<StoringState, StoringAction>;
using S = StoringState;

inline constexpr StoringCell stay{};
inline constexpr StoringCell owes{S::owes, StoringAction::send};
inline constexpr StoringCell clears{S::clear, StoringAction::nothing};
inline constexpr StoringCell cuts{S::cut, StoringAction::nothing};

// clang-format off
inline constexpr StateCells<StoringState, StoringAction, 3, 5> cells{{
    // clear  owes     cut
    {owes,    owes,    stay},    // tell
    {stay,    clears,  stay},    // answer
    {cuts,    cuts,    stay},    // lose
    {stay,    clears,  clears},  // end
    {stay,    stay,    clears},  // arrive
}};
// clang-format on

}  // namespace storing_table

// Returns the step for an input in a state.
constexpr StoringStep storing_step(StoringState state, StoringInput input) {
  return look_up(storing_table::cells, state, input);
}

}  // namespace hocket::coordinator
