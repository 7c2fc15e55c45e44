// Converts an event to a list of properties, which is the view of filters, the trace, and external tools. Pure.
#pragma once

#include "base/result.hpp"
#include "event/event.hpp"

namespace hocket::event {

// Returns "type", "time_ns", "node", "application", "member" and then the event's own fields (of a USER event its
// properties), in that order. A reason becomes its kind, under the field's key ("obstacle"), and its own fields
// ("obstacle_needed"). The field names of event/fields.hpp never collide with the first five, except the "application"
// of APPLICATION. It comes later, so `find` returns it.
Properties properties_of(const Event& event);

// Returns the last property of that name, which the list owns; nullptr if there is none.
const Value* find(const Properties& properties, std::string_view key);

// Checks that a USER event may be published. Its type must be at most 128 bytes long, and no name that hocket uses
// itself. Its properties must not use the five names above, which hocket stamps on every event.
Status check(const User& user);

}  // namespace hocket::event
