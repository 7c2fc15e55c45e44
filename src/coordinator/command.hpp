// What goes into and comes out of the coordinator beside the events.
#pragma once

#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "event/event.hpp"
#include "policy/policy.hpp"

namespace hocket::coordinator {

// All to be given, by hocket.toml in the end. Durations are positive, `linger` may be 0; all are at most a year.
struct Settings {
  const policy::Policy* policy;  // at the start; SET_POLICY changes it. Never nullptr
  // A grant that is not renewed for so long is taken back.
  Duration lease;
  // A target stays with an application for so long after an operation, so that the operations of one I/O phase are not
  // pulled apart.
  Duration linger;
  // When the first in the queue has waited for so long, the application that has the target gets no further operation
  // before it: an I/O phase without end holds nobody up for ever.
  Duration turn;
  // Who waits is told so again this often.
  Duration keep_alive;
};

struct Command {
  MemberId to;
  event::Body body;
};

// The event that is being handled.
struct Moment {
  const event::Event& event;
  Time now;  // its time, never before that of an earlier event
  std::vector<Command>& commands;
};

}  // namespace hocket::coordinator
