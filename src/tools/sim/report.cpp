#include "sim/report.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

namespace hocket::sim {
namespace {

// The keys are the output format of hocket-sim, which tools read.
nlohmann::ordered_json json_of(const ApplicationResult& a) {
  nlohmann::ordered_json served = nlohmann::ordered_json::array();
  for (const auto& [servers, s] : a.served_s) served.push_back({servers, s});
  return {{"application", a.name},
          {"processes_first", a.processes_first},
          {"processes_last", a.processes_last},
          {"start_s", a.start_s},
          {"end_s", a.end_s},
          {"total_s", a.total_s()},
          {"alone_s", a.alone_s},
          {"compute_s", a.compute_s},
          {"io_s", a.io_s},
          {"io_alone_s", a.io_alone_s},
          {"wait_s", a.wait_s},
          {"paused_s", a.paused_s},
          {"interruptions", a.interruptions},
          {"stopped_s", a.stopped_s},
          {"phases", a.phases},
          {"iterations", a.iterations},
          {"flop", a.flop},
          {"reconfigurations", a.reconfigurations},
          {"bytes_written", std::llround(a.bytes_written)},
          {"operations", a.operations},
          {"bytes_read", std::llround(a.bytes_read)},
          {"cores_wait_s", a.cores_wait_s},
          {"forwards", a.forwards},
          {"bandwidth_bytes_per_s", a.bandwidth()},
          {"served_s", served}};
}

nlohmann::ordered_json json_of(const TargetResult& t) {
  return {{"target", t.name}, {"busy_s", t.busy_s}, {"overlap_s", t.overlap_s}, {"bytes", std::llround(t.bytes)}};
}

template <class Rows>
nlohmann::ordered_json list_of(const Rows& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& row : rows) list.push_back(json_of(row));
  return list;
}

}  // namespace

std::string to_json(const SimulationReport& report) {
  const nlohmann::ordered_json json = {{"hocket_sim", 1},
                                       {"scenario", report.scenario},
                                       {"policy", report.policy},
                                       {"seed", report.seed},
                                       {"most_slowdown", report.most_slowdown},
                                       {"simulated_s", report.simulated_s},
                                       {"applications", list_of(report.applications)},
                                       {"targets", list_of(report.targets)},
                                       {"flops", report.flops},
                                       {"forwarded_bandwidth", report.forwarded_bandwidth},
                                       {"slow_servers", report.slow_servers},
                                       {"decisions", report.decisions},
                                       {"events", report.events},
                                       {"wall_s", report.wall_s}};
  return json.dump() + "\n";
}

}  // namespace hocket::sim
