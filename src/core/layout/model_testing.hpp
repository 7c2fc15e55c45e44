// For tests: a model of a datatype that lists the addresses of all its bytes, and random datatypes that are built in
// both forms by the same calls.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "layout/layout.hpp"

namespace hocket::layout::testing {

using Numbers = std::vector<std::int64_t>;
using Random = std::mt19937_64;

// Returns a random number in first … last.
inline std::int64_t draw(Random& random, std::int64_t first, std::int64_t last) {
  return first + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(last - first + 1));
}

struct Model {
  Numbers at;  // address of each byte, in data order
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  std::int64_t extent() const { return upper - lower; }

  // Places children at displacements; the bounds follow MPI's rule.
  static Model of(const std::vector<std::pair<std::int64_t, const Model*>>& parts) {
    Model model;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto& [displacement, child] = parts[i];
      for (const std::int64_t address : child->at) model.at.push_back(displacement + address);
      model.lower = i == 0 ? displacement + child->lower : std::min(model.lower, displacement + child->lower);
      model.upper = i == 0 ? displacement + child->upper : std::max(model.upper, displacement + child->upper);
    }
    return model;
  }
  // Places blocks of children; displacements are in bytes.
  static Model blocks(const Numbers& lengths, const Numbers& displacements, const std::vector<const Model*>& children) {
    std::vector<std::pair<std::int64_t, const Model*>> parts;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      for (std::int64_t j = 0; j < lengths[i]; ++j) {
        parts.emplace_back(displacements[i] + j * children[i]->extent(), children[i]);
      }
    }
    return of(parts);
  }

  bool ordered() const {
    return std::ranges::adjacent_find(at, [](std::int64_t a, std::int64_t b) { return b <= a; }) == at.end();
  }
  // Returns the number of runs of bytes first … end - 1 of the data.
  std::int64_t segments(std::size_t first, std::size_t end) const {
    std::int64_t runs = first < end ? 1 : 0;
    for (std::size_t i = first + 1; i < end; ++i) runs += at[i] != at[i - 1] + 1 ? 1 : 0;
    return runs;
  }
};

struct Both {
  Layout layout;
  Model model;
};

inline Layout valid(Result<Layout> result) {
  EXPECT_TRUE(result.ok()) << result.error().text;
  return result ? std::move(result).value() : Layout{};
}

inline Layout bytes(std::int64_t count) { return valid(contiguous_bytes(count)); }

// Makes random datatypes. If `rising`, most can be tiled in a file; else they use anything that memory allows.
class Types {
 public:
  Types(std::uint64_t seed, bool rising) : random_(seed), rising_(rising) {}

  Both next(int levels = 3) {
    if (levels == 0 || draw(random_, 0, 9) == 0) return leaf();
    switch (draw(random_, 0, 6)) {
      case 0: return repeated(next(levels - 1));
      case 1: return strided(next(levels - 1));
      case 2: return listed(next(levels - 1));
      case 3: return listed_equal(next(levels - 1));
      case 4: return structured(levels);
      case 5: return part_of_array(next(levels - 1));
      default: return bounded(next(levels - 1));
    }
  }
  Random& random() { return random_; }

 private:
  Both leaf() {
    const std::int64_t size = draw(random_, 0, 9) == 0 ? 0 : draw(random_, 1, 8);
    Both both{bytes(size), {}};
    for (std::int64_t i = 0; i < size; ++i) both.model.at.push_back(i);
    both.model.upper = size;
    return both;
  }

  std::int64_t count() { return draw(random_, 0, 9) == 0 ? 0 : draw(random_, 1, 4); }
  std::int64_t gap() { return rising_ ? draw(random_, 0, 3) : draw(random_, -8, 8); }

  Both repeated(const Both& child) {
    const std::int64_t n = count();
    return {valid(contiguous(n, child.layout)), Model::blocks({n}, {0}, {&child.model})};
  }

