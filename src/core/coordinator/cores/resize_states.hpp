// The states of an application's resize, from its request to its report, as a table: for every state and every input,
// it gives the next state and the action of Resizing. Pure.
//
//           policy_asks               answer, show, lose
//       ┌──────────────────► of_policy ────────────────► none
//  none ┤                        │ tool_asks
//       │   tool_asks            ▼         reach           pass            expire
//       └──────────────────► of_tool ───────────────► due ──────► overdue ────────► none
//                                └─────────┬───────────┴─────────────┘
//                                          └── answer, lose ──► none
#pragma once

#include "coordinator/state_table.hpp"

namespace hocket::coordinator {

enum class ResizeState {
  none,       // no resize is under way
  of_policy,  // a policy's; its end is reported to no tool
  of_tool,    // a tool's
  due,        // a tool's; an I/O phase at or after its iteration was reported
  overdue,    // a tool's; a later phase was reported without an answer, and the time limit runs
};

enum class ResizeInput {
  tool_asks,    // a valid RESIZE
  policy_asks,  // a resize that a policy decided on
  answer,       // RECONFIGURATION of this request
  show,         // the application shows its size, which counts as the answer to a policy
  reach,        // IO_PHASE at or after the iteration of the resize
  pass,         // IO_PHASE after the one that reached the iteration
  expire,       // the same after the time limit
  lose,         // the commanding member is lost, or the application ends
  withdraw,     // WITHDRAW_RESIZE of the tool, or its loss
  begin,        // WITHDRAW_RESIZE {begun} of the application
};

// Actions of Resizing. A step to `none` also forgets the resize.
enum class ResizeAction {
  nothing,
  send,         // sends RECONFIGURE
  refuse,       // refuses the new resize: a tool's has precedence
  report,       // forwards RECONFIGURATION to the tool
  note,         // notes the iteration of the phase
  start_limit,  // begins the time limit
  give_up,      // answers the tool with REFUSED
  withdraw,     // sends WITHDRAW_RESIZE to the commanding member
  tell_begun,   // forwards WITHDRAW_RESIZE {begun} to the tool
};

using ResizeStep = StateStep<ResizeState, ResizeAction>;

namespace resize_table {

using ResizeCell = StateCell<ResizeState, ResizeAction>;
using enum ResizeState;

inline constexpr ResizeCell stay{};
inline constexpr ResizeCell asks{of_policy, ResizeAction::send};
inline constexpr ResizeCell tools{of_tool, ResizeAction::send};
inline constexpr ResizeCell refuse{{}, ResizeAction::refuse};
inline constexpr ResizeCell ends{none, ResizeAction::nothing};
inline constexpr ResizeCell reports{none, ResizeAction::report};
inline constexpr ResizeCell reaches{due, ResizeAction::note};
inline constexpr ResizeCell passes{overdue, ResizeAction::start_limit};
inline constexpr ResizeCell gives_up{none, ResizeAction::give_up};
inline constexpr ResizeCell back{{}, ResizeAction::withdraw};
inline constexpr ResizeCell begun{{}, ResizeAction::tell_begun};

// clang-format off
inline constexpr StateCells<ResizeState, ResizeAction, 5, 10> cells{{
    // none  of_policy  of_tool   due       overdue
    {tools,  tools,     refuse,   refuse,   refuse},    // tool_asks
    {asks,   asks,      refuse,   refuse,   refuse},    // policy_asks
    {stay,   ends,      reports,  reports,  reports},   // answer
    {stay,   ends,      stay,     stay,     stay},      // show
    {stay,   stay,      reaches,  stay,     stay},      // reach
    {stay,   stay,      stay,     passes,   stay},      // pass
    {stay,   stay,      stay,     stay,     gives_up},  // expire
    {stay,   ends,      gives_up, gives_up, gives_up},  // lose
    {stay,   stay,      back,     back,     back},      // withdraw
    {stay,   stay,      begun,    begun,    begun},     // begin
}};
// clang-format on

}  // namespace resize_table

// Returns the step for an input in a state.
constexpr ResizeStep resize_step(ResizeState state, ResizeInput input) {
  return look_up(resize_table::cells, state, input);
}

// True if a tool waits for the end of the resize. Policies do not replace it.
constexpr bool is_of_tool(ResizeState state) {
  return resize_step(state, ResizeInput::policy_asks).action == ResizeAction::refuse;
}

}  // namespace hocket::coordinator
