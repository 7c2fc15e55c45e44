// The life of a request, as a table: what happens to it in which state, whatever comes in whatever order.
//
//   START_IO ──> queued ──policy──> granted ──FINISH_IO──────────────> gone
//                  │  ^────PAUSED_IO───┤
//                  │                   └──lease over, member gone──> gone
//                  └──FINISH_IO, member gone──> gone
#pragma once

#include <array>
#include <cstddef>

#include "model/target.hpp"

namespace hocket::coordinator {

enum class RequestInput { grant, finish, renew, expire, leave, pause };

enum class RequestAction {
  ignore,
  grant,     // becomes granted
  withdraw,  // is gone from the queue
  release,   // is gone; the target is kept for the application's next operation
  revoke,    // is gone; the target is not kept
  renew,     // stays granted, for another lease
  requeue,   // waits again
};

constexpr RequestAction action_of(model::RequestState state, RequestInput input) {
  using A = RequestAction;
  constexpr std::array<std::array<A, 6>, 2> table{{
      // grant     finish       renew      expire     leave        pause
      {A::grant, A::withdraw, A::ignore, A::ignore, A::withdraw, A::ignore},  // queued
      {A::ignore, A::release, A::renew, A::revoke, A::revoke, A::requeue},    // granted
  }};
  return table[static_cast<std::size_t>(state)][static_cast<std::size_t>(input)];
}

}  // namespace hocket::coordinator
