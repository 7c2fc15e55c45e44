// A file view: a displacement and a filetype that is repeated from there on without end. Its data are numbered in
// bytes, 0 … bytes() - 1; the elementary type is the caller's to multiply by.
//
// Offsets rise with the data, so what a view has in a file domain is one interval of its data, found in O(depth · log):
// view-based I/O sends data without offsets, and both ends know their sizes before anything is unrolled.
// Values are cheap to copy, do not change, and may be used by several threads. Nothing throws.
#pragma once

#include <string>
#include <string_view>

#include "layout/layout.hpp"

namespace hocket::layout {

class View {
 public:
  View() : View(0) {}  // the file as it is, from its first byte on
  // The bytes of the file from `displacement` on. Precondition: 0 <= displacement < limit.
  explicit View(std::int64_t displacement);
  // Fails where an offset is below 0, and where offsets of the filetype, or from one to the next, do not rise: views
  // that overlap themselves (MPI lets them be read) or go back are not for hocket's data plane.
  static Result<View> make(std::int64_t displacement, const Layout& filetype);

  std::int64_t bytes() const { return root_.node ? root_.node->size : 0; }  // 0: a filetype without data
  bool contiguous() const { return !root_.node || root_.node->kind == Kind::run; }
  // Whether an access is within the view: what came from elsewhere is asked this before it is used below.
  bool contains(Interval data) const { return data.first >= 0 && data.first <= data.end && data.end <= bytes(); }

  // ---- preconditions: `data` is contained ------------------------------------------------------------------------

  // Where in the file byte `data` of the data is. Precondition: data < bytes().
  std::int64_t offset(std::int64_t data) const;
  // Bytes of data at offsets below `offset`: where the data go on that lie there or behind.
  std::int64_t data_below(std::int64_t offset) const;
  // The part of the data that lies in the interval of the file; empty where none does.
  Interval data_in(Interval data, Interval file) const;
  // From the first to behind the last byte in the file; empty for no data.
  Interval span(Interval data) const;
  // Runs in the file; those that touch are one.
  std::int64_t count_segments(Interval data) const;

  // Strips and segments in order: where data are, and their offset in the file.
  Walk walk(Interval data) const { return {root_, data}; }
  Segments segments(Interval data) const { return Segments(walk(data)); }

  // The same bytes in the same order, as far as the normal form shows it.
  bool operator==(const View& other) const {
    return start_ == other.start_ && extent_ == other.extent_ && same(tile_, other.tile_);
  }

 private:
  friend void append(const View& view, std::string& out);
  friend Result<View> read_view(std::string_view bytes);
  static Result<View> tiled(std::int64_t start, std::int64_t extent, NodePtr tile);

  std::int64_t start_ = 0;   // offset of the first byte
  std::int64_t extent_ = 1;  // from tile to tile
  NodePtr tile_;             // the shortest one that is known
  Placed root_;              // all tiles up to the limit
};

// How broken up the data are in the file: by this a method is chosen.
struct Fragmentation {
  std::int64_t bytes = 0;     // data
  std::int64_t segments = 0;  // runs in the file
  std::int64_t span = 0;      // from the first to behind the last byte in the file
  double segments_per_mib() const;
  double contiguous_share() const;  // data of the span: 1 where there are no holes. Of no data: 1
};

Fragmentation fragmentation(const View& view, Interval data);

// ---- the serialised form: of one hocket, for its own processes -----------------------------------------------------

// A formula takes some bytes, a table two or three a run.
void append(const View& view, std::string& out);

// What was appended. Bytes that are not a view give an error; memory is taken in proportion to their number, at most
// some hundred bytes a byte.
Result<View> read_view(std::string_view bytes);

}  // namespace hocket::layout
