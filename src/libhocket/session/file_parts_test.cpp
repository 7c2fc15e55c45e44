#include "session/file_parts.hpp"

#include <gtest/gtest.h>

namespace hocket::runtime {
namespace {

const PartNames layout{"ost1", "ost7"};

TEST(FileParts, AreThoseOfTheHintElseOfTheLayout) {
  EXPECT_EQ(choose_parts(std::nullopt, std::nullopt), FileParts{});
  EXPECT_EQ(choose_parts(std::nullopt, layout), FileParts{"ost1,ost7"});
  EXPECT_EQ(choose_parts("ost7", layout), FileParts{"ost7"});
  EXPECT_EQ(choose_parts(" b, a", std::nullopt), FileParts{"a,b"});
}

TEST(FileParts, NobodyKnowsAreNotUsed) {
  EXPECT_EQ(choose_parts("ost7,ost9", layout), (FileParts{"ost7,ost9", "the file is not on 'ost9', but on ost1,ost7"}));
}

TEST(FileParts, MalformedAreNotUsed) {
  EXPECT_EQ(choose_parts("", layout), (FileParts{"", "a name is empty"}));
  EXPECT_EQ(choose_parts("a,,b", std::nullopt), (FileParts{"a,,b", "a name is empty"}));
}

TEST(FileParts, IgnoredHintIsOneLine) {
  EXPECT_EQ(ignored_line({"a,,b", "a name is empty"}, "hocket_targets", "/scratch/x", "dev:8:1"),
            "hocket_targets=a,,b of /scratch/x is ignored: a name is empty; its I/O uses all of dev:8:1");
}

}  // namespace
}  // namespace hocket::runtime
