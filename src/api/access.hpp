// One put or get as it was asked for, and how it is dealt out over I/O servers. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/result.hpp"
#include "layout/view.hpp"

namespace hocket::api {

// `count` blocks of `block` bytes, the first at `offset`, each `stride` behind the beginning of the one before it.
struct Pattern {
  std::int64_t offset = 0;
  std::int64_t block = 0;
  std::int64_t stride = 0;
  std::int64_t count = 0;

  std::int64_t bytes() const { return block * count; }
};

// Where its data lie. The error names the number that is wrong. No overflow where it succeeds.
Result<layout::View> view_of(const Pattern& pattern);

struct Access {
  layout::View view;
  std::int64_t bytes = 0;       // of the view's data, from the first on
  std::byte* memory = nullptr;  // the caller's, where they are or go; not written to by one that writes
  bool writes = false;
  std::uint64_t operation = 0;  // of all participants; 0: this process's own

  std::int64_t end() const { return bytes == 0 ? 0 : view.offset(bytes - 1) + 1; }
};

// Part of an access, for one server.
struct Piece {
  std::size_t server = 0;
  layout::Interval data;
};

// Deals the data out: stripe i of the file to server i mod n, so that whatever processes put near each other meets at
// one server and is merged there. Where there is one server, pieces are as long as stripes.
class Striping {
 public:
  static constexpr std::int64_t stripe_bytes = 1 << 20;

  // `view` must outlive it. Precondition: servers > 0.
  Striping(const layout::View& view, std::int64_t bytes, std::size_t servers)
      : view_(view), bytes_(bytes), servers_(servers) {}

  // In the order of the data; nothing at the end.
  std::optional<Piece> next();

 private:
  const layout::View& view_;
  std::int64_t bytes_;
  std::size_t servers_;
  std::int64_t at_ = 0;
};

}  // namespace hocket::api
