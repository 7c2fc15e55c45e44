// Who sends what to whom in which round of a collective access: pure functions of views and file domains.
//
// A file domain is accessed in windows, one a round; windows begin at multiples of their size in the file. Both ends
// find the rounds by themselves: a rank from its own view, an aggregator from the views of all. Rounds in which nobody
// has data are passed over. All ranks send (or receive) their pieces in the order of rounds, then of aggregators, and
// aggregators take theirs in the order of rounds: so the first round that is not done can always be done, whatever the
// number of pieces that one end lets be under way.
#pragma once

#include <optional>
#include <vector>

#include "layout/domains.hpp"
#include "layout/view.hpp"

namespace hocket::runtime::io {

using layout::Interval;

class Grid {
 public:
  Grid(layout::Domains domains, std::int64_t window_bytes) : domains_(domains), window_(window_bytes) {}

  int aggregators() const { return domains_.aggregators(); }
  Interval domain(int aggregator) const { return domains_.domain(aggregator); }
  // In which round an offset of the aggregator's domain is accessed, and what of the domain is in a round.
  std::int64_t round_of(int aggregator, std::int64_t offset) const {
    return offset / window_ - domain(aggregator).first / window_;
  }
  Interval window(int aggregator, std::int64_t round) const;

 private:
  layout::Domains domains_;
  std::int64_t window_;
};

// The data that a rank has in one window.
struct Piece {
  std::int64_t round = 0;
  int aggregator = 0;
  Interval data;
  bool operator==(const Piece&) const = default;
};

// All pieces of a rank, in their order. The view must live as long.
class Pieces {
 public:
  // Precondition: the view contains the data, and they lie in the grid's domains.
  Pieces(const layout::View& view, Interval data, const Grid& grid);
  std::optional<Piece> next();

 private:
  struct Left {
    std::int64_t round;
    int aggregator;
    Interval data;
  };
  static bool later(const Left& a, const Left& b);
  void push(int aggregator, Interval data);

  const layout::View& view_;
  Grid grid_;
  std::vector<Left> heap_;  // the next one of each aggregator for which there is more
};

struct Source {
  int rank = 0;
  Interval data;
  std::int64_t segments = 0;  // runs in the file, where they come as an offset list (lists.hpp); else 0
};

// What an aggregator does in one round.
struct Round {
  std::int64_t round = 0;
  Interval span;                // from the first to behind the last byte of the sources' data
  std::vector<Source> sources;  // by rank
};

// A rank's access, as its aggregators know it. No view: it has no data.
struct Participant {
  const layout::View* view = nullptr;
  Interval data;
};

// The rounds of one aggregator in which there are data.
class Rounds {
 public:
  Rounds(const Grid& grid, int aggregator, std::vector<Participant> participants);
  std::optional<Round> next();

 private:
  Grid grid_;
  int aggregator_;
  std::vector<Participant> left_;  // of this domain
};

// Whether each rank's data are one run of the file, and no two ranks' overlap: then nothing is to be gained by an
// exchange. `spans` of ranks without data are empty.
struct Extent {
  Interval span;
  std::int64_t bytes = 0;
};
bool separate(std::vector<Extent> extents);

}  // namespace hocket::runtime::io
