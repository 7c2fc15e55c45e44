// What can be set: hocket.toml, and the options of the command line that stand for some of its keys.
//
// Each key is declared once, in the table of settings.cpp, with its name, default, unit, meaning and check. Errors are
// one line and name file and line, or the option.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "coordinator/command.hpp"
#include "event/event.hpp"

namespace hocket::daemon {

// The defaults; times in seconds.
struct Settings {
  std::string dir;    // "": bus::runtime_directory()
  std::string trace;  // "": a new file in <dir>/traces
  std::string log_level = "info";
  double exit_when_idle_s = 0;  // 0: never

  std::string policy = "fcfs";
  double lease_s = 10;
  double linger_s = 0.02;
  double turn_s = 60;
  double keep_alive_s = 1;
  std::int64_t cores = 0;  // 0: as many as this machine has, see with_cores
  double join_limit_s = 60;
};

// Changes what the TOML file sets.
Status read_file(const std::string& path, Settings& settings);

// Sets one key, as an option of the command line does. `option` is named in the error.
Status set(Settings& settings, const std::string& key, const std::string& value, const std::string& option);
Status set(Settings& settings, const std::string& key, double value, const std::string& option);

// The same with `cores` of this machine in the place of 0: those that this process may use.
Settings with_cores(Settings settings);

// A hocket.toml with every key, what it means, and the value in force.
std::string print(const Settings& settings);

// What the coordinator needs; the policy's name has been checked.
coordinator::Settings for_coordinator(const Settings& settings);

// The part that the trace's header holds, so that a replay can be given the same.
event::Properties for_trace(const Settings& settings);
Result<Settings> from_trace(const event::Properties& header);

}  // namespace hocket::daemon
