// List-based collective accesses (CLARISSE, section III-A): what a rank has in a window goes with its offsets and
// lengths, and is forgotten after use. Pure functions.
//
// A view can be longer than all that an access needs of it; then it does not travel. In its place each rank tells each
// aggregator its entries, one for each window in which it has data, so that the aggregator knows from whom to expect
// what; and the offset list of a window goes in front of its data.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "runtime/io/plan.hpp"

namespace hocket::runtime::io {

// What a rank has in one window of an aggregator. Numbers alone: it travels as it is.
struct Entry {
  std::int64_t round = 0;
  std::int64_t first = 0;  // of its data, in bytes of its view
  std::int64_t bytes = 0;
  std::int64_t low = 0;  // what they span in the file
  std::int64_t end = 0;
  std::int64_t segments = 0;  // runs in the file
  bool operator==(const Entry&) const = default;
};

// A rank's entries for each aggregator, by rounds.
std::vector<std::vector<Entry>> entries(const layout::View& view, Interval data, const Grid& grid);

// The rounds of one aggregator, by what the ranks told it.
class Agenda {
 public:
  // By rank. Fails (no value) where a rank's rounds do not rise, or an entry is not within its window.
  static std::optional<Agenda> make(const Grid& grid, int aggregator, std::vector<std::vector<Entry>> entries);
  std::optional<Round> next();

 private:
  explicit Agenda(std::vector<std::vector<Entry>> entries) : entries_(std::move(entries)), done_(entries_.size()) {}

  std::vector<std::vector<Entry>> entries_;
  std::vector<std::size_t> done_;  // by rank
};

// ---- offset lists ------------------------------------------------------------------------------------------------

constexpr std::int64_t list_bytes_per_segment = 8;

// The runs of the data, relative to `origin`. Precondition: `list` has that many bytes for each, and all lie within
// 4 GiB from the origin on.
void write_list(const layout::View& view, Interval data, std::int64_t origin, std::span<std::byte> list);
// The runs as offsets in the file; fails where they are not `bytes` long, not within `span`, or not rising.
std::optional<layout::Layout> read_list(std::span<const std::byte> list, std::int64_t bytes, std::int64_t origin,
                                        Interval span);

// ---- which of both ----------------------------------------------------------------------------------------------

// Of one rank's access.
struct Description {
  std::int64_t view_bytes = 0;  // of its serialised view
  bool view_is_new = false;     // the aggregators do not have it
  std::int64_t segments = 0;    // runs in the file
};

constexpr std::int64_t most_view_bytes = 64 << 20;  // of all ranks, in each aggregator

// A view goes to every aggregator, but once; a list goes once, but with each access. So the shorter one is chosen for
// this access: views that are already there, and those that are a formula, cost nothing or next to it. Views that
// together are longer than an aggregator may keep are never chosen.
bool lists_are_shorter(std::span<const Description> ranks, int aggregators);
bool views_can_be_kept(std::span<const Description> ranks);

}  // namespace hocket::runtime::io
