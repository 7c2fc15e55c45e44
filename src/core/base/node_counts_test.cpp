#include "base/node_counts.hpp"

#include <gtest/gtest.h>

namespace hocket {
namespace {

using Counts = std::vector<NodeCount>;

TEST(NodeCounts, AreReadAsTheyAreWritten) {
  const Counts counts{{"node-1", 4}, {"b.example.org", 1}};
  EXPECT_EQ(text_of(counts, 100), "node-1=4 b.example.org=1");
  EXPECT_EQ(node_counts_of("node-1=4  b.example.org=1 ").value(), counts);
  EXPECT_EQ(node_counts_of("").value(), Counts{});
  EXPECT_EQ(text_of({}, 100), "");
}

TEST(NodeCounts, LeaveOutATextThatIsTooLong) {
  EXPECT_EQ(text_of({{"ab", 1}, {"cd", 2}}, 9), "ab=1 cd=2");
  EXPECT_EQ(text_of({{"ab", 1}, {"cd", 2}}, 8), "");
}

TEST(NodeCounts, GiveANameAloneTheNumberOfTheCaller) {
  EXPECT_EQ(node_counts_of("a b=2", 7).value(), (Counts{{"a", 7}, {"b", 2}}));
  EXPECT_EQ(node_counts_of("a b=2").error().text, "a");
}

TEST(NodeCounts, NameTheFirstWrongWord) {
  for (const char* wrong : {"=3", "a=", "a=0", "a=-1", "a=1x", "a=99999999999999999999", "="}) {
    const auto read = node_counts_of(std::string{"b=1 "} + wrong + " c=0", 1);
    ASSERT_FALSE(read) << wrong;
    EXPECT_EQ(read.error().text, wrong);
  }
}

}  // namespace
}  // namespace hocket
