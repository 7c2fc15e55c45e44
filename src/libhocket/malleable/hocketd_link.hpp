// The link to hocketd as malleability sees it. An application that is not reported has no link: nothing can be sent,
// no command comes, and no connection can be lost.
//
// Thread-safe; may throw std::bad_alloc. The first call in a process creates its connection's object.
#pragma once

#include <cstdint>
#include <optional>

#include "event/event.hpp"
#include "process/reporter.hpp"

namespace hocket::runtime::hocketd {

// Sends an event. Returns false if it cannot be sent.
inline bool tell(const event::Body& body) {
  Session* const session = connection();
  return session && session->tell(body);
}

// Returns the next command of hocketd that has come, if there is one.
inline std::optional<event::Body> next_command() {
  Session* const session = connection();
  return session ? session->next_command() : std::nullopt;
}

// True if the application is reported, and its connection has ended.
inline bool is_lost() {
  const Session* const session = connection();
  return session && !session->connected();
}

// Returns the number of the current connection (Session::connections).
inline std::int64_t number_of_connection() {
  const Session* const session = connection();
  return session ? session->connections() : 0;
}

}  // namespace hocket::runtime::hocketd
