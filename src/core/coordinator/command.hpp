// This file defines the interface types of the coordinator: its settings, the commands it returns, and the event being
// handled. Plain data; pure.
#pragma once

#include <map>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "event/event.hpp"
#include "model/cores.hpp"
#include "policy/combination.hpp"

namespace hocket::coordinator {

// The operator's policy for one target.
struct TargetPolicy {
  const policy::Policy* policy = nullptr;
  bool allows = false;  // applications may switch to another one there
};

// Settings of the coordinator. hocket.toml provides all of them. Durations are positive, but `linger` and
// `small_access` may be 0; none exceeds a year.
struct CoordinatorSettings {
  policy::Combination policy;  // at the start; SET_POLICY changes it
  // Length of a lease. The coordinator revokes a grant that is not renewed within this time.
  Duration lease;
  // Idle hold: the target stays granted to an application this long after an operation. The operations of one I/O phase
  // are then not interleaved with those of other applications.
  Duration linger;
  // Time slice. Once a request has waited this long, the holder gets no further operation before it. Endless I/O phases
  // therefore cannot starve other applications. Requests that the holder may need to finish its current work are exempt
  // (interrupting.cpp).
  Duration turn;
  // Interval at which the coordinator repeats QUEUED_IO to members with waiting requests.
  Duration keep_alive;
  // Upper bound on the processes of all applications together after a resize. At least 1.
  std::int64_t cores = 1;
  // Time limit of a join: if not all started processes are ready by then, the coordinator abandons them.
  Duration join_limit = std::chrono::seconds{60};
  // Settings of the core policies and of the access policies. `longest_wait` of the latter is `turn`.
  policy::CoreSettings core{};
  policy::AccessSettings access{};
  // Bound on the slowdown against uncoordinated I/O, as a fraction of the application's run time. If waiting any longer
  // would exceed it, the request is granted at once, beside the current holders (slowdown.cpp describes the estimate).
  // 0: no bound; 1 or more: estimated, but not enforced; below 0: the access policy's default applies.
  double most_slowdown = -1;
  // True if applications with unknown times at other sizes are measured while a core policy is in force.
  bool probe = true;
  // Nodes and their cores. Empty: one node that has all `cores`.
  std::vector<model::Node> nodes{};
  // Policies loaded from files, which SET_POLICY may name beside the built-in ones.
  policy::Loaded loaded{};
  // Margin of the slow-server detector (slow_servers.hpp): at least 1, or 0 to disable it. `slow_server_hold_off` is
  // the time that a slow server stays out of the map the first time.
  double slow_server = 1.25;
  Duration slow_server_hold_off = std::chrono::seconds{10};
  // True if the idle hold follows the application's usual gap between accesses, instead of `linger`. An access policy
  // can also request this.
  bool learnt_hold = false;
  // Accesses expected to take no longer than this are granted at once, whoever holds the target. 0: none are.
  Duration small_access{};
  // True if the coordinator also publishes a DECISION for a wait that the access policy does not explain. It does so
  // once for each I/O phase and holder.
  bool tell_waits = true;
  // The operator's policies for targets at the start, by the target's name; SET_POLICY changes them.
  std::map<std::string, TargetPolicy> targets{};
  // Of the policies that give forwarded applications numbers of I/O servers.
  policy::ArbitrationSettings arbitration{};
  // Request scheduler of I/O servers for which no operator and no policy has chosen one; "": the one with which each
  // was started.
  std::string request_scheduler{};
  // Weights of applications in I/O servers, by requested name. 1 for others.
  std::map<std::string, std::int64_t, std::less<>> application_weights{};
  // Time for which an application must have been alone on a target before its members get delegations there (see
  // delegating.cpp). 0: they get none.
  Duration delegate_after{};
};

// Most bytes of a text from an application that a DECISION repeats.
inline constexpr std::size_t longest_shown = 256;

// Returns the slowdown bound in force: the setting, or the access policy's default if the setting is negative.
inline double most_slowdown_of(const CoordinatorSettings& settings, const policy::Policy& access) {
  return settings.most_slowdown < 0 ? access.most_slowdown : settings.most_slowdown;
}

// Returns the configured nodes, or one unnamed node with all cores if none are configured.
inline std::vector<model::Node> nodes_of(const CoordinatorSettings& settings) {
  if (!settings.nodes.empty()) return settings.nodes;
  return {{"", settings.cores}};
}

// A message that the coordinator asks its caller to send.
struct Command {
  // Addressee. None: the daemon carries the command out itself (START_PROCESSES, STOP_PROCESSES, HUNG_IO_SERVER),
  // stores it (PROFILE), or publishes it (DECISION, OUTCOME, MODEL, SLOW_IO_SERVER).
  MemberId to;
  event::Body body;
};

// The event being handled, with its time and the list that collects the commands. Valid only during
// Coordinator::handle.
struct Moment {
  const event::Event& event;
  Time now;  // time of the event, never before that of an earlier one
  std::vector<Command>& commands;
};

}  // namespace hocket::coordinator
