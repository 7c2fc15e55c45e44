#include "api/lists.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace hocket::api {
namespace {

// An extent with data.
struct ListedExtent {
  std::int64_t at = 0;
  std::int64_t length = 0;
  std::int64_t memory = 0;  // bytes of data before its own, in memory
  std::size_t index = 0;    // in the list
};

std::string named(const char* list, std::size_t index, std::int64_t value) {
  return "'" + std::string{list} + "[" + std::to_string(index) + "]' is " + std::to_string(value);
}

// Checks each extent by itself, and returns those with data.
Result<std::vector<ListedExtent>> read(const ExtentList& list) {
  std::vector<ListedExtent> extents;
  extents.reserve(list.offsets.size());
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < list.offsets.size(); ++i) {
    const std::int64_t at = list.offsets[i], length = list.lengths[i];
    if (at < 0 || at >= layout::limit) return Error{named("offsets", i, at) + "; it must be at least 0 and below 2^62"};
    if (length < 0) return Error{named("bytes", i, length) + "; it must be at least 0"};
    if (length > layout::limit - at)
      return Error{named("bytes", i, length) + "; with " + named("offsets", i, at) +
                   ", the data would end beyond the longest file, 2^62 bytes"};
    if (length > layout::limit - sum)
      return Error{named("bytes", i, length) + "; all extents together must have at most 2^62 bytes"};
    if (length > 0) extents.push_back({at, length, sum, i});
    sum += length;
  }
  return extents;
}

// Returns an error that names two extents that overlap, if there are any. Precondition: the offsets do not fall.
Status look_for_overlap(std::span<const ListedExtent> extents) {
  for (std::size_t i = 1; i < extents.size(); ++i) {
    const ListedExtent &before = extents[i - 1], &one = extents[i];
    if (one.at >= before.at + before.length) continue;
    return Error{named("offsets", one.index, one.at) + ", within the " + std::to_string(before.length) +
                 " bytes from 'offsets[" + std::to_string(before.index) + "]', " + std::to_string(before.at) +
                 ", on; extents of one call must not overlap"};
  }
  return success();
}

}  // namespace

Result<Shape> shape_of(const ExtentList& list) {
  Result<std::vector<ListedExtent>> read_list = read(list);
  if (!read_list) return read_list.error();
  std::vector<ListedExtent> extents = std::move(read_list).value();
  const auto rises = [](const ListedExtent& a, const ListedExtent& b) { return a.at < b.at; };
  if (!std::is_sorted(extents.begin(), extents.end(), rises)) std::sort(extents.begin(), extents.end(), rises);
  if (const Status apart = look_for_overlap(extents); !apart) return apart.error();
  if (extents.empty()) return Shape{};
  std::vector<std::int64_t> lengths, offsets, places;
  for (const ListedExtent& one : extents) {
    lengths.push_back(one.length);
    offsets.push_back(one.at);
    places.push_back(one.memory);
  }
  const layout::Layout byte = layout::contiguous_bytes(1).value();
  const Result<layout::Layout> in_file = layout::hindexed(lengths, offsets, byte);
  if (!in_file) return in_file.error();
  Result<layout::FileView> view = layout::FileView::make(0, in_file.value());
  if (!view) return view.error();
  Result<layout::Layout> memory = layout::hindexed(lengths, places, byte);
  if (!memory) return memory.error();
  return Shape{std::move(view).value(), std::move(memory).value()};
}

}  // namespace hocket::api
