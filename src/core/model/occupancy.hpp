// These functions follow an application's occupancy of a target: they learn from it when it ends, and estimate at any
// moment what is left. The coordinator calls them at grants and releases; policies call the estimates.
//
// Pure, not thread-safe. Pointers inside the records must be valid; nothing is owned here.
#pragma once

#include "base/time.hpp"
#include "model/target.hpp"

namespace hocket::model {

struct Application;

// Begins an occupancy with the application's first grant on the target, for that request.
void begin_occupancy(Holder& holder, const Request& request);
// Counts a request that has ended. `bytes` are those moved by all processes, `idle` the time since it last moved any.
void count_access(Holder& holder, std::int64_t bytes, Duration idle);
// Adds a granted request to the occupancy, the first one included.
void join_occupancy(Holder& holder, const Request& request);
// Records that a request is suspended in the middle. Its progress must not have been taken from the target yet.
void stop_access(Holder& holder, Request& request);
// Ends an occupancy: the application has no grant left on the target. Progress must have been counted up to `now`.
// `goes_on` is true if it was suspended and will resume. `few` is true if so few applications run that delays can be
// attributed to one of them.
void end_occupancy(Holder& holder, Time now, bool goes_on, bool few);

// The I/O that an application still has to do on a target in its phase, in seconds alone.
struct Remaining {
  double left_s = 0;
  double access_s = 0;  // the whole of the requested access
  double spread_s = 0;  // possible error of access_s
  double served_s = 0;  // progress of the access
  bool known = false;   // false: a guess
  bool overdue() const { return left_s <= -spread_s; }
};
// Estimates what is left of a holder's phase, also between two accesses, or of an application that waits. `left_s` is
// negative if the work should have ended already.
Remaining remaining_of(const Holder& holder, Time now);
Remaining remaining_of(const Application& application, const Request& waiting);

// Returns the slowdown factor of the application's accesses of that kind beside one of load `other`; 0 if unknown.
double interference_of(const Application& application, const Target& target, std::size_t kind, AccessLoad other);

}  // namespace hocket::model
