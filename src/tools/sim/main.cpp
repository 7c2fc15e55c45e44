// The program hocket-sim: simulates a scenario under a policy, or searches for its best schedule, and prints the
// result as one JSON object. Exit code 2 means a wrong option, scenario or policy; the message is one line.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/utf8.hpp"
#include "config/policy_file.hpp"
#include "policy/combination.hpp"
#include "sim/best.hpp"
#include "sim/scenario_reader.hpp"
#include "sim/simulation.hpp"

namespace {

using namespace hocket;

struct SimulationOptions {
  std::string scenario;
  std::optional<std::string> policy;
  std::optional<std::uint64_t> seed;
  std::optional<std::string> policy_file;
  std::string trace;
  bool best = false;
};

// True if the policies neither make an application wait nor resize one. The simulation then needs no coordinator.
bool leaves_all_alone(const policy::Combination& combination) {
  return combination.access == &policy::interfere && combination.interference == nullptr &&
         combination.sharing == nullptr;
}

// True if applications may get other maps of I/O servers, because of the policy in force or the detector of slow ones.
bool steers_servers(const sim::Scenario& scenario, const coordinator::CoordinatorSettings& settings) {
  const auto has_servers = [](const sim::TargetSpec& target) { return !target.servers.empty(); };
  if (std::ranges::none_of(scenario.targets, has_servers)) return false;
  return settings.policy.servers != nullptr || settings.slow_server > 0;
}

// True if the scenario names a policy for one application or target.
bool differs(const sim::Scenario& scenario) {
  const auto has_policy = [](const auto& spec) { return !spec.policy.empty(); };
  return std::ranges::any_of(scenario.targets, has_policy) || std::ranges::any_of(scenario.applications, has_policy);
}

// Returns the coordinator, or no controller if nothing would use one. A trace always needs one.
Result<std::unique_ptr<sim::Controller>> make_controller(const sim::ScenarioFile& plan,
                                                         const coordinator::CoordinatorSettings& settings,
                                                         const std::string& trace) {
  std::unique_ptr<sim::Controller> controller;
  const bool alone =
      leaves_all_alone(settings.policy) && !differs(plan.scenario) && !steers_servers(plan.scenario, settings);
  if (trace.empty() && alone) return controller;
  controller = std::make_unique<sim::Controller>(settings);
  if (trace.empty()) return controller;
  const trace::TraceHeader header{HOCKET_VERSION, "simulated", 0, sim::Simulation::start,
                                  config::for_trace(plan.settings)};
  if (const Status opened = controller->open_trace(trace, header); !opened) return opened.error();
  return controller;
}

// Searches for the best schedule instead of simulating a policy (`--best`).
Result<sim::SimulationReport> search(const SimulationOptions& options) {
  const auto plan = sim::read_scenario(options.scenario, options.seed);
  if (!plan) return plan.error();
  const auto start = std::chrono::steady_clock::now();
  auto report = sim::best_schedule(plan.value().scenario);
  if (!report) return Error{options.scenario + ": " + report.error().text};
  report.value().policy = "best";
  report.value().wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

Result<sim::SimulationReport> simulate(const SimulationOptions& options) {
  auto plan = sim::read_scenario(options.scenario, options.seed);
  if (!plan) return plan.error();
  config::DaemonSettings& settings = plan.value().settings;
  if (options.policy) {
    if (const Status set = config::set(settings, "coordinator.policy", *options.policy, "--policy"); !set) {
      return set.error();
    }
  }
  if (!options.policy_file && !settings.policy_file.empty()) {
    return Error{options.scenario + ": it names the policy file " + printable(settings.policy_file) +
                 ", and only a file that you name is run: add --policy-file FILE"};
  }
  if (options.policy_file) settings.policy_file = *options.policy_file;
  settings = config::with_cores(settings);
  // A simulation with a failing policy stops with an error. Otherwise its results would look like those of a policy
  // that works.
  std::string mistake;
  bool failed = false;
  const auto prepared = config::with_policy_file(settings, [&](std::string_view line) {
    if (!std::exchange(failed, true)) mistake = line;
  });
  if (!prepared) return prepared.error();
  auto controller = make_controller(plan.value(), prepared.value(), options.trace);
  if (!controller) return controller.error();
  const sim::Controller* watched = controller.value().get();
  const auto start = std::chrono::steady_clock::now();
  sim::Simulation simulation{plan.value().scenario, std::move(controller).value()};
  sim::SimulationReport report = simulation.run(failed);
  if (failed) return Error{mistake};
  report.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  report.policy = options.policy_file ? policy::text_of(prepared.value().policy) : settings.policy;
  report.most_slowdown = coordinator::most_slowdown_of(prepared.value(), *prepared.value().policy.access);
  if (watched != nullptr && !watched->trace_error().empty()) return Error{watched->trace_error()};
  return report;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"hocket-sim: simulates applications, their storage and hocket's coordinator"};
  SimulationOptions options;
  app.add_option("scenario", options.scenario, "TOML file of the scenario")->required();
  auto* policy =
      app.add_option("--policy", options.policy, "policy names joined by '+', or none (default: the scenario's)");
  auto* file =
      app.add_option("--policy-file", options.policy_file, "a policy in Python, which replaces the policy of its kind");
  app.add_option("--seed", options.seed, "seed of all random values (default: the scenario's)");
  auto* trace = app.add_option("--trace", options.trace, "file for the trace that hocketd would write");
  app.add_flag(
         "--best", options.best,
         "instead of a policy: search, with perfect knowledge, for the best schedule in which no application is slower "
         "than uncoordinated")
      ->excludes(policy)
      ->excludes(file)
      ->excludes(trace);
  app.set_version_flag("--version", HOCKET_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // A shell script must be able to tell wrong options (2) from --help and --version (0).
    if (error.get_exit_code() == 0) return app.exit(error);
    std::fprintf(stderr, "hocket-sim: %s; hocket-sim --help lists the options\n", error.what());
    return 2;
  }
  const auto report = options.best ? search(options) : simulate(options);
  if (!report) {
    std::fprintf(stderr, "hocket-sim: %s\n", printable(report.error().text).c_str());
    return 2;
  }
  std::fputs(sim::to_json(report.value()).c_str(), stdout);
  return 0;
}
