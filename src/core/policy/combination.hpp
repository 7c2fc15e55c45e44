// A combination is the set of policies in force together: one for access to targets, at most one against interference,
// at most one that shares out cores (CLARISSE+FlexMPI, section 4.4: "in combination"), and one for I/O servers.
//
// Its text is the names joined by `+`: "phase-shift", "fcfs+io-aware", "interfere", "none". A policy for cores
// without an access policy comes with fcfs, as in the paper (section 5.1). "none" is "interfere" alone. A policy
// for I/O servers alone changes no other kind. If none for I/O servers is named, set-aside is in force. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "policy/core_policy.hpp"
#include "policy/policy.hpp"
#include "policy/server_policy.hpp"

namespace hocket::policy {

// The policies in force. The records are built in or Loaded, and outlive this.
struct Combination {
  const Policy* access = &interfere;         // never nullptr
  const CorePolicy* interference = nullptr;  // nullptr: none
  const CorePolicy* sharing = nullptr;       // nullptr: none
  const ServerPolicy* servers = nullptr;     // nullptr: `set_aside`

  const ServerPolicy& for_servers() const { return servers == nullptr ? set_aside : *servers; }
  // True if it has policies of other kinds than for access.
  bool has_others() const { return interference != nullptr || sharing != nullptr || servers != nullptr; }
};

// A policy from a file that the operator names (src/control/pypolicy), beside the built-in ones: one of the three, or
// none. Its name differs from every built-in name. The record lives as long as the program.
struct Loaded {
  const Policy* access = nullptr;
  const CorePolicy* core = nullptr;
  const ServerPolicy* servers = nullptr;
};

// Parses the text form. The error says what is wrong: an unknown name and the nearest one, or two of one kind. `before`
// has the other kinds if the text names only a policy for I/O servers.
Result<Combination> parse_combination(std::string_view text, const Loaded& loaded = {},
                                      const Combination& before = {.access = &cost});
// Returns the combination with the loaded policy in the place of its kind.
Combination with(Combination combination, const Loaded& loaded);
// Returns the text that parses to this combination. Tools show it.
std::string text_of(const Combination& combination);

}  // namespace hocket::policy
