#include "session/prepared.hpp"

#include <gtest/gtest.h>

namespace hocket::runtime {
namespace {

class PreparedTest : public testing::Test {
 protected:
  void push(const Prepared::Pairs& pairs) {
    prepared_.push(pairs, [this](std::string_view line) { complaints_.emplace_back(line); });
  }
  Prepared prepared_;
  std::vector<std::string> complaints_;
};

TEST_F(PreparedTest, KnowsNothingAtFirst) {
  EXPECT_EQ(prepared_.phase_bytes(), 0);
  EXPECT_EQ(prepared_.text(), "");
  EXPECT_EQ(prepared_.value("target"), "");
  EXPECT_FALSE(prepared_.pop());
}

TEST_F(PreparedTest, MultipliesWhatSeveralLevelsHaveSaid) {
  push({{"files", "4"}});
  EXPECT_EQ(prepared_.phase_bytes(), 0) << "files of no known size";
  push({{"rounds", "10"}, {"bytes_per_round", "1e6"}});
  EXPECT_EQ(prepared_.phase_bytes(), 40'000'000);
  EXPECT_TRUE(prepared_.pop());
  EXPECT_EQ(prepared_.phase_bytes(), 0);
}

TEST_F(PreparedTest, BelievesTheWholeBeforeItsParts) {
  push({{"files", "4"}, {"bytes_per_round", "10"}, {"bytes", "7"}});
  EXPECT_EQ(prepared_.phase_bytes(), 7);
}

TEST_F(PreparedTest, TheLastWordOnAKeyHoldsUntilItIsCompleted) {
  push({{"bytes", "1"}, {"target", "a"}, {"note", "outer"}});
  push({{"bytes", "2"}, {"other", "x\ny"}});
  EXPECT_EQ(prepared_.phase_bytes(), 2);
  EXPECT_EQ(prepared_.value("target"), "a");
  EXPECT_EQ(prepared_.text(), "bytes=2\nother=x y\ntarget=a\nnote=outer\n");
  prepared_.pop();
  EXPECT_EQ(prepared_.text(), "bytes=1\ntarget=a\nnote=outer\n");
}

TEST_F(PreparedTest, LeavesOutWhatIsNoNumber) {
  push({{"bytes", "12"}});
  push({{"bytes", "many"}, {"files", "-1"}, {"rounds", "1e400"}, {"bytes_per_round", ""}, {"note", "many"}});
  EXPECT_EQ(complaints_.size(), 4U);
  EXPECT_EQ(complaints_.at(0), "hocket_io_prepare: bytes='many' is not a number of at least 0: ignored");
  EXPECT_EQ(prepared_.phase_bytes(), 12);
  EXPECT_EQ(prepared_.text(), "note=many\nbytes=12\n");
}

TEST_F(PreparedTest, ProductsStayWithin64Bits) {
  push({{"files", "1e18"}, {"rounds", "1e18"}, {"bytes_per_round", "1"}});
  EXPECT_EQ(prepared_.phase_bytes(), 9'000'000'000'000'000'000);
}

}  // namespace
}  // namespace hocket::runtime
