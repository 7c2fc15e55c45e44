// The states of a policy's change of an application's size, as a table: for every state and every input, it gives the
// next state and the actions of Steering. Pure.
//
//  permanent:    none, changed ──change──► changing ──reach──► changed
//  temporary:    none, changed ──shift──► shifting ──reach──► returning ──back──► awaited ──phase──► below
//  measurement:  none ──probe──► probing ──reach──► measuring ──measured──► hurrying
//
//  all but awaited ──a refusal, a time limit, its phase, its cores are needed──► hurrying ──back──► below
//
// "Below" is the permanent change under a temporary one: `changed`, or `none` if there is no such change. If nobody can
// be asked to return, `unasked` stands for `returning`, and `stranded` for `hurrying`, until a retry succeeds.
#pragma once

#include "coordinator/state_table.hpp"

namespace hocket::coordinator {

enum class CourseState {
  none,       // no change is in force
  changing,   // a permanent change is requested
  changed,    // the permanent change is in force
  shifting,   // a temporary change is requested
  returning,  // the temporary change is reached, and its planned return is requested
  unasked,    // the same, but the return is not requested, since nobody could be asked
  awaited,    // the application has returned as planned; the predicted I/O phase is still to come
  probing,    // a change for a measurement is requested
  measuring,  // the application is measured at another size
  hurrying,   // the return at the next control point, at any iteration, is requested
  stranded,   // the same, but the return is not requested
};

enum class CourseInput {
  change,     // a policy decides on a permanent change
  shift,      // a policy decides on a temporary change
  probe,      // the times at another size are needed
  reach,      // the answer: the application has the size that it was asked for
  too_late,   // the same, past the iteration of the planned return
  refuse,     // the answer: it has another size
  back,       // the application has the size that it was to return to
  unsent,     // nobody can be asked to return
  retry,      // MALLEABLE or an I/O phase: the return may be requested again
  lose,       // the member that was asked is lost, and the application continues
  phase,      // an I/O phase has begun since the decision
  overdue,    // the time limit of the course is over
  own_size,   // the application has another size without a request
  measured,   // the measurement is done
  reclaim,    // other applications need its cores
  disown,     // the policy of the permanent change is no longer in force
  no_change,  // a temporary change is over, or a return is complete, and no permanent change remains
  take_over,  // a tool resizes the application
};

// Actions of Steering, in the order in which it carries them out. A step may have several.
enum class CourseAction : unsigned {
  nothing = 0,
  begin = 1U << 0U,         // records the decision whose request was sent
  keep_cores = 1U << 1U,    // keeps the cores of the requested size: the application may have begun the request
  cancel = 1U << 2U,        // publishes that the decision is given up
  go_back = 1U << 3U,       // requests the return
  plan_back = 1U << 4U,     // requests the return for its planned iteration
  ask_again = 1U << 5U,     // requests the return again, unless it was refused too often
  settle = 1U << 6U,        // records that the permanent change is in force
  measure = 1U << 7U,       // begins the time limit of a measurement
  arrive = 1U << 8U,        // publishes that the cores are free again
  drop_passing = 1U << 9U,  // ends the temporary change
  forget = 1U << 10U,       // ends the course
};
constexpr CourseAction operator|(CourseAction a, CourseAction b) {
  return static_cast<CourseAction>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr bool does(CourseAction actions, CourseAction action) {
  return (static_cast<unsigned>(actions) & static_cast<unsigned>(action)) != 0;
}

using CourseStep = StateStep<CourseState, CourseAction>;

namespace course_table {

using CourseCell = StateCell<CourseState, CourseAction>;
using enum CourseState;
using enum CourseAction;

inline constexpr CourseCell stay{};
inline constexpr CourseCell changes{changing, begin};
inline constexpr CourseCell shifts{shifting, begin};
inline constexpr CourseCell probes{probing, begin};
inline constexpr CourseCell settles{changed, settle};
inline constexpr CourseCell plans{returning, plan_back};
inline constexpr CourseCell tests{measuring, measure};
inline constexpr CourseCell again{hurrying, ask_again};
inline constexpr CourseCell arrives{awaited, arrive};
inline constexpr CourseCell returns{changed, arrive};
inline constexpr CourseCell waits{unasked, nothing};
inline constexpr CourseCell strands{stranded, nothing};
inline constexpr CourseCell asks{returning, go_back};
inline constexpr CourseCell hurries{hurrying, go_back};
inline constexpr CourseCell recalls{hurrying, keep_cores | go_back};
inline constexpr CourseCell fails{hurrying, cancel | go_back};
inline constexpr CourseCell aborts{hurrying, keep_cores | cancel | go_back};
inline constexpr CourseCell lets_be{none, cancel | forget};
inline constexpr CourseCell drops{changed, drop_passing};
inline constexpr CourseCell ends{none, forget};

// clang-format off
inline constexpr StateCells<CourseState, CourseAction, 11, 18> cells{{
    // none   changing changed  shifting returning unasked  awaited probing  measuring hurrying stranded
    {changes, stay,    changes, stay,    stay,     stay,    stay,   stay,    stay,     stay,    stay},    // change
    {shifts,  stay,    shifts,  stay,    stay,     stay,    stay,   stay,    stay,     stay,    stay},    // shift
    {probes,  stay,    stay,    stay,    stay,     stay,    stay,   stay,    probes,   stay,    stay},    // probe
    {stay,    settles, stay,    plans,   stay,     stay,    stay,   tests,   stay,     stay,    stay},    // reach
    {stay,    stay,    stay,    fails,   stay,     stay,    stay,   stay,    stay,     stay,    stay},    // too_late
    {stay,    fails,   stay,    fails,   again,    stay,    stay,   fails,   stay,     again,   stay},    // refuse
    {stay,    stay,    stay,    stay,    arrives,  arrives, stay,   stay,    stay,     returns, returns}, // back
    {stay,    stay,    stay,    stay,    waits,    stay,    stay,   stay,    stay,     strands, stay},    // unsent
    {stay,    stay,    stay,    stay,    stay,     asks,    stay,   stay,    stay,     stay,    hurries}, // retry
    {stay,    fails,   stay,    fails,   strands,  stay,    stay,   fails,   stay,     strands, stay},    // lose
    {stay,    stay,    stay,    aborts,  fails,    fails,   drops,  stay,    stay,     stay,    stay},    // phase
    {stay,    aborts,  lets_be, aborts,  fails,    fails,   drops,  aborts,  fails,    stay,    stay},    // overdue
    {stay,    stay,    lets_be, stay,    stay,     stay,    drops,  stay,    fails,    stay,    stay},    // own_size
    {stay,    stay,    stay,    stay,    stay,     stay,    stay,   stay,    hurries,  stay,    stay},    // measured
    {stay,    recalls, hurries, recalls, hurries,  hurries, stay,   recalls, hurries,  stay,    stay},    // reclaim
    {stay,    recalls, hurries, stay,    stay,     stay,    stay,   stay,    stay,     stay,    stay},    // disown
    {stay,    stay,    ends,    stay,    stay,     stay,    stay,   stay,    stay,     stay,    stay},    // no_change
    {stay,    ends,    ends,    ends,    ends,     ends,    ends,   ends,    ends,     ends,    ends},    // take_over
}};
// clang-format on

}  // namespace course_table

// Returns the step for an input in a state.
constexpr CourseStep course_step(CourseState state, CourseInput input) {
  return look_up(course_table::cells, state, input);
}

// True if the input has an effect in the state.
constexpr bool has_effect(CourseState state, CourseInput input) {
  const CourseStep step = course_step(state, input);
  return step.next != state || step.action != CourseAction::nothing;
}

// True if the size of a decision is requested and not answered.
constexpr bool is_under_way(CourseState state) { return has_effect(state, CourseInput::reach); }
// True if the return has to be requested as soon as somebody can be asked.
constexpr bool needs_retry(CourseState state) { return has_effect(state, CourseInput::retry); }
// True if a request is not answered: of the decision's size, or of the return.
constexpr bool awaits_answer(CourseState state) { return has_effect(state, CourseInput::refuse); }
// True if the application has to return at its next control point.
constexpr bool is_hurried(CourseState state) {
  return state == CourseState::hurrying || state == CourseState::stranded;
}

}  // namespace hocket::coordinator
