#include "base/short_vector.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace hocket {
namespace {

TEST(ShortVector, IsEmptyAtFirstAndAfterItWasCleared) {
  ShortVector<int> vector;
  EXPECT_TRUE(vector.empty());
  EXPECT_EQ(vector.begin(), vector.end());
  vector.push_back(0);
  EXPECT_EQ(vector.size(), 1u);
  vector.clear();
  EXPECT_TRUE(vector.empty());
}

// The model is std::vector: the same calls give the same elements in the same order.
TEST(ShortVector, HasWhatAVectorHas) {
  std::mt19937_64 random{1};
  for (int run = 0; run < 200; ++run) {
    ShortVector<int> vector;
    std::vector<int> model;
    for (int step = 0; step < 30; ++step) {
      const int value = static_cast<int>(random() % 4);
      if (random() % 2 == 0) {
        vector.push_back(value);
        model.push_back(value);
      } else {
        vector.remove(value);
        std::erase(model, value);
      }
      ASSERT_EQ(vector.size(), model.size());
      ASSERT_TRUE(std::equal(vector.begin(), vector.end(), model.begin(), model.end()));
      if (model.empty()) continue;
      ASSERT_EQ(vector.front(), model.front());
      ASSERT_EQ(vector.back(), model.back());
      ASSERT_EQ(vector[model.size() - 1], model.back());
      ShortVector<int> copy = vector;
      copy.push_back(9);
      ASSERT_EQ(copy.size(), model.size() + 1);
      ASSERT_EQ(vector.size(), model.size()) << "a copy has elements of its own";
    }
  }
}

}  // namespace
}  // namespace hocket
