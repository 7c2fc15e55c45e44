// A file view: a displacement, and a filetype that is repeated from there on without end. Its data are numbered in
// bytes, 0 … bytes() - 1; the caller multiplies by the size of the elementary type.
//
// Offsets rise with the data. So the data of a view in a file domain are one range, found in O(depth · log).
// View-based I/O therefore sends data without offsets, and both ends know the sizes before they expand any pattern.
// Values are immutable and cheap to copy; several threads may use one. Nothing throws.
#pragma once

#include <string>
#include <string_view>

#include "layout/layout.hpp"

namespace hocket::layout {

// A view whose offsets rise. MPI allows others; `make` refuses them.
class FileView {
 public:
  FileView() : FileView(0) {}  // the whole file, contiguous
  // Makes the contiguous view from `displacement` on. Precondition: 0 <= displacement < limit.
  explicit FileView(std::int64_t displacement);
  // Tiles the file with `filetype` from `displacement` on. Fails if an offset is below 0, or if offsets do not rise
  // within the filetype or from one repetition to the next. hocket's data plane does not support views that overlap
  // themselves (MPI allows them for reading) or go back.
  static Result<FileView> make(std::int64_t displacement, const Layout& filetype);

  std::int64_t bytes() const { return root_.node ? root_.node->size : 0; }  // 0: the filetype has no data
  bool contiguous() const { return !root_.node || root_.node->kind == NodeKind::run; }
  // Returns about how much memory the view takes, in bytes. O(nodes), where shared nodes count once.
  std::int64_t memory_bytes() const;
  // True if the range lies within the view. Check ranges from other processes with it, before they are used below.
  bool contains(Extent data) const { return data.first >= 0 && data.first <= data.end && data.end <= bytes(); }

  // ---- preconditions: `data` is contained ------------------------------------------------------------------------

  // Returns the file offset of byte `data` of the data. Precondition: data < bytes().
  std::int64_t offset(std::int64_t data) const;
  // Returns the number of bytes of data at offsets below `offset`. This is also the first byte at or behind it.
  std::int64_t data_below(std::int64_t offset) const;
  // Returns the part of the data that lies in a range of the file; empty if there is none.
  Extent data_in(Extent data, Extent file) const;
  // Returns the range of the file from the first to the last byte of the data; empty for no data.
  Extent span(Extent data) const;
  // Returns the number of runs in the file; runs that touch count once.
  std::int64_t count_segments(Extent data) const;

  // Return where the data are, in order: as strips of equal runs, or as single runs.
  Walk walk(Extent data) const { return {root_, data}; }
  Segments segments(Extent data) const { return Segments(walk(data)); }

  // True only if both have the same bytes in the same order; it may be false for equal views (see Layout).
  bool operator==(const FileView& other) const {
    return start_ == other.start_ && extent_ == other.extent_ && same(tile_, other.tile_);
  }

 private:
  friend void append(const FileView& view, std::string& out);
  friend Result<FileView> read_view(std::string_view bytes);
  static Result<FileView> tiled(std::int64_t start, std::int64_t extent, NodePtr tile);

  std::int64_t start_ = 0;   // file offset of the first byte of data
  std::int64_t extent_ = 1;  // bytes from tile to tile
  NodePtr tile_;             // the repeated pattern, the shortest one found
  Placed root_;              // all repetitions up to the limit
};

// Measures how fragmented the data are in the file. The method of an access is chosen by it.
struct Fragmentation {
  std::int64_t bytes = 0;     // of data
  std::int64_t segments = 0;  // runs in the file
  std::int64_t span = 0;      // bytes from the first to the last byte in the file
  double segments_per_mib() const;
  double contiguous_share() const;  // data per span: 1 without holes, and for no data
};

Fragmentation fragmentation(const FileView& view, Extent data);

// ---- the serialised form: of one hocket, for its own processes -----------------------------------------------------

// Appends the serialised form to `out`. A formula takes a few bytes, a table two or three bytes a run.
void append(const FileView& view, std::string& out);

// Reads a view that `append` wrote. Returns an error if the bytes are no view. Memory is proportional to their
// number, at most some hundred bytes a byte, so views from other processes cannot exhaust it.
Result<FileView> read_view(std::string_view bytes);

}  // namespace hocket::layout
