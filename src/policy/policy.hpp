// A policy decides who may use a target. It is a function without a state of its own: everything it may look at is in
// the view, everything it may do is in what it returns.
//
// To add one: a file with a `decide` function and one `Policy` record, and its name here and in the list of policy.cpp.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "event/event.hpp"
#include "model/cluster.hpp"
#include "policy/metric.hpp"

namespace hocket::policy {

// Of hocket.toml.
struct AccessSettings {
  Metric metric;  // what `dynamic` minimises
  // So often an application is interrupted at most in one I/O phase.
  std::int64_t most_interruptions = 3;
  // Who has waited for so long is not overtaken any more. (Settings::turn of the coordinator.)
  Duration longest_wait = std::chrono::seconds{60};
  // How many times slower two that do I/O on a target at once each become, where that was not measured yet. At least 1.
  double interference = 2;
  // No application is to become slower than uncoordinated by more than this part of its time; 0: no bound.
  double most_slowdown = 0;
};

// The state, read-only, at the moment of decision about one target. Valid during the call.
struct View {
  const model::Cluster& cluster;
  const model::Target& target;  // its holders, and those who wait, in order of arrival
  Time now;
  const AccessSettings& settings;
};

// A waiting request of the target that is to be granted now.
struct Grant {
  MemberId member;
  RequestId request;
};

// What an application is to use of the target's bandwidth while others have it too: at most this part.
struct Share {
  AppId application;
  double part = 1;
};

// For people: what was decided about an application, because of another one.
struct Choice {
  AppId application;
  AppId because_of;
  std::string_view action;  // "interrupt", "wait", "interfere", "delay"
};

// What the metric would be; for people. The least first where they are ranked.
struct Cost {
  std::string_view action;
  double value = 0;
};

struct Decision {
  std::vector<Grant> grants{};
  // Holders that are to stop in the middle. The target is theirs until they have.
  std::vector<AppId> interruptions{};
  // Shares that are not 1, of all that have the target after this, those that are granted now included.
  std::vector<Share> shares{};
  // When to ask again where nothing else happens; 0: not.
  Time again{};
  std::vector<Choice> choices{};
  std::vector<Cost> costs{};
};

// Asked whenever something changed about a target for which somebody waits (or, with `shares`, that somebody has);
// `event` is what changed it. The coordinator takes care of what is the same for all policies: an application that
// holds the target goes on without a question until its turn is over, it stops, or it is interrupted; leases and the
// time for which a target is kept are over when a holder is no longer in the view; who is to pause has the target until
// it has done so, and is granted nothing there until then.
using Decide = Decision (*)(const View& view, const event::Event& event);

struct Policy {
  std::string_view name;
  std::string_view summary;  // one line
  Decide decide;
  bool shares = false;  // it gives shares of the bandwidth, and is asked when one of those who have some has gone
  // Defaults of settings under it: Settings::most_slowdown, and Settings::learnt_hold of the coordinator.
  double most_slowdown = 0;
  bool learnt_hold = false;
};

// The policies there are: each in the file of its name.
extern const Policy cost;
extern const Policy interfere;
extern const Policy fcfs;
extern const Policy interrupt;
extern const Policy dynamic;
extern const Policy set_10;

// All of them, in the order in which people are shown them.
std::span<const Policy* const> policies();

// The error names the nearest known one.
Result<const Policy*> find_policy(std::string_view name);

}  // namespace hocket::policy
