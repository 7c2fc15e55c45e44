// Which policies are in force together: one for access to targets, at most one against interference, at most one that
// shares out cores (CLARISSE+FlexMPI, section 4.4: "in combination").
//
// As text: their names joined by `+`, e.g. "phase-shift", "fcfs+io-aware", "interfere", "none". A policy for cores
// without one for access comes with fcfs, as in the paper (section 5.1); "none" is "interfere" alone.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "policy/core_policy.hpp"
#include "policy/policy.hpp"

namespace hocket::policy {

struct Combination {
  const Policy* access = &interfere;         // never nullptr
  const CorePolicy* interference = nullptr;  // nullptr: none
  const CorePolicy* sharing = nullptr;       // nullptr: none
};

// The error names what is wrong (a name that is not known and the nearest known one, two of one kind).
Result<Combination> parse_combination(std::string_view text);
// The text that parses to it: what is shown.
std::string text_of(const Combination& combination);

}  // namespace hocket::policy