  Both strided(const Both& child) {
    const std::int64_t n = count();
    const std::int64_t block = count();
    const bool in_bytes = draw(random_, 0, 1) == 1;
    const std::int64_t unit = in_bytes ? 1 : child.model.extent();
    const std::int64_t stride = gap() + (in_bytes ? block * child.model.extent() : block);
    Numbers displacements;
    for (std::int64_t i = 0; i < n; ++i) displacements.push_back(i * stride * unit);
    return {valid(in_bytes ? hvector(n, block, stride, child.layout) : vector(n, block, stride, child.layout)),
            Model::blocks(Numbers(displacements.size(), block), displacements,
                          std::vector<const Model*>(displacements.size(), &child.model))};
  }

  // Returns displacements with random gaps; the blocks overlap where a gap is negative.
  Numbers displacements(const Numbers& lengths, const std::vector<const Model*>& children) {
    Numbers result;
    std::int64_t end = 0;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      result.push_back(end + gap());
      end = result.back() + lengths[i] * children[i]->extent();
    }
    return result;
  }

  Both listed(const Both& child) {
    Numbers lengths;
    for (std::int64_t i = count(); i > 0; --i) lengths.push_back(count());
    const std::vector<const Model*> children(lengths.size(), &child.model);
    if (draw(random_, 0, 1) == 0) {
      const Numbers at = displacements(lengths, children);
      return {valid(hindexed(lengths, at, child.layout)), Model::blocks(lengths, at, children)};
    }
    Numbers elements;
    Numbers at;
    std::int64_t end = 0;
    for (const std::int64_t length : lengths) {
      elements.push_back(end + gap());
      at.push_back(elements.back() * child.model.extent());
      end = elements.back() + length;
    }
    return {valid(indexed(lengths, elements, child.layout)), Model::blocks(lengths, at, children)};
  }

  Both listed_equal(const Both& child) {
    const Numbers lengths(static_cast<std::size_t>(count()), count());
    const std::vector<const Model*> children(lengths.size(), &child.model);
    const Numbers at = displacements(lengths, children);
    const std::int64_t block = lengths.empty() ? 1 : lengths[0];
    return {valid(hindexed_block(block, at, child.layout)), Model::blocks(lengths, at, children)};
  }

  Both structured(int levels) {
    std::vector<Both> children;
    Numbers lengths;
    for (std::int64_t i = count(); i > 0; --i) {
      // Sometimes a child is repeated.
      children.push_back(!children.empty() && draw(random_, 0, 2) == 0 ? children.front() : next(levels - 1));
      lengths.push_back(count());
    }
    std::vector<Layout> layouts;
    std::vector<const Model*> models;
    for (const Both& child : children) {
      layouts.push_back(child.layout);
      models.push_back(&child.model);
    }
    const Numbers at = displacements(lengths, models);
    return {valid(structure(lengths, at, layouts)), Model::blocks(lengths, at, models)};
  }

  Both part_of_array(const Both& child) {
    const std::int64_t rows = draw(random_, 1, 4);
    const std::int64_t columns = draw(random_, 1, 4);
    const Numbers sub = {draw(random_, 1, rows), draw(random_, 1, columns)};
    const Numbers start = {draw(random_, 0, rows - sub[0]), draw(random_, 0, columns - sub[1])};
    std::vector<std::pair<std::int64_t, const Model*>> parts;
    for (std::int64_t i = start[0]; i < start[0] + sub[0]; ++i) {
      for (std::int64_t j = start[1]; j < start[1] + sub[1]; ++j) {
        parts.emplace_back((i * columns + j) * child.model.extent(), &child.model);
      }
    }
    Both both{valid(subarray(Numbers{rows, columns}, sub, start, Order::c, child.layout)), Model::of(parts)};
    both.model.lower = 0;
    both.model.upper = rows * columns * child.model.extent();
    return both;
  }

  Both bounded(Both child) {
    const std::int64_t lower = child.model.lower - (rising_ ? 0 : draw(random_, -3, 3));
    const std::int64_t extent = child.model.extent() + gap();
    child.layout = valid(resized(lower, extent, child.layout));
    child.model.lower = lower;
    child.model.upper = lower + extent;
    return child;
  }

  Random random_;
  bool rising_;
};

}  // namespace hocket::layout::testing
