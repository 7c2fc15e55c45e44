// Describes one put or get of data.h, and divides it over I/O servers. Pure. data.cpp makes the accesses; the files of
// stored_file.cpp and data_set.cpp perform them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/result.hpp"
#include "layout/view.hpp"

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
Result<layout::View> view_of(const Pattern& pattern);

// One put or get, ready to be performed.
struct Access {
  layout::View view;
  std::int64_t bytes = 0;       // number of bytes of the view's data, from the first on
  std::byte* memory = nullptr;  // the caller's source or destination; a put only reads it
  bool writes = false;
  std::uint64_t operation = 0;  // number common to all participants; 0: not collective

  // Returns the file offset behind the last byte; 0 if there are no data.
  std::int64_t end() const { return bytes == 0 ? 0 : view.offset(bytes - 1) + 1; }
};

// A chunk of an access, for one server.
struct Piece {
  std::size_t server = 0;
  layout::Interval data;  // bytes of data of the view
};

// Divides an access over servers: stripe i of the file goes to server i mod n. So data that processes put near each
// other arrive at one server, which merges them. With one server, a chunk is as long as a stripe.
class Striping {
 public:
  static constexpr std::int64_t stripe_bytes = 1 << 20;

  // `view` must outlive the object. Precondition: servers > 0.
  Striping(const layout::View& view, std::int64_t bytes, std::size_t servers)
      : view_(view), bytes_(bytes), servers_(servers) {}

  // Returns the next chunk, in the order of the data; no value at the end.
  std::optional<Piece> next();

 private:
  const layout::View& view_;
  std::int64_t bytes_;
  std::size_t servers_;
  std::int64_t at_ = 0;  // first byte of data that no chunk has
};

}  // namespace hocket::api
