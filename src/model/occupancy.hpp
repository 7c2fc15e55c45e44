// Applications have a target and give it up: what is learnt of that, and what is left of it at a moment.
//
// Pure, not thread-safe.
#pragma once

#include "base/time.hpp"
#include "model/target.hpp"

namespace hocket::model {

struct Application;

// The application has its first grant on the target, by that request.
void begin_occupancy(Holder& holder, const Request& request);
// One of its requests has ended; `idle`: since it moved nothing.
void count_access(Holder& holder, std::int64_t bytes, Duration idle);
// Another of its requests is granted there, or the first.
void join_occupancy(Holder& holder, const Request& request);
// One of its requests is stopped in the middle. Progress has not been counted for that yet.
void stop_access(Holder& holder, Request& request);
// It has no grant there any more. Progress has been counted up to now. `goes_on`: it was stopped in the middle. `few`:
// of the applications run so few that it is clear who was ordered because of whom.
void end_occupancy(Holder& holder, Time now, bool goes_on, bool few);

// What an application has still to do on a target in its I/O phase, in seconds alone.
struct Remaining {
  double left_s = 0;
  double access_s = 0;  // of that, what it has asked for
  double spread_s = 0;  // how far that may be off
  double served_s = 0;  // of the access, what was done
  bool known = false;   // else it is a guess
  bool overdue() const { return left_s <= -spread_s; }
};
// `left_s` may be below 0: it should have ended. Of one that has the target, between two accesses too; and of one that
// waits.
Remaining remaining_of(const Holder& holder, Time now);
Remaining remaining_of(const Application& application, const Request& waiting);

// How many times slower accesses of a kind of the application are beside one of that load; 0: not known.
double interference_of(const Application& application, const Target& target, std::size_t kind, Load other);

}  // namespace hocket::model
