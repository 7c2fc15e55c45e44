// Makes the phrase of each reason, from which explain.cpp makes sentences. Internal to this folder; pure, thread-safe.
#pragma once

#include <string>

#include "event/event.hpp"

namespace hocket::explain {

// Returns the phrase of a reason or obstacle of that decision; "" if there is none.
std::string phrase(const event::Reason& reason, const event::Decision& decision);
// Returns "the I/O phases of a come at no regular times: 13.4 s apart, with a standard deviation of 11.0 s".
std::string irregular_text(const std::string& application, double period_s, double spread_s);

}  // namespace hocket::explain
