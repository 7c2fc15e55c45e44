#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layout/layout.hpp"
#include "layout/model_testing.hpp"

namespace hocket::layout {
namespace {

using namespace testing;
using ::testing::HasSubstr;

Numbers unrolled(const Layout& layout) {
  Numbers result;
  Segments segments(layout.walk());
  while (const std::optional<MappedExtent> segment = segments.next()) {
    for (std::int64_t i = 0; i < segment->length; ++i) result.push_back(segment->at + i);
  }
  return result;
}

// Calls `visit(indices, position)` for each element in storage order.
template <class Visit>
void each_element(const Numbers& sizes, Order order, const Visit& visit) {
  std::int64_t elements = 1;
  for (const std::int64_t size : sizes) elements *= size;
  for (std::int64_t position = 0; position < elements; ++position) {
    Numbers indices(sizes.size());
    std::int64_t rest = position;
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      const std::size_t i = order == Order::c ? sizes.size() - 1 - k : k;
      indices[i] = rest % sizes[i];
      rest /= sizes[i];
    }
    visit(indices, position);
  }
}

Numbers bytes_of(const Numbers& elements, std::int64_t size, std::int64_t extent) {
  Numbers result;
  for (const std::int64_t element : elements) {
    for (std::int64_t i = 0; i < size; ++i) result.push_back(element * extent + i);
  }
  return result;
}

Order random_order(Random& random) { return draw(random, 0, 1) == 0 ? Order::c : Order::fortran; }

TEST(Subarray, OfWholeRowsIsOneRun) {
  const Layout rows = valid(subarray(Numbers{10, 20}, Numbers{3, 20}, Numbers{2, 0}, Order::c, bytes(8)));
  EXPECT_TRUE(rows.contiguous());
  EXPECT_EQ(rows.span(), (Extent{320, 800}));
  EXPECT_EQ(rows.extent(), 1600);
}

TEST(Subarray, IsWhatMpiSays) {
  Random random(11);
  for (int trial = 0; trial < 500; ++trial) {
    SCOPED_TRACE(trial);
    Numbers sizes;
    Numbers subsizes;
    Numbers starts;
    for (std::int64_t i = draw(random, 1, 4); i > 0; --i) {
      sizes.push_back(draw(random, 1, 5));
      subsizes.push_back(draw(random, 1, sizes.back()));
      starts.push_back(draw(random, 0, sizes.back() - subsizes.back()));
    }
    const Order order = random_order(random);
    Numbers elements;
    std::int64_t count = 0;
    each_element(sizes, order, [&](const Numbers& indices, std::int64_t position) {
      bool inside = true;
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        inside = inside && indices[i] >= starts[i] && indices[i] < starts[i] + subsizes[i];
      }
      if (inside) elements.push_back(position);
      ++count;
    });
    const Layout type = valid(subarray(sizes, subsizes, starts, order, valid(resized(0, 5, bytes(3)))));
    ASSERT_EQ(unrolled(type), bytes_of(elements, 3, 5));
    ASSERT_EQ(type.lower_bound(), 0);
    ASSERT_EQ(type.extent(), count * 5);
  }
}

TEST(Subarray, OutsideOfTheArrayIsAnErrorThatNamesTheDimension) {
  const Result<Layout> result = subarray(Numbers{4, 4}, Numbers{4, 3}, Numbers{0, 2}, Order::c, bytes(8));
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().text, HasSubstr("dimension 1: 3 elements from 2 on are not within 4"));
  EXPECT_FALSE(subarray(Numbers{4}, Numbers{4, 3}, Numbers{0, 2}, Order::c, bytes(8)).ok());
  EXPECT_FALSE(subarray(Numbers{4}, Numbers{-1}, Numbers{0}, Order::c, bytes(8)).ok());
  const std::int64_t much = std::int64_t{1} << 31;
  EXPECT_FALSE(subarray(Numbers{much, much}, Numbers{1, 1}, Numbers{0, 0}, Order::c, bytes(8)).ok());
  EXPECT_TRUE(subarray(Numbers{much, much / 4}, Numbers{1, 1}, Numbers{5, 5}, Order::c, bytes(2)).ok());
}

