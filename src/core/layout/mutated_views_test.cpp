// Serialised views with faults in them: clients send views to I/O servers.
#include <gtest/gtest.h>

#include "base/mutated_testing.hpp"
#include "layout/model_testing.hpp"
#include "layout/view.hpp"

namespace hocket::layout {
namespace {

TEST(MutatedViews, AreRefusedOrCanBeWalked) {
  testing::Types types{1, true};
  Mutations mutations{2};
  int accepted = 0;
  for (int i = 0; i < Mutations::count(); ++i) {
    const auto made = FileView::make(static_cast<std::int64_t>(mutations.below(100)), types.next().layout);
    std::string valid;
    append(made ? made.value() : FileView{7}, valid);
    const auto view = read_view(mutations.mutated(valid));
    if (!view) continue;
    ++accepted;
    const std::int64_t bytes = std::min<std::int64_t>(view.value().bytes(), 64);
    std::int64_t walked = 0;
    std::int64_t end = 0;
    Segments segments = view.value().segments({0, bytes});
    while (const auto run = segments.next()) {
      EXPECT_GE(run->at, end);
      end = run->at + run->length;
      walked += run->length;
    }
    EXPECT_EQ(walked, bytes);
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace hocket::layout
