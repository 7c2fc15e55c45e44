// What goes into and comes out of the coordinator beside the events.
#pragma once

#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "event/event.hpp"
#include "model/cores.hpp"
#include "policy/combination.hpp"

namespace hocket::coordinator {

// All to be given, by hocket.toml in the end. Durations are positive, `linger` may be 0; all are at most a year.
struct Settings {
  policy::Combination policy;  // at the start; SET_POLICY changes it
  // A grant that is not renewed for so long is taken back.
  Duration lease;
  // A target stays with an application for so long after an operation, so that the operations of one I/O phase are not
  // pulled apart.
  Duration linger;
  // When the first in the queue has waited for so long, the application that has the target gets no further operation
  // before it: an I/O phase without end holds nobody up for ever.
  Duration turn;
  // Who waits is told so again this often.
  Duration keep_alive;
  // The processes of all applications do not become more than this by a resize. At least 1.
  std::int64_t cores = 1;
  // Processes that were started to join are given up when they are not all ready after so long.
  Duration join_limit = std::chrono::seconds{60};
  // Of policies for cores, and of those for access; `longest_wait` of the latter is `turn`.
  policy::CoreSettings core{};
  policy::AccessSettings access{};
  // An application that would become slower than uncoordinated by more than this part of its time if it waited any
  // longer is granted at once, beside whoever holds the target (slowdown.cpp says how that is estimated). 0: no bound;
  // below 0: as the policy for access has it.
  double most_slowdown = -1;
  // Applications of which no times are known beyond their size are measured where a policy for cores is in force.
  bool probe = true;
  // Where the cores are; empty: one node that has them all.
  std::vector<model::Node> nodes{};
  // What SET_POLICY may name beside the policies that are built in.
  policy::Loaded loaded{};
  // Of the detector of slow I/O servers (slow_servers.hpp): its margin, at least 1, or 0: no server is taken for slow.
  // And for how long one that was slow is out of the map the first time.
  double slow_server = 1.25;
  Duration slow_server_hold_off = std::chrono::seconds{10};
  // A target stays with an application after an access for as long as its next one usually takes to come, instead of
  // `linger`; also where the policy for access does not have it so.
  bool learnt_hold = false;
  // An access that is expected to take no longer is granted at once, whoever holds the target. 0: none is.
  Duration small_access{};
  // A wait that the access policy says nothing of is a DECISION, too, once for each I/O phase and holder.
  bool tell_waits = true;
};

// Settings::most_slowdown that is in force under a policy for access.
inline double most_slowdown_of(const Settings& settings, const policy::Policy& access) {
  return settings.most_slowdown < 0 ? access.most_slowdown : settings.most_slowdown;
}

inline std::vector<model::Node> nodes_of(const Settings& settings) {
  if (!settings.nodes.empty()) return settings.nodes;
  return {{"", settings.cores}};
}

struct Command {
  // None: what the daemon itself is to do (START_PROCESSES, STOP_PROCESSES) or to tell (DECISION, OUTCOME,
  // MODEL, SLOW_IO_SERVER).
  MemberId to;
  event::Body body;
};

// The event that is being handled.
struct Moment {
  const event::Event& event;
  Time now;  // its time, never before that of an earlier event
  std::vector<Command>& commands;
};

}  // namespace hocket::coordinator
