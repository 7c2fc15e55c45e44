// The states of a join, from its request to its end, as a table: for every state and every input, it gives the next
// state and the action of Joining. Pure.
//
//  none ──start──► starting ──all_ready──► complete ──fail──► broken
//                     │                       │                 │
//                     └── fail, expire, quit  └── end ──────────┴──► none
//                         stop, end, … ──► none
//
// The started processes are killed if the join ends before all are ready. Afterwards the application may be in
// MPI_Comm_accept with any of them, and its MPI may not survive the kill of that one. Processes that it does not take
// in end by themselves. If the application itself stops the join or dies, they are killed in each state.
#pragma once

#include "coordinator/state_table.hpp"

namespace hocket::coordinator {

enum class JoinState {
  none,      // no join is under way
  starting,  // not all processes are ready, and the time limit runs
  complete,  // all were ready, and the asking member knows it
  broken,    // one of them has failed since, and the asking member knows that too
};

enum class JoinInput {
  start,      // a valid START_PROCESSES
  ready,      // PROCESS_READY of a started process
  all_ready,  // that was the last one
  fail,       // PROCESS_FAILED, or a process that was ready is lost
  expire,     // the time limit is over
  quit,       // a process that was ready says BYE: it was not taken in
  stop,       // STOP_PROCESSES of the application
  end,        // RECONFIGURATION: the processes have joined, or are no longer wanted
  hand_over,  // the asking member says BYE; its successors are about to report
  abandon,    // the asking member is lost, or the application ends
};

// Actions of Joining. A step to `none` also forgets the join.
enum class JoinAction {
  nothing,
  start,        // sends START_PROCESSES to the daemon and begins the time limit
  refuse,       // refuses the request: another one is under way
  count,        // counts the process as ready
  tell_ready,   // sends PROCESSES_READY
  tell_failed,  // sends PROCESSES_READY with the reason of the failure
  kill,         // sends STOP_PROCESSES to the daemon
  give_up,      // does both, first `kill`
};

using JoinTransition = StateStep<JoinState, JoinAction>;

namespace join_table {

using JoinCell = StateCell<JoinState, JoinAction>;
using enum JoinState;

inline constexpr JoinCell stay{};
inline constexpr JoinCell starts{starting, JoinAction::start};
inline constexpr JoinCell refuse{{}, JoinAction::refuse};
inline constexpr JoinCell counts{{}, JoinAction::count};
inline constexpr JoinCell completes{complete, JoinAction::tell_ready};
inline constexpr JoinCell breaks{broken, JoinAction::tell_failed};
inline constexpr JoinCell gives_up{none, JoinAction::give_up};
inline constexpr JoinCell kills{none, JoinAction::kill};
inline constexpr JoinCell ends{none, JoinAction::nothing};

// clang-format off
inline constexpr StateCells<JoinState, JoinAction, 4, 10> cells{{
    // none   starting   complete  broken
    {starts,  refuse,    refuse,   refuse},  // start
    {stay,    counts,    stay,     stay},    // ready
    {stay,    completes, stay,     stay},    // all_ready
    {stay,    gives_up,  breaks,   stay},    // fail
    {stay,    gives_up,  stay,     stay},    // expire
    {stay,    gives_up,  stay,     stay},    // quit
    {stay,    kills,     kills,    kills},   // stop
    {stay,    kills,     ends,     ends},    // end
    {stay,    kills,     stay,     stay},    // hand_over
    {stay,    kills,     kills,    kills},   // abandon
}};
// clang-format on

}  // namespace join_table

// Returns the step for an input in a state.
constexpr JoinTransition join_step(JoinState state, JoinInput input) {
  return look_up(join_table::cells, state, input);
}

}  // namespace hocket::coordinator
