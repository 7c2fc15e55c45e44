// The settings of hocketd and hocket-sim: hocket.toml, and the command-line options that replace some of its keys.
//
// Each key is declared once, in the table of settings.cpp, with its name, default, unit, meaning and check. Errors
// are one line, which names the file and line, or the option. No state of its own; safe to use from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "coordinator/command.hpp"
#include "event/event.hpp"

namespace hocket::config {

// The value of each key, initially the default. settings.cpp documents each key. Times are seconds.
struct DaemonSettings {
  std::string dir;                    // runtime directory; "": bus::runtime_directory()
  std::string trace;                  // path of the trace; "": a new file in <dir>/traces
  std::int64_t trace_part_mib = 256;  // size at which a trace continues in another file; 0: never
  std::int64_t trace_most_mib = 0;    // size of all parts, above which the oldest are removed; 0: no limit
  double trace_part_h = 0;            // hours after which it does, too; 0: never
  bool trace_compress = false;        // ended parts are compressed
  std::string log_level = "info";
  std::string target_names;     // "PATH=NAME …" of the operator: file_system/target_name.hpp
  double exit_when_idle_s = 0;  // 0: the daemon never ends by idleness
  std::string metrics;          // address of /metrics: metrics/address.hpp; "": none

  std::string users = "own";  // whose programs take part: "own", or "all" of the node
  std::string operators;      // group whose members may steer the programs of all users; "": none
  // Several nodes: where a leader listens for agents, the leaders of an agent ("HOST:PORT …"), and the file of the key
  // that all nodes of a cluster have, or "munge", with the socket of munged ("": libmunge's own).
  std::string listen = "0.0.0.0:7117";
  std::string leaders;
  std::string key;
  std::string munge_socket;
  std::string address;  // host by which other nodes reach the I/O servers of this one; "": that of the link

  std::string policy = "cost";     // names joined by `+`: policy/combination.hpp
  std::string policy_file;         // path of a policy in Python; "": none
  std::string policy_file_sha256;  // SHA-256 of policy_file, hexadecimal; "": any
  // Grants: lifetime of a lease, idle hold after an operation, and the longest wait behind one holder.
  double lease_s = 10;
  double linger_s = 0.02;
  double turn_s = 60;
  // Policies for access: the metric of `cost` and `dynamic`, the most pauses in one I/O phase, and the assumed slowdown
  // of two.
  std::string metric = "cpu-time";
  std::int64_t most_interruptions = 3;
  double interference = 2;
  // Seconds between two QUEUED_IO of a request that waits.
  double keep_alive_s = 1;
  std::int64_t cores = 0;     // 0: as many as this machine has, see with_cores
  bool counts_nodes = false;  // set by with_cores: neither `cores` nor `nodes` says how many there are
  // Seconds in which processes that join an application must initialise MPI.
  double join_limit_s = 60;
  std::string nodes;  // "NAME:CORES …"; "": one node, with `cores`
  // Largest fraction by which coordination may slow an application; 0: no limit; -1: the policy's.
  double most_slowdown = -1;
  // True: the idle hold is as long as the gap that was measured before the next access.
  bool learnt_hold = false;
  // Expected duration up to which an access is granted at once; 0: none.
  double small_access_s = 0;
  // Seconds alone on a target after which it is delegated; 0: never.
  double delegate_after_s = 5;
  // Policies for cores: uncertainty of predictions (-1: as observed), cost of a resize, goal, least gain, and
  // probing.
  double uncertainty_s = -1;
  double reconfiguration_s = 1;
  std::string objective = "flops";
  double least_gain = 0.01;
  bool probe = true;
  std::string profiles;  // path of the profile store; "": the default of profile_store.hpp
  // The detector of slow I/O servers: factor on the time of the peers (0: off), and seconds of the first hold-off.
  double slow_server = 1.25;
  double slow_server_hold_off_s = 10;
  // True: each wait for another application is a DECISION.
  bool tell_waits = true;
  std::string target_policies;  // "TARGET=POLICY …" of the operator: target_policies.hpp
  // The request scheduler of I/O servers ("": as each was started), and "APP=WEIGHT …" under `wfq`.
  std::string request_scheduler;
  std::string application_weights;
  std::string size_limits;  // "APP=PROCESSES …": most that policies give

  // Rules of the policies that give forwarded applications I/O servers (allocation/allocation.hpp).
  bool direct = true;
  bool divides_evenly = false;
  double most_loss = -1;  // -1: any
  bool shared_server = false;
  std::int64_t system_nodes = 0;    // 0: those of the applications
  std::int64_t system_servers = 0;  // 0: those that there are
};

// Sets the keys that the TOML file contains; the others keep their values. After an error some keys may be set
// already.
Status read_file(const std::string& path, DaemonSettings& settings);

// Sets one key ("coordinator.policy"), for an option of the command line or a key of another file. `option` says
// where the value came from; the error begins with it.
Status set(DaemonSettings& settings, const std::string& key, const event::Value& value, const std::string& option);

// Returns the settings with a definite number of cores. A value of 0 becomes the cores of `nodes`, or else those of
// this machine that this process may use.
DaemonSettings with_cores(DaemonSettings settings);

// Returns the number of cores of this node that the process may use, at least 1.
std::int64_t own_cores();

// Returns a hocket.toml with every key, its meaning as a comment, and its present value. read_file accepts it.
std::string print(const DaemonSettings& settings);

// Converts the settings for the coordinator. Precondition: the texts were checked when they were set.
coordinator::CoordinatorSettings for_coordinator(const DaemonSettings& settings);

// Returns the keys of [coordinator] and [arbitration] for the trace's header, so that a replay can use the same values.
event::Properties for_trace(const DaemonSettings& settings);
// Returns the settings that the header of a trace of that version (trace::TraceHeader::format) records. A key that the
// header lacks is younger than the trace. It gets the default of that version, which stands for hocket's behaviour
// then.
Result<DaemonSettings> from_trace(const event::Properties& header, std::int64_t version);

}  // namespace hocket::config
