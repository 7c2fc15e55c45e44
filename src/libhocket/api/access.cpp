#include "api/access.hpp"

#include <algorithm>
#include <utility>

namespace hocket::api {
namespace {

// Names the parameter as hocket_file_put_strided does.
Error wrong(const char* name, std::int64_t value, const std::string& what) {
  return Error{"'" + std::string{name} + "' is " + std::to_string(value) + "; it must be " + what};
}

}  // namespace

Result<layout::FileView> view_of(const Pattern& pattern) {
  const auto& [offset, block, stride, count] = pattern;
  if (offset < 0 || offset >= layout::limit) return wrong("offset", offset, "at least 0 and below 2^62");
  if (count < 0) return wrong("count", count, "at least 0");
  if (block < 0) return wrong("bytes", block, "at least 0");
  // An access without data is valid, whatever its stride.
  if (block == 0 || count == 0) return layout::FileView{offset};
  if (count > 1 && stride < block)
    return wrong("stride_bytes", stride, "at least block_bytes, which is " + std::to_string(block));
  // Length in the file, from the first byte to behind the last one.
  std::int64_t span = 0;
  if (__builtin_mul_overflow(count - 1, stride, &span) || __builtin_add_overflow(span, block, &span) ||
      span > layout::limit - offset)
    return Error{"the data would end beyond the longest file, 2^62 bytes"};
  // Blocks that touch are one run, for which a view without a table is enough.
  if (count == 1 || stride == block) return layout::FileView{offset};
  auto bytes = layout::contiguous_bytes(block);
  if (!bytes) return bytes.error();
  auto tile = layout::resized(0, stride, bytes.value());
  if (!tile) return tile.error();
  return layout::FileView::make(offset, tile.value());
}

Result<Shape> shape_of(const Pattern& pattern) {
  Result<layout::FileView> view = view_of(pattern);
  if (!view) return view.error();
  return Shape{std::move(view).value(), layout::contiguous_bytes(pattern.bytes()).value()};
}

std::optional<io_client::Chunk> FileChunks::next() {
  if (!one_) return stripes_.next();
  if (left_.count() == 0) return std::nullopt;
  const layout::Extent data{left_.first, std::min(left_.end, left_.first + layout::stripe_bytes)};
  left_.first = data.end;
  return io_client::Chunk{0, data};
}

io_client::Transferred pass(std::span<io_client::ServedFile> files, const layout::Striping& striping,
                            const FileAccess& access, int participants) {
  const io_client::Local& local = access.local;
  std::string serialised;
  if (!local.view.contiguous()) layout::append(local.view, serialised);
  FileChunks chunks{local, striping};
  return io_client::transfer(
      files, local, [&] { return chunks.next(); },
      {.serialised = serialised, .operation = access.operation, .participants = participants},
      io_client::DescriptorWait());
}

}  // namespace hocket::api
