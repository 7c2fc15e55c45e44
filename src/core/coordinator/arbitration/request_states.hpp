// The state machine of a request as a table: it defines the action for every input in every state, in any order of
// arrival. Pure.
//
//  START_IO ──> queued ──policy──> granted ──FINISH_IO────────────────> removed
//                 │  ^────PAUSED_IO───┤
//                 │                   └──lease expired, member gone──> removed
//                 └──FINISH_IO, member gone──> removed
#pragma once

#include <array>
#include <cstddef>

#include "model/target.hpp"

namespace hocket::coordinator {

// Inputs of the state machine. `grant` comes from the policy, `expire` from the timer, the others from members.
enum class RequestInput { grant, finish, renew, expire, leave, pause };

// Actions that AccessController::apply carries out.
enum class RequestAction {
  ignore,
  grant,     // moves the request to the granted ones
  withdraw,  // removes the request from the queue
  release,   // removes the request; an idle hold may begin
  revoke,    // removes the request, without an idle hold
  renew,     // begins the lease anew
  requeue,   // suspends the request: back to its place in the queue
};

// Returns the action for an input in a state.
constexpr RequestAction action_of(model::RequestState state, RequestInput input) {
  using enum RequestAction;
  constexpr std::array<std::array<RequestAction, 6>, 2> table{{
      // grant     finish       renew      expire     leave        pause
      {grant, withdraw, ignore, ignore, withdraw, ignore},  // queued
      {ignore, release, renew, revoke, revoke, requeue},    // granted
  }};
  return table[static_cast<std::size_t>(state)][static_cast<std::size_t>(input)];
}

}  // namespace hocket::coordinator
