// ResizeCosts learns what the resizes of an application cost: the time for which it is stopped (CLARISSE+FlexMPI,
// section 4.2.1: the reconfiguration overhead). The time depends on the method and on the number of started processes
// (Proteo, section 5).
//
// Resizes are grouped by method and direction. Within a group, a line over the started processes is fitted by least
// squares. If all resizes of a group started the same number, their mean is used. A group without data takes the
// costs of the nearest one that has some: the same direction with another method, then the other direction. Only the
// latest 32 resizes count, because a machine changes.
//
// Pure, not thread-safe. The cost of a query is linear in the kept resizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "model/speedup_curve.hpp"

namespace hocket::model {

// One resize, past or planned.
struct ResizeKind {
  std::int64_t sources = 0;  // processes before
  std::int64_t targets = 0;  // processes after
  std::int64_t started = 0;  // new processes
  std::string method;        // as named in MALLEABLE; "": unknown
};

class ResizeCosts {
 public:
  static constexpr std::size_t capacity = 32;

  // Adds a resize that stopped the application for that time. A negative time counts as none.
  void add(const ResizeKind& kind, Duration stopped);

  bool empty() const { return kept_.empty(); }
  // Returns the number of all resizes so far, including those no longer kept. `stopped` is their total time.
  std::int64_t resizes() const { return resizes_; }
  Duration stopped() const { return stopped_; }

  // Returns the expected cost of such a resize in seconds. The uncertainty is two standard deviations from the fitted
  // line. Returns nothing before the first resize.
  std::optional<Estimate> expected(const ResizeKind& kind) const;

 private:
  struct Seen {
    bool grows = false;
    double started = 0;
    double stopped_s = 0;
    std::string method;
  };

  std::vector<Seen> kept_;  // the latest last
  std::int64_t resizes_ = 0;
  Duration stopped_{};
};

}  // namespace hocket::model
