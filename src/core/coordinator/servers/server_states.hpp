// The states of an I/O server as a table: for every state and every input, it gives the next state and the action of
// Servers. Pure.
//
//   unknown ── arrive ──► up ── slow ──► slow            up, drained, slow ── lose, end ──► lost ── arrive ──► up
//   slow ── recover, need ──► up                         any ── leave ──► unknown
//   up, slow ── drain ──► drained ── add ──► up          slow ── add ──► up
//   up, drained, slow ── silent ──► hung ── end ──► lost
//   hung ── beat ──► up, or drained; the same run arrives again, after its connection had ended ──► up
//
// The server map holds the servers that are up, and those that became hung while they were up. A hung server may still
// carry out writes. So the map keeps it until its process has ended, which SERVER_ENDED reports. The end of its
// connection alone proves nothing then: a control thread may close it while another thread is inside a write.
#pragma once

#include <string_view>

#include "coordinator/state_table.hpp"

namespace hocket::coordinator {

enum class ServerState {
  unknown,  // not listed
  up,       // in the map
  drained,  // an operator took it out of the map
  slow,     // out of the map for a hold-off
  hung,     // its heartbeat is missing; the daemon kills it
  lost,     // its connection has ended without BYE, or its process has ended
};

enum class ServerInput {
  arrive,        // a valid SERVER
  slow,          // the detector or a monitor finds it slow
  slow_alone,    // the same, but no other server is in the map
  recover,       // its hold-off is over
  need,          // the map has become empty
  drain,         // SET_SERVER drain
  add,           // SET_SERVER add
  silent,        // its heartbeat is missing
  beat,          // SERVER_LOAD of a server that was not drained when it became silent
  beat_drained,  // the same of one that was
  lose,          // LOST
  leave,         // BYE
  end,           // SERVER_ENDED
};

enum class ServerAction {
  nothing,
  enter,     // lists it, last in the order of arrival
  refuse,    // refuses the request of the server, the tool, or the monitor
  hold_off,  // begins its hold-off
  vouch,     // hold-offs start anew: the operator vouches for the server
  forget,    // takes it off the list
  kill,      // has the daemon kill it
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
inline constexpr ServerCell hangs{S::hung, ServerAction::kill};
inline constexpr ServerCell loses{S::lost, ServerAction::nothing};
inline constexpr ServerCell leaves{S::unknown, ServerAction::forget};

// clang-format off
inline constexpr StateCells<ServerState, ServerAction, 6, 13> cells{{
    // unknown up     drained  slow     hung     lost
    {enters,  refuse,  refuse,  refuse,  refuse,  enters},  // arrive
    {refuse,  slows,   stay,    stay,    stay,    refuse},  // slow
    {refuse,  refuse,  stay,    stay,    stay,    refuse},  // slow_alone
    {stay,    stay,    stay,    returns, stay,    stay},    // recover
    {stay,    stay,    stay,    returns, stay,    stay},    // need
    {refuse,  drains,  stay,    drains,  refuse,  refuse},  // drain
    {refuse,  stay,    added,   added,   refuse,  refuse},  // add
    {stay,    hangs,   hangs,   hangs,   stay,    stay},    // silent
    {stay,    stay,    stay,    stay,    returns, stay},    // beat
    {stay,    stay,    stay,    stay,    drains,  stay},    // beat_drained
    {stay,    loses,   loses,   loses,   stay,    stay},    // lose
    {stay,    leaves,  leaves,  leaves,  leaves,  stay},    // leave
    {stay,    loses,   loses,   loses,   loses,   stay},    // end
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
    case ServerState::hung: return "hung";
    case ServerState::lost: return "lost";
  }
  return "";
}

}  // namespace hocket::coordinator
