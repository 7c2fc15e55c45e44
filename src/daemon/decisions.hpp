// The last decisions about cores and what came of them, for EXPLAIN. Not thread-safe.
#pragma once

#include <deque>
#include <vector>

#include "event/event.hpp"

namespace hocket::daemon {

class Decisions {
 public:
  static constexpr std::size_t most = 256;
  static constexpr std::size_t most_waits = 128;    // of those: where applications take turns, they are many
  static constexpr std::size_t most_outcomes = 16;  // of one decision; further ones are not kept

  // Looks at a command of the coordinator; others than DECISION and OUTCOME are passed over.
  void add(const event::Body& command);
  // What EXPLAIN asks for, oldest first: each decision, and after it its outcomes.
  std::vector<event::Body> answer(const event::Explain& asked) const;

 private:
  struct Kept {
    event::Decision decision;
    std::vector<event::Outcome> outcomes;
  };
  std::deque<Kept> kept_;  // by number
  std::size_t waits_ = 0;
};

}  // namespace hocket::daemon
