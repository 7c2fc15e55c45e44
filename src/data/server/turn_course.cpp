#include "server/turn_course.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace hocket::server {
namespace {

struct TurnCell {
  std::optional<TurnState> next{};  // none: the state stays
  TurnMessage message = TurnMessage::none;
};

using S = TurnState;
constexpr TurnCell stay{};
constexpr TurnCell asks{S::asked, TurnMessage::start};
constexpr TurnCell uses{S::has, TurnMessage::none};
constexpr TurnCell yields{S::yields, TurnMessage::none};
constexpr TurnCell stops{S::pauses, TurnMessage::none};
constexpr TurnCell pauses{S::asked, TurnMessage::paused};
constexpr TurnCell ends{S::idle, TurnMessage::finish};
constexpr TurnCell is_over{S::idle, TurnMessage::none};
constexpr TurnCell gives_up{S::alone, TurnMessage::finish};
constexpr TurnCell is_alone{S::alone, TurnMessage::none};

// clang-format off
constexpr std::array<std::array<TurnCell, turn_states>, turn_inputs> cells{{
    // idle  asked     has       yields    pauses    alone
    {asks,   stay,     stay,     stay,     stay,     stay},      // hold
    {stay,   ends,     ends,     ends,     ends,     is_over},   // done
    {stay,   stay,     stay,     ends,     pauses,   stay},      // quiet
    {stay,   uses,     stay,     stay,     stay,     stay},      // grant
    {stay,   stay,     stops,    stay,     stay,     stay},      // preempt
    {stay,   stay,     yields,   stay,     stay,     stay},      // slice_over
    {stay,   gives_up, stay,     stay,     stay,     stay},      // give_up
    {stay,   stay,     is_over,  is_over,  is_over,  stay},      // expire
    {stay,   is_alone, is_alone, is_alone, is_alone, stay},      // lose
}};
// clang-format on

}  // namespace

TurnStep turn_step(TurnState state, TurnInput input) {
  const TurnCell& cell = cells[static_cast<std::size_t>(input)][static_cast<std::size_t>(state)];
  return {cell.next.value_or(state), cell.message};
}

void TurnCourse::feed(TurnInput input, Time now, Messages& sent) {
  const TurnStep step = turn_step(state_, input);
  if (step.message != TurnMessage::none) sent.push_back(step.message);
  if (step.next != state_) since_ = heard_ = now;
  state_ = step.next;
}

TurnCourse::Messages TurnCourse::take(TurnInput input, Time now) {
  Messages sent;
  feed(input, now, sent);
  return sent;
}

TurnCourse::Messages TurnCourse::look(Held held, Time now) {
  Messages sent;
  const bool is_empty = !held.any && !held.under_way;
  empty_ = is_empty ? std::min(empty_, now) : Time::max();
  if (state_ == S::asked && now >= std::min(heard_ + limits_.answer, since_ + limits_.longest))
    feed(TurnInput::give_up, now, sent);
  // A turn that is waited for in vain is withdrawn at once.
  if (is_empty && (state_ != S::has || now >= empty_ + limits_.linger)) feed(TurnInput::done, now, sent);
  if (state_ == S::has && now >= since_ + limits_.slice) feed(TurnInput::slice_over, now, sent);
  if (!held.under_way) feed(TurnInput::quiet, now, sent);
  if (held.any) feed(TurnInput::hold, now, sent);
  return sent;
}

Time TurnCourse::due() const {
  if (state_ == S::asked) return std::min(heard_ + limits_.answer, since_ + limits_.longest);
  if (state_ != S::has) return Time::max();
  const Time slice_over = since_ + limits_.slice;
  return empty_ == Time::max() ? slice_over : std::min(slice_over, empty_ + limits_.linger);
}

}  // namespace hocket::server
