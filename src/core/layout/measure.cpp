#include "layout/measure.hpp"

namespace hocket::layout {
namespace {

// Returns the last child or block of an ordered node that begins at or below `address`. Precondition: address >= 0.
std::int64_t last_at(const TypeNode& node, std::int64_t address) {
  if (node.kind == NodeKind::vector) return std::min(address / node.stride, node.count - 1);
  return std::upper_bound(node.at.begin(), node.at.end(), address) - node.at.begin() - 1;
}

// Returns the number of segments that begin before entry i. If the children of a vector touch, the last segment of
// each continues in the next one and is counted once.
std::int64_t begun_before(const TypeNode& node, std::int64_t i) {
  if (node.kind == NodeKind::sequence) return node.started[static_cast<std::size_t>(i)];
  if (node.kind == NodeKind::blocks || i == 0) return i;
  return i * node.child->segments - (node.joined(i) ? i - 1 : 0);
}

}  // namespace

std::int64_t address_of(const TypeNode& node, std::int64_t data) {
  const TypeNode* at = &node;
  std::int64_t address = 0;
  while (at->kind != NodeKind::run) {
    const std::int64_t i = at->entry_of(data);
    address += at->address(i);
    data -= at->data_before(i);
    if (at->kind == NodeKind::blocks) break;
    at = &at->part(i);
  }
  return address + data;
}

std::int64_t data_below(const TypeNode& node, std::int64_t address) {
  const TypeNode* at = &node;
  std::int64_t data = 0;
  while (true) {
    if (address <= 0) return data;
    if (address >= at->high) return data + at->size;
    if (at->kind == NodeKind::run) return data + address;
    const std::int64_t i = last_at(*at, address);
    data += at->data_before(i);
    address -= at->address(i);
    if (at->kind == NodeKind::blocks) return data + std::min(address, at->length(i));
    at = &at->part(i);
  }
}

std::int64_t segments_begun(const TypeNode& node, std::int64_t data) {
  const TypeNode* at = &node;
  std::int64_t begun = 0;
  while (true) {
    if (data <= 0) return begun;
    if (data == at->size) return begun + at->segments;
    if (at->kind == NodeKind::run) return begun + 1;
    const std::int64_t i = at->entry_of(data);
    begun += begun_before(*at, i);
    data -= at->data_before(i);
    if (at->kind == NodeKind::blocks) return begun + (data > 0 ? 1 : 0);
    if (data > 0 && i > 0 && at->joined(i)) --begun;  // its first segment began in the entry before
    at = &at->part(i);
  }
}

std::int64_t count_segments(const TypeNode& node, Extent data) {
  if (data.count() <= 0) return 0;
  const std::int64_t begun = segments_begun(node, data.first);
  // The range begins inside a segment if its first byte begins none.
  const bool in_its_middle = segments_begun(node, data.first + 1) == begun;
  return segments_begun(node, data.end) - begun + (in_its_middle ? 1 : 0);
}

}  // namespace hocket::layout
