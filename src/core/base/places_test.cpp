#include "base/places.hpp"

#include <gtest/gtest.h>

namespace hocket {
namespace {

TEST(Places, AreNodesWithOrWithoutACore) {
  const auto places = places_of(" n1:3  n2 n3:000007 ");
  ASSERT_TRUE(places);
  ASSERT_EQ(places.value().size(), 3u);
  EXPECT_EQ(places.value()[0].node, "n1");
  EXPECT_EQ(places.value()[0].core, 3);
  EXPECT_EQ(places.value()[1].node, "n2");
  EXPECT_EQ(places.value()[1].core, -1);
  EXPECT_EQ(places.value()[2].core, 7);
}

TEST(Places, NoneAreGivenByNoWord) {
  EXPECT_TRUE(places_of("").value().empty());
  EXPECT_TRUE(places_of("   ").value().empty());
}

TEST(Places, TellTheWordThatIsNone) {
  for (const char* wrong : {":1", "n1:", "n1:x", "n1:-1", "n1:1:2", "n1:1234567"}) {
    const auto places = places_of(std::string{"n1:1 "} + wrong + " n2");
    ASSERT_FALSE(places) << wrong;
    EXPECT_EQ(places.error().text, wrong);
  }
}

}  // namespace
}  // namespace hocket
