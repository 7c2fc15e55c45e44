// Distribution of the elements of an array over parts, each of which holds a list of extents: one range
// (partition.hpp), every n-th block, a rectangle of a matrix, or what the program lists. Pure.
//
// The memory of a part has its elements in ascending order, without gaps.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "redistribute/partition.hpp"

namespace hocket::redistribute {

// Extents in ascending order, none of them empty, without common elements.
using Extents = std::vector<ElementRange>;
std::int64_t count(const Extents& extents);

// Process grid of a two-dimensional distribution.
struct ProcessGrid {
  int rows = 1;
  int columns = 1;
  bool operator==(const ProcessGrid&) const = default;
};
// Returns the grid with the smallest difference between its sides; columns >= rows. Precondition: parts >= 1.
ProcessGrid grid_of(int parts);

// Rectangle of a matrix: rows rows.first … rows.end - 1, and columns alike.
struct Rectangle {
  ElementRange rows;
  ElementRange columns;
  bool operator==(const Rectangle&) const = default;
};
// Returns the rectangle of a part: parts follow the rows of the grid, and both sides are shared out as by
// Partition::block. Preconditions: rows, columns >= 0, 0 <= part < parts.
Rectangle rectangle_of(std::int64_t rows, std::int64_t columns, int parts, int part);

// A division of 0 … length - 1 into parts, some of which may be empty.
class ElementDistribution {
 public:
  ElementDistribution() = default;
  ElementDistribution(Partition ranges)
      : shape_(std::move(ranges)) {}  // NOLINT(google-explicit-constructor): a special case

  // Deals blocks of `block` elements to the parts in turn; the last block may be shorter. Preconditions: length >= 0,
  // block >= 1, parts >= 1.
  static ElementDistribution cyclic(std::int64_t length, std::int64_t block, int parts);
  // Gives each part a rectangle of a matrix whose elements follow each other by rows. Preconditions as for
  // rectangle_of.
  static ElementDistribution rectangles(std::int64_t rows, std::int64_t columns, int parts);
  // Gives each part the extents that the program listed for it. Precondition: complaint() found nothing wrong.
  static ElementDistribution listed(std::int64_t length, std::vector<Extents> parts);

  int parts() const;
  std::int64_t length() const;
  // Returns the extents of a part; adjacent blocks are one extent. Precondition: 0 <= part < parts().
  Extents extents(int part) const;
  // Returns the ranges if each part is one range by the kind of the distribution, else nullptr.
  const Partition* ranges() const { return std::get_if<Partition>(&shape_); }
  bool operator==(const ElementDistribution&) const = default;

 private:
  struct Cyclic {
    std::int64_t length = 0;
    std::int64_t block = 1;
    int parts = 0;
    bool operator==(const Cyclic&) const = default;
  };
  struct Rectangles {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    int parts = 0;
    bool operator==(const Rectangles&) const = default;
  };
  struct Listed {
    std::int64_t length = 0;
    std::vector<Extents> parts;
    bool operator==(const Listed&) const = default;
  };
  std::variant<Partition, Cyclic, Rectangles, Listed> shape_;
};

// Returns a sentence if these lists do not give each of 0 … length - 1 to exactly one part in ascending order; "" if
// they do.
std::string complaint(std::int64_t length, const std::vector<Extents>& parts);

}  // namespace hocket::redistribute
