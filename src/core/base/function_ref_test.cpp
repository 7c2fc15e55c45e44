#include "base/function_ref.hpp"

#include <gtest/gtest.h>

#include <array>

namespace hocket {
namespace {

int twice(FunctionRef<int(int)> function, int value) { return function(function(value)); }

TEST(FunctionRef, CallsWhatItWasGivenWhereverThatIs) {
  std::array<int, 100> large{};
  large[99] = 3;
  int calls = 0;
  const auto add = [large, &calls](int value) {
    ++calls;
    return value + large[99];
  };
  EXPECT_EQ(twice(add, 1), 7);
  EXPECT_EQ(calls, 2);
}

TEST(FunctionRef, ACopyCallsTheSame) {
  int changed = 0;
  const auto change = [&changed](int& value) { value = ++changed; };
  const FunctionRef<void(int&)> function = change;
  const FunctionRef<void(int&)> copy = function;
  int seen = 0;
  copy(seen);
  function(seen);
  EXPECT_EQ(seen, 2);
}

}  // namespace
}  // namespace hocket
