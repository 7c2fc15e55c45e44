// When a client gives a server up that owes an answer. Pure.
#pragma once

#include <algorithm>

#include "base/time.hpp"

namespace hocket::io_client {

// Silence after which a server is given up. A server that runs shows it every 5 s, however slow its storage is.
inline constexpr Duration silence_bound = std::chrono::seconds{30};
// The same for a server that shows that it runs, but answers nothing.
inline constexpr Duration answer_bound = std::chrono::minutes{10};

// When a server was last heard of while it owed an answer.
struct Silence {
  Time heard;     // at all
  Time answered;  // with an answer, or a part of one

  // Takes in what the file's connection has shown until now.
  void note(bool moved, bool is_alive, Time now) {
    if (moved) answered = now;
    if (moved || is_alive) heard = now;
  }
  Time ends() const { return std::min(heard + silence_bound, answered + answer_bound); }
  const char* reason(Time now) const {
    return now >= heard + silence_bound ? "nothing came from it for 30 s" : "it has answered nothing for 10 minutes";
  }
};

}  // namespace hocket::io_client
