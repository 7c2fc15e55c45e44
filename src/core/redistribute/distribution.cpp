#include "redistribute/distribution.hpp"

#include <algorithm>
#include <utility>

namespace hocket::redistribute {
namespace {

void append(Extents& extents, ElementRange range) {
  if (range.count() <= 0) return;
  if (!extents.empty() && extents.back().end == range.first)
    extents.back().end = range.end;
  else
    extents.push_back(range);
}

// Every parts-th block, from block `part` on.
Extents dealt(std::int64_t length, std::int64_t block, int parts, int part) {
  Extents extents;
  const std::int64_t blocks = length / block + (length % block != 0 ? 1 : 0);
  extents.reserve(static_cast<std::size_t>(blocks / parts + 1));
  for (std::int64_t b = part; b < blocks; b += parts)
    append(extents, {b * block, b + 1 < blocks ? (b + 1) * block : length});
  return extents;
}

Extents rows_of(const Rectangle& part, std::int64_t columns) {
  Extents extents;
  if (part.columns.count() == 0) return extents;
  for (std::int64_t row = part.rows.first; row < part.rows.end; ++row)
    append(extents, {row * columns + part.columns.first, row * columns + part.columns.end});
  return extents;
}

std::string shown(ElementRange range) {
  return "elements " + std::to_string(range.first) + " to " + std::to_string(range.end - 1);
}

}  // namespace

std::int64_t count(const Extents& extents) {
  std::int64_t elements = 0;
  for (const ElementRange& range : extents) elements += range.count();
  return elements;
}

ProcessGrid grid_of(int parts) {
  ProcessGrid grid{1, parts};
  for (int rows = 1; rows <= parts / rows; ++rows)
    if (parts % rows == 0) grid = {rows, parts / rows};
  return grid;
}

Rectangle rectangle_of(std::int64_t rows, std::int64_t columns, int parts, int part) {
  const ProcessGrid grid = grid_of(parts);
  return {Partition::block(rows, grid.rows).part(part / grid.columns),
          Partition::block(columns, grid.columns).part(part % grid.columns)};
}

ElementDistribution ElementDistribution::cyclic(std::int64_t length, std::int64_t block, int parts) {
  ElementDistribution made;
  made.shape_ = Cyclic{length, block, parts};
  return made;
}

ElementDistribution ElementDistribution::rectangles(std::int64_t rows, std::int64_t columns, int parts) {
  ElementDistribution made;
  made.shape_ = Rectangles{rows, columns, parts};
  return made;
}

ElementDistribution ElementDistribution::listed(std::int64_t length, std::vector<Extents> parts) {
  ElementDistribution made;
  made.shape_ = Listed{length, std::move(parts)};
  return made;
}

int ElementDistribution::parts() const {
  if (const auto* ranges = std::get_if<Partition>(&shape_)) return ranges->parts();
  if (const auto* cyclic = std::get_if<Cyclic>(&shape_)) return cyclic->parts;
  if (const auto* rectangles = std::get_if<Rectangles>(&shape_)) return rectangles->parts;
  return static_cast<int>(std::get<Listed>(shape_).parts.size());
}

std::int64_t ElementDistribution::length() const {
  if (const auto* ranges = std::get_if<Partition>(&shape_)) return ranges->length();
  if (const auto* cyclic = std::get_if<Cyclic>(&shape_)) return cyclic->length;
  if (const auto* rectangles = std::get_if<Rectangles>(&shape_)) return rectangles->rows * rectangles->columns;
  return std::get<Listed>(shape_).length;
}

Extents ElementDistribution::extents(int part) const {
  if (const auto* ranges = std::get_if<Partition>(&shape_)) {
    Extents one;
    append(one, ranges->part(part));
    return one;
  }
  if (const auto* cyclic = std::get_if<Cyclic>(&shape_))
    return dealt(cyclic->length, cyclic->block, cyclic->parts, part);
  if (const auto* all = std::get_if<Rectangles>(&shape_))
    return rows_of(rectangle_of(all->rows, all->columns, all->parts, part), all->columns);
  return std::get<Listed>(shape_).parts[static_cast<std::size_t>(part)];
}

std::string complaint(std::int64_t length, const std::vector<Extents>& parts) {
  Extents all;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    std::int64_t end = 0;
    for (const ElementRange& range : parts[k]) {
      if (range.count() <= 0 || range.first < end || range.end > length)
        return shown(range) + " of rank " + std::to_string(k) + ": extents must ascend within the array's " +
               std::to_string(length) + " elements";
      end = range.end;
      all.push_back(range);
    }
  }
  std::sort(all.begin(), all.end(), [](const ElementRange& a, const ElementRange& b) { return a.first < b.first; });
  std::int64_t end = 0;
  for (const ElementRange& range : all) {
    if (range.first < end) return "element " + std::to_string(range.first) + " belongs to two ranks";
    if (range.first > end) return "element " + std::to_string(end) + " belongs to no rank";
    end = range.end;
  }
  return end < length ? "element " + std::to_string(end) + " belongs to no rank" : "";
}

}  // namespace hocket::redistribute
