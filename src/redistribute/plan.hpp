// Who sends which interval to whom when the distribution of an array changes (Proteo, section 4.2, stage 3).
//
// Sources and targets are ranks of one communicator, the union; a rank may be both. What a rank holds before and after
// stays in place: it is kept, not sent. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "redistribute/partition.hpp"

namespace hocket::redistribute {

// Which ranks of the union hold the parts: part k before is at sources[k], part k after at targets[k].
struct Roles {
  std::vector<int> sources;
  std::vector<int> targets;
};

struct Message {
  int peer = 0;                    // rank in the union
  Interval elements;               // of the whole array; never empty
  std::int64_t first_of_peer = 0;  // first element that the peer holds: of a receive, before; of a send, after
  bool operator==(const Message&) const = default;
};

// The part of one rank.
struct Plan {
  Interval before;                // what it holds; empty for who is no source
  Interval after;                 // what it will hold; empty for who is no target
  Interval kept;                  // of both; may be empty
  std::vector<Message> sends;     // in order of elements (of a replicated array: of targets)
  std::vector<Message> receives;  // in order of elements
};

// The same array shared out as `before` over the sources and as `after` over the targets. Precondition: the same
// length, as many parts as there are ranks in the roles.
Plan plan(const Partition& before, const Partition& after, const Roles& roles, int rank);

// Each source holds all `length` elements, each target will: those that are sources keep them, the others get them
// from sources in turn.
Plan plan_replicated(std::int64_t length, const Roles& roles, int rank);

}  // namespace hocket::redistribute
