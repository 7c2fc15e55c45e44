// Collective plan: computes which rank sends which data to which aggregator in which round of a collective access.
// Pure functions of views and file domains.
//
// An aggregator accesses its file domain in rounds of one collective buffer each; the extents of rounds begin at
// multiples of the buffer size in the file. Both ends compute the rounds by themselves: a rank from its own view, an
// aggregator from the views of all. Rounds without data are skipped. All ranks send (or receive) their chunks in the
// order of rounds, then of aggregators, and aggregators take theirs in the order of rounds. So the first unfinished
// round can always be done, whatever number of chunks one end allows in flight.
#pragma once

#include <optional>
#include <vector>

#include "layout/domains.hpp"
#include "layout/view.hpp"

namespace hocket::collective_plan {

using layout::Extent;

// The rounds of all aggregators as extents of the file. A small value; the same in all ranks.
class Grid {
 public:
  Grid(layout::Domains domains, std::int64_t window_bytes) : domains_(domains), window_(window_bytes) {}

  int aggregators() const { return domains_.aggregators(); }
  Extent domain(int aggregator) const { return domains_.domain(aggregator); }
  // Return the round in which an offset of the aggregator's domain is accessed, and the extent of a round within the
  // domain (empty if it lies outside).
  std::int64_t round_of(int aggregator, std::int64_t offset) const {
    return offset / window_ - domain(aggregator).first / window_;
  }
  Extent window(int aggregator, std::int64_t round) const;

 private:
  layout::Domains domains_;
  std::int64_t window_;  // bytes of a collective buffer
};

// A chunk: the data that a rank has in one round of one aggregator.
struct RoundChunk {
  std::int64_t round = 0;
  int aggregator = 0;
  Extent data;  // bytes of data of the rank's view
  bool operator==(const RoundChunk&) const = default;
};

// Yields all chunks of a rank, in the order of rounds, then of aggregators. The view must outlive the object. A chunk
// costs O(log aggregators) and some searches in the view, however many runs it has.
class Pieces {
 public:
  // Precondition: the view contains the data, which lie in the grid's domains.
  Pieces(const layout::FileView& view, Extent data, const Grid& grid);
  std::optional<RoundChunk> next();

 private:
  // Data that one aggregator has still to get, and the round of the first byte.
  struct RemainingData {
    std::int64_t round;
    int aggregator;
    Extent data;
  };
  static bool later(const RemainingData& a, const RemainingData& b);
  void push(int aggregator, Extent data);

  const layout::FileView& view_;
  Grid grid_;
  std::vector<RemainingData> heap_;  // one entry for each aggregator with data left
};

// One rank's data in a round of an aggregator.
struct RoundSource {
  int rank = 0;
  Extent data;
  std::int64_t segments = 0;  // runs in the file if they come as an offset list (lists.hpp), else 0
};

// One round of an aggregator.
struct Round {
  std::int64_t round = 0;
  Extent span;                       // extent from the first to behind the last byte of all sources
  std::vector<RoundSource> sources;  // in the order of ranks
};

// A rank's access, as its aggregators know it.
struct Participant {
  const layout::FileView* view = nullptr;  // nullptr: the rank has no data; must outlive the users of this struct
  Extent data;
};

// Yields the rounds of one aggregator in which there are data, in order. A round costs some searches in each rank's
// view.
class Rounds {
 public:
  Rounds(const Grid& grid, int aggregator, std::vector<Participant> participants);
  std::optional<Round> next();

 private:
  Grid grid_;
  int aggregator_;
  std::vector<Participant> left_;  // data in this domain that later rounds access
};

// Extent and data of one rank's access.
struct AccessExtent {
  Extent span;  // empty if there are no data
  std::int64_t bytes = 0;
};
// True if each rank's data are one contiguous run of the file, and no two of them overlap: an exchange would gain
// nothing.
bool separate(std::vector<AccessExtent> extents);

}  // namespace hocket::collective_plan
