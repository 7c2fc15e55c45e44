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

// A policy that is not built in, but comes from a file that the operator names (src/pypolicy): one of the two, or none.
// Its name is none of the built-in ones'. Lives as long as the program.
struct Loaded {
  const Policy* access = nullptr;
  const CorePolicy* core = nullptr;
};

// The error names what is wrong (a name that is not known and the nearest known one, two of one kind).
Result<Combination> parse_combination(std::string_view text, const Loaded& loaded = {});
// The loaded policy in the place of its kind.
Combination with(Combination combination, const Loaded& loaded);
// The text that parses to it: what is shown.
std::string text_of(const Combination& combination);

}  // namespace hocket::policy
