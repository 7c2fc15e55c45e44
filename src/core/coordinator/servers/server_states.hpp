// The states of an I/O server as a table: for every state and every input, it gives the next state and the action of
// Servers. Pure.
//
//   unknown ── arrive ──► up ── slow ──► slow            any ── lose ──► lost ── arrive ──► up
//   slow ── recover, need ──► up                         any ── leave ──► unknown
//   up, slow ── drain ──► drained ── add ──► up          slow ── add ──► up
//
// The server map holds the servers that are up.
#pragma once

#include <string_view>

#include "coordinator/state_table.hpp"

namespace hocket::coordinator {

enum class ServerState {
  unknown,  // not listed
  up,       // in the map
  drained,  // an operator took it out of the map
  slow,     // out of the map for a hold-off
  lost,     // its connection has ended without BYE
};

enum class ServerInput {
  arrive,      // a valid SERVER
  slow,        // the detector or a monitor finds it slow
  slow_alone,  // the same, but no other server is in the map
  recover,     // its hold-off is over
  need,        // the map has become empty
  drain,       // SET_SERVER drain
  add,         // SET_SERVER add
  lose,        // LOST
  leave,       // BYE
};

enum class ServerAction {
  nothing,
  enter,     // lists it, last in the order of arrival
  refuse,    // refuses the request of the server, the tool, or the monitor
  hold_off,  // begins its hold-off
  vouch,     // hold-offs start anew: the operator vouches for the server
  forget,    // takes it off the list
};

using ServerStep = StateStep<ServerState, ServerAction>;

namespace server_table {

using ServerCell = StateCell<ServerState, ServerAction>;
using S = ServerState;

inline constexpr ServerCell stay{};
inline constexpr ServerCell enters{S::up, ServerAction::enter};
inline constexpr ServerCell refuse{{}, ServerAction::refuse};
inline constexpr ServerCell slows{S::slow, ServerAction::hold_off};
inline constexpr ServerCell returns{S::up, ServerAction::nothing};
inline constexpr ServerCell drains{S::drained, ServerAction::nothing};
inline constexpr ServerCell added{S::up, ServerAction::vouch};
inline constexpr ServerCell loses{S::lost, ServerAction::nothing};
inline constexpr ServerCell leaves{S::unknown, ServerAction::forget};

// clang-format off
inline constexpr StateCells<ServerState, ServerAction, 5, 9> cells{{
    // unknown up     drained  slow     lost
    {enters,  refuse,  refuse,  refuse,  enters},  // arrive
    {refuse,  slows,   stay,    stay,    refuse},  // slow
    {refuse,  refuse,  stay,    stay,    refuse},  // slow_alone
    {stay,    stay,    stay,    returns, stay},    // recover
    {stay,    stay,    stay,    returns, stay},    // need
    {refuse,  drains,  stay,    drains,  refuse},  // drain
    {refuse,  stay,    added,   added,   refuse},  // add
    {stay,    loses,   loses,   loses,   stay},    // lose
    {stay,    leaves,  leaves,  leaves,  stay},    // leave
}};
// clang-format on

}  // namespace server_table

// Returns the step for an input in a state.
constexpr ServerStep server_step(ServerState state, ServerInput input) {
  return look_up(server_table::cells, state, input);
}

// Returns the name of the state in listings; "" for `unknown`.
constexpr std::string_view name_of(ServerState state) {
  switch (state) {
    case ServerState::unknown: return "";
    case ServerState::up: return "up";
    case ServerState::drained: return "drained";
    case ServerState::slow: return "slow";
    case ServerState::lost: return "lost";
  }
  return "";
}

}  // namespace hocket::coordinator
