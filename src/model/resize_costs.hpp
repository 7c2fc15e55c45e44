// What the resizes of an application cost: for how long it stood still in them, by what they did (CLARISSE+FlexMPI,
// section 4.2.1: the reconfiguration overhead; Proteo, section 5: it depends on the method and on the processes that
// are started).
//
// Resizes are told apart by method and direction. Within one kind the cost is a line over the processes that were
// started, fitted by least squares; where all resizes of a kind started the same number, it is their mean. A kind that
// was never seen takes the costs of the nearest kind that was: the same direction with another method, then the other
// direction. Only the latest resizes count, as a machine changes.
//
// Pure, not thread-safe. A question costs the resizes that are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "model/speedup_curve.hpp"

namespace hocket::model {

// One resize that is done, or is to be done.
struct ResizeKind {
  std::int64_t sources = 0;  // processes before
  std::int64_t targets = 0;  // and after
  std::int64_t started = 0;  // new processes
  std::string method;        // as MALLEABLE names it; "": not known
};

class ResizeCosts {
 public:
  static constexpr std::size_t capacity = 32;

  // The application stood still for so long in a resize of that kind. A negative time counts as none.
  void add(const ResizeKind& kind, Duration stopped);

  bool empty() const { return kept_.empty(); }
  // All that were added, those no longer kept included.
  std::int64_t resizes() const { return resizes_; }
  Duration stopped() const { return stopped_; }

  // What a resize of that kind is expected to cost, in seconds, plus or minus two standard deviations of what resizes
  // of the kind differed by from the line. Nothing before the first one.
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
