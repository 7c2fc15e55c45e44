// The states of a delegation as a table: for every state and every input, it gives the next state and the action of
// AccessController. Pure.
//
//  none ──give──► held ──want──► recalled ──returned──► none
//                  │                │
//                  └── returned     └── expire, leave ──► none
//                      leave ──► none
//
// While a delegation is held, its member begins operations without a grant and reports them in batches, and no lease
// runs. So a member that is stopped is noticed when somebody else asks. The lease begins with RECALL_IO.
#pragma once

#include "coordinator/state_table.hpp"

namespace hocket::coordinator {

enum class DelegationState {
  none,      // the member waits for a grant of each operation
  held,      // the member begins operations without a grant
  recalled,  // the same, until its answer to RECALL_IO is here
};

enum class DelegationInput {
  give,      // the application was alone for long enough, and the member asks for a grant
  want,      // another application asks, or policies have changed
  returned,  // RETURN_IO
  expire,    // the lease is over
  leave,     // the member says BYE, or is lost
};

// Actions of AccessController.
enum class DelegationAction {
  nothing,
  give,    // marks the GRANT_IO
  recall,  // sends RECALL_IO, and begins the leases of the member
  end,     // the operations that have not ended are granted as any other; an idle hold goes on
  revoke,  // the same, without an idle hold
};

using DelegationTransition = StateStep<DelegationState, DelegationAction>;

namespace delegation_table {

using DelegationCell = StateCell<DelegationState, DelegationAction>;
using enum DelegationState;

inline constexpr DelegationCell stay{};
inline constexpr DelegationCell gives{held, DelegationAction::give};
inline constexpr DelegationCell recalls{recalled, DelegationAction::recall};
inline constexpr DelegationCell ends{none, DelegationAction::end};
inline constexpr DelegationCell revokes{none, DelegationAction::revoke};

// clang-format off
inline constexpr StateCells<DelegationState, DelegationAction, 3, 5> cells{{
    // none  held      recalled
    {gives,  stay,     stay},     // give
    {stay,   recalls,  stay},     // want
    {stay,   ends,     ends},     // returned
    {stay,   stay,     revokes},  // expire
    {stay,   revokes,  revokes},  // leave
}};
// clang-format on

}  // namespace delegation_table

// Returns the step for an input in a state.
constexpr DelegationTransition delegation_step(DelegationState state, DelegationInput input) {
  return look_up(delegation_table::cells, state, input);
}

}  // namespace hocket::coordinator
