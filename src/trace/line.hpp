// One line of a trace: an event in or a command out, as JSON (ARCHITECTURE.md, "Trace"). Both directions read the
// fields of event/fields.hpp. Thread-safe: nothing is shared.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "event/event.hpp"

namespace hocket::trace {

enum class Direction { in, out };

// One event as it happened. A command's time is that of the event that caused it, its origin the addressee.
struct Record {
  Direction direction = Direction::in;
  event::Event event;
};

// Appends the line, '\n' included. Bytes that are no UTF-8 become U+FFFD, numbers that are none become null.
void append_line(Direction direction, const event::Event& event, std::string& out);

// `line` without '\n'. Unknown keys are ignored, missing ones keep their defaults; errors name the key.
Result<Record> parse_line(std::string_view line);

// Appends a JSON string, quotes included; a JSON object.
void append_json(std::string_view text, std::string& out);
void append_json(const event::Properties& properties, std::string& out);

}  // namespace hocket::trace
