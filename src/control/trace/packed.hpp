// Events as bytes in memory, between the thread that decides and the one that writes the trace. To pack an event costs
// a tenth of its line of text, and the packed events of many share one buffer.
//
// The bytes are in the form of this build and this machine: they never leave the process. Thread-safe: nothing is
// shared. Nothing throws.
#pragma once

#include <string>
#include <string_view>

#include "trace/line.hpp"

namespace hocket::trace {

// An event by reference, as it is packed. `application` and `member` of a command are its addressee.
struct PackedEvent {
  Direction direction = Direction::in;
  Time time{};
  std::string_view node;
  std::string_view application;
  MemberId member;
  const event::Body& body;
};

// Appends the event to the bytes.
void pack(const PackedEvent& event, std::string& out);

// Removes the first event from the bytes, and stores it. Precondition: `pack` has made the bytes, and they are not
// empty.
void unpack(std::string_view& bytes, Record& record);

}  // namespace hocket::trace