// ---- darray ------------------------------------------------------------------------------------------------------

std::int64_t owner(const Dimension& d, std::int64_t index) {
  std::int64_t block = d.size;
  if (d.distribution == Distribution::block) block = (d.size + d.processes - 1) / d.processes;
  if (d.distribution == Distribution::cyclic) block = 1;
  if (d.argument != default_argument && d.distribution != Distribution::none) block = d.argument;
  return index / block % d.processes;
}

std::vector<Dimension> random_grid(Random& random) {
  std::vector<Dimension> dimensions;
  for (std::int64_t i = draw(random, 1, 3); i > 0; --i) {
    Dimension d{draw(random, 1, 9), static_cast<Distribution>(draw(random, 0, 2)), default_argument,
                draw(random, 1, 3)};
    if (d.distribution == Distribution::none) d.processes = 1;
    if (draw(random, 0, 1) == 1) {
      d.argument = draw(random, 1, 4);
      if (d.distribution == Distribution::block) d.argument += (d.size + d.processes - 1) / d.processes - 1;
    }
    dimensions.push_back(d);
  }
  return dimensions;
}

TEST(Darray, IsWhatMpiSays) {
  Random random(12);
  for (int trial = 0; trial < 500; ++trial) {
    SCOPED_TRACE(trial);
    const std::vector<Dimension> dimensions = random_grid(random);
    const Order order = random_order(random);
    Numbers sizes;
    std::int64_t processes = 1;
    for (const Dimension& d : dimensions) {
      sizes.push_back(d.size);
      processes *= d.processes;
    }
    std::vector<Numbers> elements(static_cast<std::size_t>(processes));
    std::int64_t count = 0;
    each_element(sizes, order, [&](const Numbers& indices, std::int64_t position) {
      std::int64_t rank = 0;  // the grid is in row-major order, regardless of the array's
      for (std::size_t i = 0; i < indices.size(); ++i) {
        rank = rank * dimensions[i].processes + owner(dimensions[i], indices[i]);
      }
      elements[static_cast<std::size_t>(rank)].push_back(position);
      ++count;
    });
    for (std::int64_t rank = 0; rank < processes; ++rank) {
      const Layout type = valid(darray(processes, rank, dimensions, order, bytes(2)));
      ASSERT_EQ(unrolled(type), bytes_of(elements[static_cast<std::size_t>(rank)], 2, 2)) << "rank " << rank;
      ASSERT_EQ(type.extent(), 2 * count);
    }
  }
}

TEST(Darray, CyclicOfManyBlocksStaysAFormula) {
  const std::vector<Dimension> line = {{std::int64_t{1} << 40, Distribution::cyclic, 3, 4}};
  const Layout type = valid(darray(4, 1, line, Order::c, bytes(8)));
  EXPECT_LE(type.data().node->depth, 3);
  EXPECT_EQ(type.extent(), std::int64_t{1} << 43);
}

TEST(Darray, WhatIsNotValidIsAnError) {
  const std::vector<Dimension> small_blocks = {{10, Distribution::block, 2, 4}};
  EXPECT_THAT(darray(4, 0, small_blocks, Order::c, bytes(1)).error().text, HasSubstr("do not hold 10 elements"));
  const std::vector<Dimension> line = {{10, Distribution::cyclic, 2, 4}};
  EXPECT_FALSE(darray(4, 4, line, Order::c, bytes(1)).ok());
  EXPECT_FALSE(darray(5, 0, line, Order::c, bytes(1)).ok());
  const std::vector<Dimension> undistributed = {{10, Distribution::none, default_argument, 4}};
  EXPECT_FALSE(darray(4, 0, undistributed, Order::c, bytes(1)).ok());
  const std::vector<Dimension> empty = {{10, Distribution::cyclic, 0, 4}};
  EXPECT_FALSE(darray(4, 0, empty, Order::c, bytes(1)).ok());
  const std::vector<Dimension> large(3, {std::int64_t{1} << 30, Distribution::block, default_argument, 1});
  EXPECT_FALSE(darray(1, 0, large, Order::c, bytes(1)).ok());
}

}  // namespace
}  // namespace hocket::layout
