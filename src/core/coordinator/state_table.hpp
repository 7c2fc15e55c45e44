// A state table gives the next state and the action for every input in every state. An input that means nothing in a
// state changes nothing, so messages may cross. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

namespace hocket::coordinator {

// The effect of an input in a state.
template <class State, class Action>
struct StateStep {
  State next{};
  Action action{};
};

// A cell of a table.
template <class State, class Action>
struct StateCell {
  std::optional<State> next{};  // none: the state stays, whatever it is
  Action action{};
};

// The cells of a table: one row for each input, one column for each state, in the order of the enumerations.
template <class State, class Action, std::size_t states, std::size_t inputs>
using StateCells = std::array<std::array<StateCell<State, Action>, states>, inputs>;

// Returns the effect of an input in a state.
template <class State, class Input, class Action, std::size_t states, std::size_t inputs>
constexpr StateStep<State, Action> look_up(const StateCells<State, Action, states, inputs>& cells, State state,
                                           Input input) {
  const StateCell<State, Action>& cell = cells[static_cast<std::size_t>(input)][static_cast<std::size_t>(state)];
  return {cell.next.value_or(state), cell.action};
}

}  // namespace hocket::coordinator
