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

namespace hocket::policy {

// The state, read-only, at the moment of decision about one target. Valid during the call.
struct View {
  const model::Cluster& cluster;
  const model::Target& target;  // its holders, and those who wait, in order of arrival (at least one)
  Time now;
};

// A waiting request of the target that is to be granted now.
struct Grant {
  MemberId member;
  RequestId request;
};
using Decision = std::vector<Grant>;

// Asked whenever something changed about a target for which somebody waits; `event` is what changed it. The coordinator
// takes care of what is the same for all policies: an application that holds the target goes on without a question
// until its turn is over; leases and the time for which a target is kept are over when a holder is no longer in the
// view.
using Decide = Decision (*)(const View& view, const event::Event& event);

struct Policy {
  std::string_view name;
  std::string_view summary;  // one line
  Decide decide;
};

// The policies there are: each in the file of its name.
extern const Policy interfere;
extern const Policy fcfs;

// All of them, in the order in which people are shown them.
std::span<const Policy* const> policies();

// The error names the nearest known one.
Result<const Policy*> find_policy(std::string_view name);

}  // namespace hocket::policy
