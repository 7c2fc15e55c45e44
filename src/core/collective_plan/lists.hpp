// List-based collective I/O (CLARISSE, section III-A): a rank sends its data of a round together with their offsets
// and lengths, which the aggregator forgets after use. Pure functions.
//
// A serialised view can be longer than all that one access needs of it; then it is not sent. Instead each rank sends
// each aggregator its entries, one for each round in which it has data, so that the aggregator knows which ranks to
// expect. The offset list of a round precedes its data.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "collective_plan/plan.hpp"

namespace hocket::collective_plan {

// A rank's data in one round of an aggregator. It has only 64-bit numbers, so the struct is sent as it is.
struct RoundEntry {
  std::int64_t round = 0;
  std::int64_t first = 0;  // offset of its data, in bytes of data of its view
  std::int64_t bytes = 0;
  std::int64_t low = 0;       // first file offset of the data
  std::int64_t end = 0;       // file offset behind the last byte
  std::int64_t segments = 0;  // contiguous runs in the file
  bool operator==(const RoundEntry&) const = default;
};

// Returns a rank's entries by aggregator, each list in the order of rounds. Precondition: as for Pieces.
std::vector<std::vector<RoundEntry>> entries(const layout::FileView& view, Extent data, const Grid& grid);

// The rounds of one aggregator in which there are data, computed from the entries that the ranks sent it. It is the
// counterpart of Rounds (plan.hpp) for list-based accesses.
class Agenda {
 public:
  // Takes the entries by rank. Returns no value if the rounds of a rank do not rise, or if an entry leaves its
  // round's extent: the entries come from other processes, so they are checked.
  static std::optional<Agenda> make(const Grid& grid, int aggregator, std::vector<std::vector<RoundEntry>> entries);
  // Returns the next round, or no value at the end.
  std::optional<Round> next();

 private:
  explicit Agenda(std::vector<std::vector<RoundEntry>> entries)
      : entries_(std::move(entries)), done_(entries_.size()) {}

  std::vector<std::vector<RoundEntry>> entries_;
  std::vector<std::size_t> done_;  // by rank: entries that rounds have used
};

// ---- offset lists ------------------------------------------------------------------------------------------------

constexpr std::int64_t list_bytes_per_segment = 8;  // offset and length, 4 bytes each

// Writes the runs of the data as pairs of offset (relative to `origin`) and length. Precondition: `list` has
// list_bytes_per_segment bytes for each run, and all runs lie within 4 GiB from `origin`.
void write_list(const layout::FileView& view, Extent data, std::int64_t origin, std::span<std::byte> list);
// Returns the runs as file offsets. No value if they do not add up to `bytes`, leave `span`, or do not rise.
std::optional<layout::Layout> read_list(std::span<const std::byte> list, std::int64_t bytes, std::int64_t origin,
                                        Extent span);

// ---- which of both ----------------------------------------------------------------------------------------------

// Description of one rank's access, as the choice of the method needs it.
struct Description {
  std::int64_t view_bytes = 0;  // length of its serialised view
  bool view_is_new = false;     // the aggregators do not have the view yet
  std::int64_t segments = 0;    // contiguous runs in the file
};

constexpr std::int64_t most_view_bytes = 64 << 20;  // limit of all ranks' views together, kept in each aggregator

// True if offset lists are shorter than views for this access. A view is sent to every aggregator, but once; a list
// is sent once, but with each access. Views that aggregators already have cost nothing, those that are a formula
// hardly any.
bool lists_are_shorter(std::span<const Description> ranks, int aggregators);
// True if aggregators may keep all ranks' views; otherwise lists are used, whatever is shorter.
bool views_can_be_kept(std::span<const Description> ranks);

}  // namespace hocket::collective_plan
