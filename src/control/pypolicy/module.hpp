// The interface between policy_file.cpp and the module with the interpreter. Both come from the same build, so the
// interface may pass C++ types.
#pragma once

#include <string>

#include "pypolicy/policy_file.hpp"

namespace hocket::pypolicy {

// The file name of the module, and the symbol in it that runs a policy's file.
constexpr const char* module_file = "hocket-pypolicy.so";
constexpr const char* run_file_name = "hocket_pypolicy_run_file";
// The code to run: the bytes that were read from the file at `path`.
struct PolicySource {
  const std::string& path;  // for messages
  const std::string& text;
  const std::string& expected_sha256;  // hexadecimal; "": any
};
// Runs the source if it has the expected SHA-256, and stores the policy, or what is wrong, in `result`.
using RunFile = void(const PolicySource& source, MessageSink say, Result<PolicyFile>& result);

}  // namespace hocket::pypolicy
