// Makes an event of a type that is known by its name. Pure; thread-safe.
#pragma once

#include <string_view>

#include "event/event.hpp"

namespace hocket::event {

// Replaces the body by an event of the named type with every field at its default, in place: make_body moves it.
// Returns false, and leaves the body alone, if the name is not one of hocket's own.
bool become(Body& body, std::string_view type);

}  // namespace hocket::event
