// How policy_file.cpp enters the module, which is of the same build.
#pragma once

#include <string>

#include "pypolicy/policy_file.hpp"

namespace hocket::pypolicy {

constexpr const char* module_file = "hocket-pypolicy.so";
constexpr const char* run_file_name = "hocket_pypolicy_run_file";
using RunFile = void(const std::string& path, Say say, Result<PolicyFile>& result);

}  // namespace hocket::pypolicy
