#include "model/part_set.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/splitmix.hpp"

namespace hocket::model {
namespace {

using Names = std::vector<std::string>;

TEST(PartSet, WholeTargetMeetsAndCoversAll) {
  const PartSet whole;
  const PartSet some = PartSet::of({3, 70});
  EXPECT_TRUE(whole.meets(some));
  EXPECT_TRUE(some.meets(whole));
  EXPECT_TRUE(whole.meets(whole));
  EXPECT_TRUE(whole.covers(some));
  EXPECT_FALSE(some.covers(whole));
  PartSet both = some;
  both.add(whole);
  EXPECT_TRUE(both.is_whole());
}

TEST(PartSet, WholeTargetHasMoreThanAnyParts) {
  const PartSet whole;
  const PartSet own = PartSet::of({1});
  EXPECT_TRUE(whole.meets_beyond(own, whole));
  EXPECT_TRUE(whole.meets_beyond(own, PartSet::of({1, 2})));
  EXPECT_FALSE(whole.meets_beyond(own, PartSet::of({1})));
  EXPECT_FALSE(whole.meets_beyond(whole, whole));
}

// The model is a std::set of numbers.
TEST(PartSet, DoesWhatSetsDo) {
  std::uint64_t state = 24;
  const auto random = [&] { return splitmix(state += splitmix_step); };
  const auto draw = [&] {
    std::set<std::size_t> numbers;
    const std::size_t count = 1 + random() % 4;
    while (numbers.size() < count) numbers.insert(random() % 3 * 64 + random() % 3);
    return numbers;
  };
  const auto of = [](const std::set<std::size_t>& set) { return PartSet::of({set.begin(), set.end()}); };
  for (int i = 0; i < 5000; ++i) {
    const auto a = draw();
    const auto b = draw();
    const auto own = draw();
    bool meets = false;
    bool beyond = false;
    bool covers = true;
    for (const std::size_t one : b) {
      meets |= a.contains(one);
      beyond |= a.contains(one) && !own.contains(one);
      covers &= a.contains(one);
    }
    EXPECT_EQ(of(a).meets(of(b)), meets);
    EXPECT_EQ(of(a).meets_beyond(of(own), of(b)), beyond);
    EXPECT_EQ(of(a).covers(of(b)), covers);
    EXPECT_EQ(of(a) == of(b), a == b);
    auto all = a;
    all.insert(b.begin(), b.end());
    PartSet sum = of(a);
    sum.add(of(b));
    EXPECT_EQ(sum, of(all));
  }
}

TEST(PartNumbers, NamesComeBackSorted) {
  PartNumbers numbers;
  const PartSet first = numbers.set_of({"ost7", "ost9"}).value();
  const PartSet second = numbers.set_of({"ost1", "ost7"}).value();
  EXPECT_TRUE(first.meets(second));
  EXPECT_EQ(numbers.names_of(second), (Names{"ost1", "ost7"}));
  EXPECT_EQ(numbers.names_of(PartSet{}), Names{});
}

TEST(PartNumbers, AreBounded) {
  PartNumbers numbers;
  for (std::size_t i = 0; i < PartNumbers::most_names; ++i) ASSERT_TRUE(numbers.set_of({std::to_string(i)}));
  EXPECT_FALSE(numbers.set_of({"one more"}));
  EXPECT_TRUE(numbers.set_of({"17"}));
}

}  // namespace
}  // namespace hocket::model
