// Redistribution plans: which rank sends which elements to which rank when the distribution of an array changes
// (Proteo, section 4.2, stage 3; the paper says sources and targets).
//
// Source and destination ranks are ranks of one merged communicator; a rank may be both. Elements that a rank holds
// both before and after stay with it: they are kept, not sent. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "redistribute/distribution.hpp"

namespace hocket::redistribute {

// The ranks of the merged communicator that hold the parts: part k is at sources[k] before, and at targets[k] after.
struct Roles {
  std::vector<int> sources;
  std::vector<int> targets;
};

// All elements that one rank sends to another; the same elements in the same order at both ends.
struct Message {
  int peer = 0;    // rank in the merged communicator
  Extents places;  // positions in this rank's memory: before, for a send; after, for a receive. Never empty
  bool operator==(const Message&) const = default;
};

// Elements that a rank keeps, at one place of its memory before and at one after.
struct KeptElements {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t count = 0;
  bool operator==(const KeptElements&) const = default;
};

struct RedistributionPlan {        // of one rank
  std::int64_t before = 0;         // elements that it holds; 0 if it is no source
  std::int64_t after = 0;          // elements that it will hold; 0 if it is no destination
  std::vector<KeptElements> kept;  // in ascending order
  std::vector<Message> sends;      // at most one to each peer, in order of parts (replicated array: of destinations)
  std::vector<Message> receives;   // at most one from each peer, in order of parts

  std::int64_t kept_count() const;
};

// Returns the plan of `rank` for an array distributed as `before` over the sources and as `after` over the
// destinations. If the lengths differ, elements beyond the shorter one do not move. Precondition: as many parts as
// ranks in each role. O(messages + log parts + ranks) for ranges, else O(ranks + extents of all parts).
RedistributionPlan plan(const ElementDistribution& before, const ElementDistribution& after, const Roles& roles,
                        int rank);

// Returns the plan of `rank` for a replicated array of `before` elements that will have `after`: each source holds all,
// and each destination will. Destinations that are sources keep them. The others receive them from the sources in
// turn, so that the load is balanced.
RedistributionPlan plan_replicated(std::int64_t before, std::int64_t after, const Roles& roles, int rank);

}  // namespace hocket::redistribute
