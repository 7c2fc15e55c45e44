// Test support for request_standings.hpp: all standings and inputs, and their names.
#pragma once

#include <array>
#include <string>

#include "session/request_standings.hpp"

namespace hocket::runtime::testing {

inline std::string name_of(Standing standing) {
  constexpr std::array<const char*, standings> names{"none",     "queued", "offered", "granted",
                                                     "to_pause", "paused", "expired", "alone"};
  return names.at(static_cast<std::size_t>(standing));
}

inline std::string name_of(StandingInput input) {
  constexpr std::array<const char*, standing_inputs> names{
      "ask",    "take_up",       "stop",    "finish",    "grant", "queue", "pause",     "pause_unattended",
      "expire", "refuse",        "silence", "long_wait", "leave", "lose",  "lose_step", "no_connection",
      "drop",   "ask_delegated", "recall"};
  return names.at(static_cast<std::size_t>(input));
}

inline std::array<Standing, standings> all_standings() {
  std::array<Standing, standings> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all.at(i) = static_cast<Standing>(i);
  return all;
}

inline std::array<StandingInput, standing_inputs> all_inputs() {
  std::array<StandingInput, standing_inputs> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all.at(i) = static_cast<StandingInput>(i);
  return all;
}

}  // namespace hocket::runtime::testing
