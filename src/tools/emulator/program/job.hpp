// The malleable application: its data, its iterations, and its resizes.
#pragma once

#include <string>

#include "emulator/plan.hpp"

namespace hocket::emulator {

// Computes the plan in all processes of MPI_COMM_WORLD, and in those that join or leave. `directory`: of the files.
// `record`: path of the record; "": none.
void run_job(const EmulationPlan& plan, const std::string& directory, const std::string& record);

}  // namespace hocket::emulator
