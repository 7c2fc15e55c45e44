// Loads a policy in Python from a file that the operator names: `policy_file` in hocket.toml, or `--policy-file`.
//
// The interpreter is in a separate module (module/), which only `load` opens. A hocketd without such a policy
// contains no Python. The policy becomes a record like those of src/core/policy. docs/write-a-policy.md says what the
// file must define and what it receives.
//
// A mistake in the file never ends the program. Mistakes are an exception, a result that is no list of commands, and
// a call that takes longer than `call_limit`. Each is reported in one line with the line of the file, and that
// decision changes nothing. A decision about access is made by fcfs instead, so no application waits for ever. A call
// that hangs outside of Python's own code and of system calls cannot be ended.
//
// Not thread-safe: the first thread of the process loads and calls the policy. One file is in force at a time; the
// records of a file that was loaded earlier must no longer be used.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"
#include "policy/combination.hpp"

namespace hocket::pypolicy {

// Time limit of one decision. The coordinator answers no application meanwhile.
constexpr Duration call_limit = std::chrono::milliseconds{500};

// A loaded policy and the identity of its file.
struct PolicyFile {
  policy::Loaded policy;  // exactly one of its members is set
  std::string path;       // path that the caller gave
  std::string sha256;     // SHA-256 of the file, hexadecimal: a replay needs the same file
};

// Receives one message without a line end. The same message is not repeated twice in a row.
using MessageSink = std::function<void(std::string_view)>;

// Reads the file once (trusted_file.hpp), compares its SHA-256 with `expected_sha256` ("": any), runs exactly what was
// read, and returns its policy. The error is one line that names the file and, if known, the line. `say` receives
// later mistakes; it must stay valid while the policy is in force.
Result<PolicyFile> load(const std::string& path, const std::string& expected_sha256, MessageSink say);

}  // namespace hocket::pypolicy
