// Makes the sentences that people read about decisions and outcomes, from the facts in the events. hocketd's log uses
// them, and `hocketd --explain` passes them to the hocket command. No other part words these events.
//
// A policy in Python gives its own words, and traces of version 1 have whole sentences. Both stand in `text` and are
// returned unchanged. Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "event/event.hpp"

namespace hocket::explain {

// Returns who does what: "a expands from 64 to 82 processes because of b".
std::string heading(const event::Decision& decision);
// Returns why, with the numbers: "'b' waits for 'a' on disk; cpu-time: wait 15.2, interrupt 18".
std::string sentence(const event::Decision& decision);

// The events that followed a decision about cores, as a trace shows them.
struct Consequences {
  Time decided{};                 // 0: not known
  std::vector<Duration> stopped;  // time for which each resize that carried it out stopped the application
  Time until{};                   // time at which the chosen size was left again; 0: not known
};
// One line of `hocket explain`.
struct Line {
  std::string_view about;  // "predicted", "chosen", "cost", "in its words"
  std::string words;
};
// Returns the lines about a decision. Times are seconds since `zero`.
std::vector<Line> lines(const event::Decision& decision, const Consequences& consequences, Time zero);

// Returns the quantity that was predicted: "start of the next I/O phase". It is valid as long as the outcome.
std::string_view subject(const event::Outcome& outcome);
// Returns the error of the prediction: "0.25 s later than predicted".
std::string brief(const event::Outcome& outcome);
// Returns both with the numbers: "start of the next I/O phase: predicted 9.00 s ± 0.50 s, came …".
std::string sentence(const event::Outcome& outcome);

std::string sentence(const event::Model& model);
std::string sentence(const event::SlowIoServer& slow);
std::string sentence(const event::HungIoServer& hung);
// Returns why that application cannot have so many processes. It also refuses an operator's resize.
std::string sentence(const event::CoresExceeded& exceeded, const std::string& application);

}  // namespace hocket::explain
