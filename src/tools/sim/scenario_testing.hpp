// A helper for the tests of the scenario file: it reads a scenario from a text.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "sim/scenario_reader.hpp"

namespace hocket::sim::testing {

inline Result<ScenarioFile> read(const std::string& text) {
  // A name of this process alone, because tests run concurrently.
  const std::string path = ::testing::TempDir() + "hocket-scenario-" + std::to_string(getpid()) + ".toml";
  std::ofstream{path} << text;
  auto plan = read_scenario(path);
  std::filesystem::remove(path);
  return plan;
}

}  // namespace hocket::sim::testing
