#include "allocation/choices.hpp"

#include <gtest/gtest.h>

namespace hocket::allocation {
namespace {

TEST(Choices, AreTheirTextAgain) {
  for (const char* text : {"", "0:0", "0:195700000 1:77600000", "1:5 2:4 1000000:1000000000000000"})
    EXPECT_EQ(text_of(parse_choices(text)), text);
  EXPECT_EQ(parse_choices("0:195700000 8:7").back().servers, 8);
}

TEST(Choices, ATextThatIsNoCurveIsUnknown) {
  for (const char* text : {"1", "1:", ":1", "1:2:3", "1:2  2:3", " 1:2", "-1:2", "1:-2", "2:1 1:1", "1:1 1:2", "a:1",
                           "1:a", "1.5:1", "1000001:1", "1:1000000000000001", "99999999999999999999:1", "1:2,2:3"})
    EXPECT_TRUE(parse_choices(text).empty()) << text;
  std::string many;
  for (std::size_t i = 0; i < most_choices; ++i) many += (i > 0 ? " " : "") + std::to_string(i) + ":1";
  EXPECT_EQ(parse_choices(many).size(), most_choices);
  EXPECT_TRUE(parse_choices(many + " 999:1").empty());
}

}  // namespace
}  // namespace hocket::allocation
