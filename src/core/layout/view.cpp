#include "layout/view.hpp"

#include <unordered_set>
#include <utility>

#include "layout/measure.hpp"

namespace hocket::layout {

namespace {

// Adds the memory of the node and of those below it that were not seen yet.
void add_memory(const TypeNode& node, std::unordered_set<const TypeNode*>& seen, std::int64_t& bytes) {
  if (!seen.insert(&node).second) return;
  // A node is allocated with its reference counts; each allocation has some bytes of its own.
  constexpr std::size_t counts = 16;
  constexpr std::size_t own = 16;
  bytes += static_cast<std::int64_t>(sizeof(TypeNode) + counts + own);
  for (const auto* numbers : {&node.at, &node.before, &node.started}) {
    if (numbers->capacity() > 0) bytes += static_cast<std::int64_t>(numbers->capacity() * sizeof(std::int64_t) + own);
  }
  if (node.children.capacity() > 0) {
    bytes += static_cast<std::int64_t>(node.children.capacity() * sizeof(NodePtr) + own);
  }
  if (node.child) add_memory(*node.child, seen, bytes);
  for (const NodePtr& child : node.children) add_memory(*child, seen, bytes);
}

}  // namespace

std::int64_t FileView::memory_bytes() const {
  std::unordered_set<const TypeNode*> seen;
  std::int64_t bytes = sizeof(FileView);
  if (tile_) add_memory(*tile_, seen, bytes);
  if (root_.node) add_memory(*root_.node, seen, bytes);
  return bytes;
}

FileView::FileView(std::int64_t displacement) : start_(displacement), tile_(make_run(1).node) {
  root_ = {make_run(limit - displacement).node, displacement};
}

Result<FileView> FileView::make(std::int64_t displacement, const Layout& filetype) {
  if (displacement < 0) return Error{"a view from offset " + std::to_string(displacement) + " on: it is below 0"};
  const Placed& data = filetype.data();
  if (!data.node) return tiled(0, 0, nullptr);
  if (filetype.span().first < 0) {
    return Error{"a filetype with data at " + std::to_string(filetype.span().first) + ": displacements begin at 0"};
  }
  const Wide start = Wide{displacement} + data.at;
  if (!fits(start)) return Error{"a view from offset " + std::to_string(displacement) + " on: it is beyond 2^62"};
  return tiled(static_cast<std::int64_t>(start), filetype.extent(), data.node);
}

// Makes the view of a tile, which is shortened first if it is itself a repetition. Equal views then have equal tiles.
Result<FileView> FileView::tiled(std::int64_t start, std::int64_t extent, NodePtr tile) {
  FileView view;
  if (!tile) {
    view.tile_ = nullptr;
    view.root_ = {};
    return view;
  }
  if (!tile->ordered || extent < tile->high) {
    return Error{"a filetype whose data overlap or go back in the file: only rising displacements can be tiled"};
  }
  while (tile->kind == NodeKind::vector && Wide{tile->count} * tile->stride == extent) {
    extent = tile->stride;
    tile = NodePtr(tile->child);
  }
  if (start < 0 || start > limit - tile->high) return Error{"a view of a file beyond 2^62 bytes"};
  if (tile->kind == NodeKind::run && tile->size == extent) return FileView(start);
  // The number of repetitions that fit below the limit stands in for an infinite one.
  const std::int64_t count = (limit - start - tile->high) / extent + 1;
  Result<Placed> root = make_vector(count, extent, {tile, start});
  if (!root) return root.error();
  view.start_ = start;
  view.extent_ = extent;
  view.tile_ = std::move(tile);
  view.root_ = std::move(root).value();
  return view;
}

std::int64_t FileView::offset(std::int64_t data) const { return root_.at + address_of(*root_.node, data); }

std::int64_t FileView::data_below(std::int64_t offset) const {
  if (!root_.node || offset <= root_.at) return 0;
  return layout::data_below(*root_.node, offset - root_.at);
}

Extent FileView::data_in(Extent data, Extent file) const {
  const std::int64_t first = std::clamp(data_below(file.first), data.first, data.end);
  return {first, std::clamp(data_below(file.end), first, data.end)};
}

Extent FileView::span(Extent data) const {
  if (data.count() <= 0) return {};
  return {offset(data.first), offset(data.end - 1) + 1};
}

std::int64_t FileView::count_segments(Extent data) const {
  return root_.node ? layout::count_segments(*root_.node, data) : 0;
}

double Fragmentation::segments_per_mib() const {
  constexpr double mib = 1 << 20;
  return bytes > 0 ? static_cast<double>(segments) * mib / static_cast<double>(bytes) : 0;
}

double Fragmentation::contiguous_share() const {
  return span > 0 ? static_cast<double>(bytes) / static_cast<double>(span) : 1;
}

Fragmentation fragmentation(const FileView& view, Extent data) {
  return {data.count(), view.count_segments(data), view.span(data).count()};
}

}  // namespace hocket::layout
