#include "collective/coverage.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "collective_plan/testing.hpp"

namespace hocket::runtime::collective {
namespace {

using collective_plan::random_view;
using layout::Extent;
using layout::FileView;
using layout::testing::draw;
using layout::testing::Random;

TEST(Coverage, HasTheRunsThatWereMarked) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    layout::testing::Types types(seed, true);
    const FileView views[] = {random_view(types), random_view(types)};
    const Extent data{draw(types.random(), 0, 20), draw(types.random(), 21, 300)};
    const Extent one = views[0].span(data), other = views[1].span(data);
    const Extent span{std::min(one.first, other.first), std::max(one.end, other.end)};
    std::vector<bool> marked(static_cast<std::size_t>(span.count()));
    std::vector<std::uint64_t> words(static_cast<std::size_t>(Coverage::words_for(span.count())), ~std::uint64_t{0});
    Coverage coverage(words.data(), span);
    coverage.clear();
    for (const FileView& view : views) {
      coverage.mark(view.walk(data));
      for (std::int64_t byte = data.first; byte < data.end; ++byte)
        marked[static_cast<std::size_t>(view.offset(byte) - span.first)] = true;
    }
    std::vector<bool> found(marked.size());
    std::int64_t end = -1;
    coverage.for_each_run([&](Extent run) {
      EXPECT_GT(run.first, end);
      EXPECT_GT(run.count(), 0);
      end = run.end;
      for (std::int64_t at = run.first; at < run.end; ++at) found[static_cast<std::size_t>(at - span.first)] = true;
    });
    EXPECT_EQ(found, marked) << "seed " << seed;
    EXPECT_EQ(coverage.full(), std::find(marked.begin(), marked.end(), false) == marked.end()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace hocket::runtime::collective
