// Describes one put or get of file.h, and divides it over I/O servers. Pure but for pass(). data.cpp makes the
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

// One put or get, ready to be performed.
struct FileAccess {
  io_client::Local local;       // its data begin with the view's; a put only reads the memory
  std::uint64_t operation = 0;  // number common to all participants; 0: not collective
};

// Divides an access over servers: stripe i of the file goes to server i mod n. So data that processes put near each
// other arrive at one server, which merges them. With one server, a chunk is as long as a stripe.
class Striping {
 public:
  static constexpr std::int64_t stripe_bytes = 1 << 20;

  // `view` must outlive the object. Precondition: servers > 0.
  Striping(const layout::FileView& view, std::int64_t bytes, std::size_t servers)
      : view_(view), bytes_(bytes), servers_(servers) {}

  // Returns the next chunk, in the order of the data; no value at the end.
  std::optional<io_client::Chunk> next();

 private:
  const layout::FileView& view_;
  std::int64_t bytes_;
  std::size_t servers_;
  std::int64_t at_ = 0;  // first byte of data that no chunk has
};

// Performs the access through all servers; `participants` processes take part if it is collective. Blocks until it is
// done, at most until all servers are lost. Precondition: there is at least one server.
io_client::Transferred pass(std::span<io_client::ServedFile> files, const FileAccess& access, int participants);

}  // namespace hocket::api
