#include "coordinator/arbitration/nodes.hpp"

#include <gtest/gtest.h>

namespace hocket::coordinator {
namespace {

TEST(Nodes, UsesTheNodeThatWasRemovedForTheNextValue) {
  Nodes<int> nodes;
  std::list<int> first;
  std::list<int> second;
  nodes.append(first, 1);
  const auto removed = nodes.append(first, 2);
  const int* place = &*removed;
  nodes.append(first, 3);
  nodes.remove(first, removed);
  EXPECT_EQ(first, (std::list<int>{1, 3}));
  second.push_back(0);
  EXPECT_EQ(&*nodes.append(second, 4), place);
  EXPECT_EQ(second, (std::list<int>{0, 4}));
}

}  // namespace
}  // namespace hocket::coordinator
