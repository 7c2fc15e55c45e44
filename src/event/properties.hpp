// An event as a list of properties: what filters, the trace, and tools of others see.
#pragma once

#include "base/result.hpp"
#include "event/event.hpp"

namespace hocket::event {

// "type", "time_ns", "node", "application", "member" and the event's own fields (a USER event: its properties), in that
// order. The field names of event/fields.hpp never collide with the first five, except APPLICATION's own "application",
// which comes later and is the one that `find` gives.
Properties properties_of(const Event& event);

// The last property of that name; nullptr where there is none.
const Value* find(const Properties& properties, std::string_view key);

// Whether the event may be published: its type must have a name that hocket does not use itself, and its properties
// must not take the names by which every event tells its origin.
Status check(const User& user);

}  // namespace hocket::event
