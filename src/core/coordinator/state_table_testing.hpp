// Test support for the state tables: it prints what the inputs do in a state.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coordinator/state_table.hpp"

namespace hocket::coordinator::testing {

template <std::size_t count>
using Names = std::array<std::string_view, count>;

// Returns a line "input -> next: action" for each input that has an effect in the state. A comparison of these lines
// checks every cell of the state, since the other inputs have none. `words` returns the action as text; "": no action.
template <class State, class Input, class Action, std::size_t states, std::size_t inputs, class Words>
std::vector<std::string> effects_in(State state, StateStep<State, Action> (*step_of)(State, Input),
                                    const Names<states>& state_names, const Names<inputs>& input_names, Words words) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < inputs; ++i) {
    const StateStep<State, Action> step = step_of(state, static_cast<Input>(i));
    const std::string action{words(step.action)};
    if (step.next == state && action.empty()) continue;
    std::string line{input_names.at(i)};
    if (step.next != state) line.append(" -> ").append(state_names.at(static_cast<std::size_t>(step.next)));
    if (!action.empty()) line.append(": ").append(action);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace hocket::coordinator::testing
