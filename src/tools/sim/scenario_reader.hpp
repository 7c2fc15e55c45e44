// Reads a scenario from a TOML file and checks it. docs/simulate.md documents each key and its default;
// scenario_reader.cpp has the limits, and scenarios/ shows the keys in use. The `[coordinator]` table takes the keys of
// hocket.toml.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "config/settings.hpp"
#include "sim/scenario.hpp"

namespace hocket::sim {

// The content of one scenario file: the simulated system and the coordinator's settings.
struct ScenarioFile {
  Scenario scenario;
  config::DaemonSettings settings;
};

// Returns the checked content of the file at `path`. A given `seed` replaces the one in the file. An error is one
// line that names the file, line, key and value, and says what to do.
Result<ScenarioFile> read_scenario(const std::string& path, std::optional<std::uint64_t> seed = std::nullopt);

}  // namespace hocket::sim
