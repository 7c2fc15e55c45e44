// Keeps the last decisions about cores and waits, and their outcomes, to answer EXPLAIN. Bounded in memory, since a
// daemon may run for a long time. Not thread-safe.
#pragma once

#include <deque>
#include <vector>

#include "event/event.hpp"

namespace hocket::daemon {

// A history in the order of decision numbers. Lookup by number costs O(log n).
class Decisions {
 public:
  static constexpr std::size_t most = 256;          // decisions kept
  static constexpr std::size_t most_waits = 128;    // largest number of decisions with action "wait" among them
  static constexpr std::size_t most_outcomes = 16;  // outcomes kept for one decision; later ones are dropped

  // Stores a DECISION, or adds an OUTCOME to its decision. Other commands are ignored, and so is an OUTCOME whose
  // decision is no longer kept.
  void add(const event::Body& command);
  // Returns the answer to EXPLAIN, oldest decision first, each followed by its outcomes. An empty application selects
  // all decisions; a count of 0 sets no limit.
  std::vector<event::Body> answer(const event::Explain& asked) const;

 private:
  struct Kept {
    event::Decision decision;
    std::vector<event::Outcome> outcomes;
  };
  std::deque<Kept> kept_;  // ascending by number
  // Number of kept decisions with action "wait".
  std::size_t waits_ = 0;
};

}  // namespace hocket::daemon
