// Redistribution plans: which rank sends which elements to which rank when the distribution of an array changes
// (Proteo, section 4.2, stage 3; the paper says sources and targets).
//
// Source and destination ranks are ranks of one merged communicator; a rank may be both. Elements that a rank holds
// both before and after stay in place: they are kept, not sent. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "redistribute/partition.hpp"

namespace hocket::redistribute {

// The ranks of the merged communicator that hold the parts: part k is at sources[k] before, and at targets[k] after.
struct Roles {
  std::vector<int> sources;
  std::vector<int> targets;
};

struct Message {
  int peer = 0;                    // rank in the merged communicator
  ElementRange elements;           // indices in the whole array; never empty
  std::int64_t first_of_peer = 0;  // first element that the peer holds: before, for a receive; after, for a send
  bool operator==(const Message&) const = default;
};

struct RedistributionPlan {       // of one rank
  ElementRange before;            // elements it holds; empty if it is no source
  ElementRange after;             // elements it will hold; empty if it is no destination
  ElementRange kept;              // elements in both; may be empty
  std::vector<Message> sends;     // in order of elements (replicated array: of destinations)
  std::vector<Message> receives;  // in order of elements
};

// Returns the plan of `rank` for an array distributed as `before` over the sources and as `after` over the
// destinations. Preconditions: equal lengths, and as many parts as ranks in each role. O(messages + log parts +
// ranks).
RedistributionPlan plan(const Partition& before, const Partition& after, const Roles& roles, int rank);

// Returns the plan of `rank` for a replicated array: each source holds all `length` elements, and each destination
// will. Destinations that are sources keep them. The others receive them from the sources in turn, so that the load
// is balanced.
RedistributionPlan plan_replicated(std::int64_t length, const Roles& roles, int rank);

}  // namespace hocket::redistribute
