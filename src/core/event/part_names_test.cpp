#include "event/part_names.hpp"

#include <gtest/gtest.h>

namespace hocket::event {
namespace {

using PartNames = std::vector<std::string>;

std::string wrong(std::string_view text) {
  const auto names = part_names_of(text);
  return names ? std::string{} : names.error().text;
}

TEST(PartNames, AreSortedAndEachOnce) {
  EXPECT_EQ(part_names_of("ost7, ost3,ost7 ").value(), (PartNames{"ost3", "ost7"}));
  EXPECT_EQ(text_of_parts({"ost3", "ost7"}), "ost3,ost7");
  EXPECT_EQ(part_names_of(text_of_parts({"a"})).value(), PartNames{"a"});
}

TEST(PartNames, SayWhatIsWrong) {
  EXPECT_EQ(wrong(""), "a name is empty");
  EXPECT_EQ(wrong("ost1,,ost2"), "a name is empty");
  EXPECT_EQ(wrong("ost1,"), "a name is empty");
  EXPECT_EQ(wrong(std::string(65, 'x')), "a name has 65 bytes, more than 64");
  EXPECT_EQ(wrong(std::string(64, 'x')), "");
  EXPECT_EQ(wrong("ost 1"), "a name has a space, or a character that is not printable ASCII");
  EXPECT_EQ(wrong("ost\x80"), "a name has a space, or a character that is not printable ASCII");
}

TEST(PartNames, AreBounded) {
  std::string text = "p0";
  for (int i = 1; i < 64; ++i) text += ",p" + std::to_string(i);
  EXPECT_EQ(part_names_of(text).value().size(), 64U);
  EXPECT_EQ(wrong(text + ",p64"), "it has more than 64 names");
}

}  // namespace
}  // namespace hocket::event
