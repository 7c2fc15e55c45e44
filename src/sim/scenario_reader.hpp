// Reads a scenario: a TOML file. Each key, its default and its limits are in scenario_reader.cpp, where it is read;
// docs and scenarios/ show them in use. `[coordinator]` is that of hocket.toml.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "config/settings.hpp"
#include "sim/scenario.hpp"

namespace hocket::sim {

struct Plan {
  Scenario scenario;
  config::Settings settings;
};

// `seed` stands for the file's. Errors are one line: file, line, key, value, what to do.
Result<Plan> read_scenario(const std::string& path, std::optional<std::uint64_t> seed = std::nullopt);

}  // namespace hocket::sim
