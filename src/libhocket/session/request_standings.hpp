// The client's half of the protocol of grants as a table: for every standing of a request and every input, it gives the
// next standing and the actions of the member. coordinator/arbitration/request_states.hpp is the other half. Pure.
//
//  none ──ask──► queued ──grant──► offered ──take_up──► granted ──finish──► none
//                  │                  ▲ │                 │  ▲
//                  │                  │ └──────────► pause│  │lose
//                  │            grant │                   ▼  │
//                  │                paused ◄──stop──── to_pause
//                  ▼                  │
//                alone ◄──────────────┘ silence, long_wait, no_connection, …
//
// LEASE_EXPIRED leads to `expired`. FINISH_IO ends a request in every standing. A request under a delegation is offered
// at once.
#pragma once

#include <array>
#include <cstddef>

namespace hocket::runtime {

// The state of a request, as this process knows it.
enum class Standing {
  none,      // not requested, or finished
  queued,    // waiting for its first grant
  offered,   // granted, but not taken up yet
  granted,   // granted and in use
  to_pause,  // granted, and to be given back: PAUSE_IO has come
  paused,    // given back, waiting for the next grant
  expired,   // lost, because its lease has expired
  alone,     // continues uncoordinated: hocketd is missing or does not answer
};
inline constexpr std::size_t standings = 8;

constexpr bool is_waiting(Standing standing) { return standing == Standing::queued || standing == Standing::paused; }

// What arrives or happens.
enum class StandingInput {
  ask,               // the application requests a grant
  take_up,           // the application begins to use the grant
  stop,              // the application has stopped, or is between two accesses
  finish,            // the application ends the request
  grant,             // GRANT_IO: a grant, or a new bandwidth share
  queue,             // QUEUED_IO
  pause,             // PAUSE_IO
  pause_unattended,  // PAUSE_IO of an I/O step whose grant no thread waits for
  expire,            // LEASE_EXPIRED
  refuse,            // REFUSED, which does not name a request
  silence,           // no message has come for HOCKET_ANSWER_S
  long_wait,         // no grant has come for HOCKET_MAX_WAIT_S
  leave,             // the process ends its connection
  lose,              // the connection has ended: a thread that waits for the request notices by itself
  lose_step,         // the same for an I/O step, for which no thread has to wait
  no_connection,     // the connection has ended, and the waiting thread has given up
  drop,              // the request is forgotten: it was in vain, or is sent anew with another number
  ask_delegated,     // the application requests a grant where it has a delegation
  recall,            // the delegation under which it was begun has ended: it is a request as any other
};
inline constexpr std::size_t standing_inputs = 19;

// What the member does. A step may have several actions.
enum class StandingAction : unsigned {
  nothing = 0,
  start_waiting = 1U << 0U,  // begins both time limits of a wait
  hear = 1U << 1U,           // begins the limit HOCKET_ANSWER_S anew
  take_share = 1U << 2U,     // takes the bandwidth share from GRANT_IO
  whole_share = 1U << 3U,    // forgets the bandwidth share
  hold = 1U << 4U,           // renews the lease from now on
  release = 1U << 5U,        // renews it no more
  tell = 1U << 6U,           // shows the application that it is to pause
  answer = 1U << 7U,         // feeds `stop` at once: no thread is in the middle of an access
  send_start = 1U << 8U,     // sends START_IO
  send_paused = 1U << 9U,    // sends PAUSED_IO
  send_finish = 1U << 10U,   // sends FINISH_IO with the figures of the operation
  withdraw = 1U << 11U,      // sends FINISH_IO without figures, before the standing changes
};
constexpr StandingAction operator|(StandingAction a, StandingAction b) {
  return static_cast<StandingAction>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

struct StandingStep {
  Standing next = Standing::none;
  StandingAction actions = StandingAction::nothing;
  // False if the combination cannot happen while both sides keep to the protocol. The step is defined nevertheless.
  bool possible = true;
  constexpr bool does(StandingAction action) const {
    return (static_cast<unsigned>(actions) & static_cast<unsigned>(action)) != 0;
  }
};

namespace standing_table {

using enum StandingAction;

// A cell of the table. `stays` keeps the standing, whatever it is.
struct StandingCell {
  bool stays = true;
  StandingStep step{};
};
constexpr StandingCell stays_with(StandingAction actions) { return {true, {Standing::none, actions}}; }
constexpr StandingCell moves(Standing next, StandingAction actions) { return {false, {next, actions}}; }
constexpr StandingCell never(StandingCell cell) {
  cell.step.possible = false;
  return cell;
}

inline constexpr StandingCell stay{};
inline constexpr StandingCell no = never(stay);
inline constexpr StandingCell begins = moves(Standing::queued, start_waiting | send_start);
inline constexpr StandingCell has = moves(Standing::offered, send_start);
inline constexpr StandingCell offers = moves(Standing::offered, take_share);
inline constexpr StandingCell shares = stays_with(take_share);
inline constexpr StandingCell hears = stays_with(hear);
inline constexpr StandingCell uses = moves(Standing::granted, hold);
inline constexpr StandingCell holds = stays_with(hold);
inline constexpr StandingCell tells = moves(Standing::to_pause, tell);
inline constexpr StandingCell answers = moves(Standing::to_pause, answer);
inline constexpr StandingCell pauses = moves(Standing::paused, start_waiting | release | send_paused);
inline constexpr StandingCell expires = moves(Standing::expired, release);
inline constexpr StandingCell gives_up = moves(Standing::alone, release | withdraw);
inline constexpr StandingCell goes_on = moves(Standing::alone, release);
inline constexpr StandingCell whole = stays_with(whole_share);
inline constexpr StandingCell resumes = moves(Standing::granted, whole_share);  // the pause needs no answer any more
inline constexpr StandingCell cut_off = moves(Standing::alone, whole_share);
inline constexpr StandingCell ends = moves(Standing::none, release | send_finish);
inline constexpr StandingCell drops = moves(Standing::none, nothing);
inline constexpr StandingCell gone = never(drops);

// clang-format off
inline constexpr std::array<std::array<StandingCell, standings>, standing_inputs> cells{{
    // none       queued          offered  granted  to_pause       paused    expired  alone
    {begins,      no,             no,      no,      no,            no,       no,      no},      // ask
    {stay,        no,             uses,    stay,    holds,         stay,     stay,    stay},    // take_up
    {stay,        stay,           stay,    stay,    pauses,        stay,     stay,    stay},    // stop
    {never(ends), ends,           ends,    ends,    ends,          ends,     ends,    ends},    // finish
    {stay,        offers,         shares,  shares,  never(shares), offers,   no,      stay},    // grant
    {stay,        hears,          no,      no,      no,            hears,    no,      stay},    // queue
    {stay,        no,             tells,   tells,   no,            no,       no,      stay},    // pause
    {no,          no,             answers, tells,   no,            no,       no,      stay},    // pause_unattended
    {stay,        never(expires), expires, expires, expires,       expires,  stay,    expires}, // expire
    {no,          gives_up,       stay,    stay,    stay,          stay,     stay,    stay},    // refuse
    {stay,        gives_up,       no,      no,      no,            gives_up, no,      no},      // silence
    {stay,        gives_up,       no,      no,      no,            gives_up, no,      no},      // long_wait
    {stay,        gives_up,       no,      no,      no,            gives_up, no,      no},      // leave
    {no,          whole,          whole,   whole,   resumes,       whole,    whole,   whole},   // lose
    {no,          cut_off,        whole,   whole,   resumes,       cut_off,  whole,   whole},   // lose_step
    {stay,        goes_on,        no,      no,      no,            goes_on,  no,      no},      // no_connection
    {no,          drops,          gone,    gone,    gone,          gone,     drops,   drops},   // drop
    {has,         no,             no,      no,      no,            no,       no,      no},      // ask_delegated
    {no,          no,             stay,    holds,   never(holds),  no,       no,      no},      // recall
}};
// clang-format on

}  // namespace standing_table

// Returns the step for an input in a standing.
constexpr StandingStep standing_step(Standing standing, StandingInput input) {
  const standing_table::StandingCell& cell =
      standing_table::cells[static_cast<std::size_t>(input)][static_cast<std::size_t>(standing)];
  StandingStep step = cell.step;
  if (cell.stays) step.next = standing;
  return step;
}

}  // namespace hocket::runtime
