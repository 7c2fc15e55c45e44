// This file converts between events and the lines of a trace. A line holds one event in or one command out, as JSON
// (docs/design/traces.md). Both directions use the field lists of event/fields.hpp. Thread-safe: nothing is shared.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "event/event.hpp"

namespace hocket::trace {

// Says whether the coordinator received the event (`in`) or returned it as a command (`out`).
enum class Direction { in, out };

// One event or command as it happened. A command has the time of the event that caused it, and its addressee as origin.
struct Record {
  Direction direction = Direction::in;
  event::Event event;
  // Keys of the fields that a parsed line lacks, because its hocket did not know them. They refer to static text.
  std::vector<std::string_view> missing{};
};

// Appends the line, '\n' included. Bytes that are no UTF-8 become U+FFFD. Numbers that are not finite become null.
void append_line(Direction direction, const event::Event& event, std::string& out);

// Appends the facts of a command, as the same line without its '\n': all but the texts for people (event::Prose) and
// the fields under the keys `without`. A replay compares these.
void append_facts(const event::Event& command, const std::vector<std::string_view>& without, std::string& out);

// Parses a line of any version without its '\n'. Unknown keys are ignored, and missing keys keep their defaults. null
// as a number becomes NaN. An error names a key with a value of the wrong type.
Result<Record> parse_line(std::string_view line);

// Appends a JSON string with its quotes, or a JSON object.
void append_json(std::string_view text, std::string& out);
void append_json(const event::Properties& properties, std::string& out);

}  // namespace hocket::trace
