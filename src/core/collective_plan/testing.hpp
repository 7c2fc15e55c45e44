// Helpers that the unit tests of collective I/O share.
#pragma once

#include <utility>

#include "layout/model_testing.hpp"
#include "layout/view.hpp"

namespace hocket::collective_plan {

// Returns a random view that has data.
inline layout::FileView random_view(layout::testing::Types& types) {
  for (;;) {
    const layout::testing::Both type = types.next();
    auto view = layout::FileView::make(layout::testing::draw(types.random(), 0, 50), type.layout);
    if (view && view.value().bytes() > 0) return std::move(view).value();
  }
}

}  // namespace hocket::collective_plan
