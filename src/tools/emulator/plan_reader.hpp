// Reads a plan from the JSON that Python has written. Python has checked it: an exception here is a defect, or a file
// of another version.
#pragma once

#include <string>

#include "emulator/plan.hpp"

namespace hocket::emulator {

// Throws nlohmann::json::exception, or std::out_of_range for an unknown name.
EmulationPlan read_plan(const std::string& text);

}  // namespace hocket::emulator
