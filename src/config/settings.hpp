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

namespace hocket::config {

// The defaults; times in seconds.
struct Settings {
  std::string dir;    // "": bus::runtime_directory()
  std::string trace;  // "": a new file in <dir>/traces
  std::string log_level = "info";
  double exit_when_idle_s = 0;  // 0: never

  std::string policy = "cost";  // names joined by `+`, see policy/combination.hpp
  std::string policy_file;      // "": none
  std::string policy_file_sha256;
  double lease_s = 10;
  double linger_s = 0.02;
  double turn_s = 60;
  std::string metric = "cpu-time";
  std::int64_t most_interruptions = 3;
  double interference = 2;
  double keep_alive_s = 1;
  std::int64_t cores = 0;  // 0: as many as this machine has, see with_cores
  double join_limit_s = 60;
  std::string nodes;  // "": one node, with `cores`
  double most_slowdown = -1;
  bool learnt_hold = false;
  double small_access_s = 0;
  double uncertainty_s = -1;
  double reconfiguration_s = 1;
  std::string objective = "flops";
  double least_gain = 0.01;
  bool probe = true;
  std::string profiles;  // "": profile_store.hpp has the path
  double slow_server = 1.25;
  double slow_server_hold_off_s = 10;
  bool tell_waits = true;
};

// Changes what the TOML file sets.
Status read_file(const std::string& path, Settings& settings);

// Sets one key ("coordinator.policy"), as an option of the command line or another file does. `option` is what the
// error names: where the value came from.
Status set(Settings& settings, const std::string& key, const event::Value& value, const std::string& option);

// The same with, in the place of 0 `cores`, those of `nodes`, or those of this machine that this process may use.
Settings with_cores(Settings settings);

// A hocket.toml with every key, what it means, and the value in force.
std::string print(const Settings& settings);

// What the coordinator needs; texts have been checked when they were set.
coordinator::Settings for_coordinator(const Settings& settings);

// The part that the trace's header holds, so that a replay can be given the same.
event::Properties for_trace(const Settings& settings);
// A key that the header does not have came after the trace was written: it gets the value that stands for what hocket
// did before.
Result<Settings> from_trace(const event::Properties& header);

}  // namespace hocket::config
