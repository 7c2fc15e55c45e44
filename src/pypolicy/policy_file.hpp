// A policy in Python, from a file that the operator names: `policy_file` in hocket.toml, `--policy-file`.
//
// The interpreter is in a module of its own (module/), which is loaded by the first `load` and by nothing else: a
// hocketd without such a policy has no Python in it. The policy becomes a record like those of src/policy; what the
// file must define, and what it is given, is in docs/write-a-policy.md.
//
// A mistake in the file never ends the program: an exception, a result that is no list of commands, or a call that
// takes longer than `call_limit` is said in one line with the file's line, and that decision changes nothing (one about
// access is made as fcfs makes it, so that nobody waits for ever). A call that hangs outside of Python's own code and
// of system calls cannot be ended.
//
// Not thread-safe: loaded and called by the first thread of the process. One file is in force at a time: records of one
// that was loaded before are not to be used any more.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"
#include "policy/combination.hpp"

namespace hocket::pypolicy {

constexpr Duration call_limit = std::chrono::milliseconds{500};

struct PolicyFile {
  policy::Loaded policy;  // exactly one of its two
  std::string path;       // as it was given
  std::string sha256;     // of its bytes, hexadecimal: a replay needs the same
};

// Gets one line without its end; the same line is not said twice in a row.
using Say = std::function<void(std::string_view)>;

// Runs the file. The error is one line that names the file and, where there is one, the line.
Result<PolicyFile> load(const std::string& path, Say say);

}  // namespace hocket::pypolicy
