// Describes one put or get of file.h, and passes it through I/O servers. Pure but for pass(). data.cpp makes the
// accesses; the files of stored_file.cpp and data_set.cpp perform them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/result.hpp"
#include "io_client/transfer.hpp"

namespace hocket::api {

// A strided access: `count` blocks of `block` bytes, the first at `offset`. Each block begins `stride` bytes behind the
// beginning of the one before.
struct Pattern {
  std::int64_t offset = 0;
  std::int64_t block = 0;
  std::int64_t stride = 0;
  std::int64_t count = 0;

  std::int64_t bytes() const { return block * count; }
};

// Returns the places of the data in the file. The error names the invalid number and its value. Checks all sums, so
// nothing overflows in a pattern that is accepted.
Result<layout::FileView> view_of(const Pattern& pattern);

// A Shape says where the data of a put or get are.
struct Shape {
  layout::FileView view{};  // in the file, from the view's first byte of data on
  layout::Layout memory{};  // relative to the caller's pointer

  std::int64_t bytes() const { return memory.size(); }
};
// Returns the view of view_of() with its memory, in which the blocks follow each other.
Result<Shape> shape_of(const Pattern& pattern);

// One put or get, ready to be performed.
struct FileAccess {
  io_client::Local local;       // its data begin with the view's; a put only reads the memory
  std::uint64_t operation = 0;  // number common to all participants; 0: not collective
};

// Yields the chunks of an access: stripes, but with one server as much data as a stripe has, however far apart.
class FileChunks {
 public:
  // The access must outlive the object.
  FileChunks(const io_client::Local& local, const layout::Striping& striping)
      : stripes_(local.view, local.data, striping), left_(local.data), one_(striping.servers() == 1) {}
  std::optional<io_client::Chunk> next();

 private:
  layout::StripeChunks stripes_;
  layout::Extent left_;  // with one server: data that no chunk has
  bool one_;
};

// Performs the access through all servers; `participants` processes take part if it is collective. Blocks until it is
// done, at most until all servers are lost. Precondition: there is at least one server; `striping` is of these.
io_client::Transferred pass(std::span<io_client::ServedFile> files, const layout::Striping& striping,
                            const FileAccess& access, int participants);

}  // namespace hocket::api
