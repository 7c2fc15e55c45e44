#include "session/prepared.hpp"

#include <gtest/gtest.h>

#include <random>

namespace hocket::runtime {
namespace {

using Popped = Prepared::Popped;

class PreparedTest : public ::testing::Test {
 protected:
  void push(const Prepared::Pairs& pairs) {
    prepared_.push(pairs, done_, [this](std::string_view line) { complaints_.emplace_back(line); });
  }
  IoLeft left() const { return prepared_.left(done_); }
  Prepared prepared_;
  IoDone done_{1000, 3};
  std::vector<std::string> complaints_;
};

TEST_F(PreparedTest, KnowsNothingAtFirst) {
  EXPECT_EQ(left().bytes, 0);
  EXPECT_EQ(left().files, 0);
  EXPECT_EQ(prepared_.text(), "");
  EXPECT_EQ(prepared_.value("target"), "");
  EXPECT_FALSE(prepared_.announces());
  EXPECT_EQ(prepared_.pop(), Popped::nothing);
}

TEST_F(PreparedTest, MultipliesWhatSeveralLevelsHaveSaid) {
  push({{"files", "4"}});
  EXPECT_EQ(left().bytes, 0) << "files of no known size";
  EXPECT_EQ(left().files, 4);
  push({{"rounds", "10"}, {"bytes_per_round", "1e6"}});
  EXPECT_EQ(left().bytes, 40'000'000);
  EXPECT_EQ(left().rounds, 10);
  EXPECT_EQ(left().bytes_per_round, 1'000'000);
  EXPECT_EQ(prepared_.pop(), Popped::level);
  EXPECT_EQ(left().bytes, 0);
}

TEST_F(PreparedTest, BelievesTheWholeBeforeItsParts) {
  push({{"files", "4"}, {"bytes_per_round", "10"}, {"bytes", "7"}});
  EXPECT_EQ(left().bytes, 7);
}

TEST_F(PreparedTest, TheLastWordOnAKeyHoldsUntilItIsCompleted) {
  push({{"bytes", "1"}, {"target", "a"}, {"note", "outer"}});
  push({{"bytes", "2"}, {"other", "x\ny"}});
  EXPECT_EQ(left().bytes, 2);
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
  EXPECT_EQ(left().bytes, 12);
  EXPECT_EQ(prepared_.text(), "note=many\nbytes=12\n");
}

TEST_F(PreparedTest, ProductsStayWithin64Bits) {
  push({{"files", "1e18"}, {"rounds", "1e18"}, {"bytes_per_round", "1"}});
  EXPECT_EQ(left().bytes, 9'000'000'000'000'000'000);
}

// The paper's loop over files (Fig. 10): each file is accessed and closed.
TEST_F(PreparedTest, WhatIsLeftFollowsFromWhatIsDone) {
  push({{"files", "4"}, {"bytes", "400"}});
  for (int file = 0; file < 4; ++file) {
    EXPECT_EQ(left().files, 4 - file);
    EXPECT_EQ(left().bytes, 400 - 100 * file);
    done_.bytes += 100;
    EXPECT_EQ(left().files, file == 0 ? 3 : 4 - file) << "none was closed: by bytes";
    ++done_.files;
  }
  EXPECT_EQ(left().files, 0);
  EXPECT_EQ(left().bytes, 0);
  EXPECT_EQ(prepared_.files_exceeded(done_), 0);
  done_.bytes += 100;
  ++done_.files;
  EXPECT_EQ(left().files, 0);
  EXPECT_EQ(left().bytes, 0) << "more than announced";
  EXPECT_EQ(prepared_.files_exceeded(done_), 4);
}

TEST_F(PreparedTest, FilesOfUnequalSizeAreCountedAsTheyAreClosed) {
  push({{"files", "4"}, {"bytes", "1000"}});
  done_ = {done_.bytes + 900, done_.files + 1};
  EXPECT_EQ(left().files, 3);
}

TEST_F(PreparedTest, FilesThatNobodyClosesAreKnownByTheirBytes) {
  push({{"files", "3"}, {"rounds", "7"}, {"bytes_per_round", "11"}});
  for (std::int64_t files = 3; files > 0; --files) {
    EXPECT_EQ(left().files, files);
    done_.bytes += 76;
    EXPECT_EQ(left().files, files) << "a byte is missing";
    done_.bytes += 1;
  }
  EXPECT_EQ(left().files, 0);
}

// A library prepares each file of an application that has prepared all.
TEST_F(PreparedTest, AnInnerLevelIsAPartOfTheOuterOne) {
  push({{"bytes", "400"}, {"files", "4"}});
  for (int file = 0; file < 4; ++file) {
    push({{"bytes", "100"}, {"rounds", "5"}});
    EXPECT_EQ(left().bytes, 400 - 100 * file);
    EXPECT_EQ(left().rounds, 5);
    done_ = {done_.bytes + 100, done_.files + 1};
    EXPECT_EQ(prepared_.pop(), Popped::level);
    EXPECT_EQ(left().bytes, 300 - 100 * file);
    EXPECT_EQ(left().rounds, 0);
  }
  EXPECT_EQ(prepared_.pop(), Popped::phase);
}

// A library prepares one file of an application that has prepared all, with or without `bytes`.
TEST_F(PreparedTest, InnerFilesAreAPartOfTheOuterOnes) {
  for (const Prepared::Pairs& outer : {Prepared::Pairs{{"files", "4"}, {"rounds", "10"}, {"bytes_per_round", "2000"}},
                                       Prepared::Pairs{{"files", "4"}, {"rounds", "10"}, {"bytes", "80000"}},
                                       Prepared::Pairs{{"files", "4"}, {"bytes", "80000"}}}) {
    push(outer);
    for (std::int64_t file = 0; file < 4; ++file) {
      push({{"files", "1"}});
      EXPECT_EQ(left().files, 4 - file);
      EXPECT_EQ(left().bytes, 80'000 - 20'000 * file);
      done_.bytes += 10'000;
      EXPECT_EQ(left().files, 4 - file) << "in the middle of a file";
      EXPECT_EQ(left().bytes, 70'000 - 20'000 * file);
      done_ = {done_.bytes + 10'000, done_.files + 1};
      EXPECT_EQ(prepared_.files_exceeded(done_), 0);
      EXPECT_EQ(prepared_.pop(), Popped::level);
    }
    EXPECT_EQ(left().files, 0);
    EXPECT_EQ(left().bytes, 0);
    EXPECT_EQ(prepared_.pop(), Popped::phase);
  }
}

TEST_F(PreparedTest, AnInnerLevelTellsTheSizeOfTheOuterOnesFiles) {
  push({{"files", "4"}});
  push({{"files", "1"}, {"bytes", "100"}});
  EXPECT_EQ(left().bytes, 400);
  EXPECT_EQ(left().files, 4);
  done_ = {done_.bytes + 100, done_.files + 1};
  EXPECT_EQ(prepared_.pop(), Popped::level);
  push({{"files", "1"}, {"bytes", "100"}});
  EXPECT_EQ(left().bytes, 300);
  EXPECT_EQ(left().files, 3);
}

TEST_F(PreparedTest, ALevelsOwnRoundsCountForItsFiles) {
  push({{"files", "4"}, {"rounds", "10"}, {"bytes_per_round", "2000"}});
  push({{"files", "1"}, {"rounds", "5"}, {"bytes_per_round", "100"}});
  EXPECT_EQ(left().bytes, 80'000);
  EXPECT_EQ(left().rounds, 5) << "of the present file";
  EXPECT_EQ(left().bytes_per_round, 100);
}

TEST_F(PreparedTest, MoreFilesThanAnyLevelAnnouncedAreNoticed) {
  push({{"files", "2"}});
  push({{"files", "4"}});
  done_.files += 2;
  EXPECT_EQ(prepared_.files_exceeded(done_), 0);
  ++done_.files;
  EXPECT_EQ(prepared_.files_exceeded(done_), 2);
}

TEST_F(PreparedTest, AnInnerLevelThatNeedsMoreThanIsLeftIsBelieved) {
  push({{"bytes", "100"}});
  done_.bytes += 90;
  push({{"bytes", "50"}});
  EXPECT_EQ(left().bytes, 50);
}

TEST_F(PreparedTest, ThePhaseEndsWithTheOutermostLevelThatAnnouncesIo) {
  push({{"target", "scratch"}});
  push({{"files", "2"}});
  push({{"note", "x"}});
  EXPECT_EQ(prepared_.pop(), Popped::level);
  EXPECT_EQ(prepared_.pop(), Popped::phase);
  EXPECT_EQ(prepared_.pop(), Popped::level) << "it announced no I/O";
  EXPECT_EQ(prepared_.pop(), Popped::nothing);
}

TEST_F(PreparedTest, CountsAnew) {
  push({{"bytes", "100"}, {"files", "1"}});
  done_ = {done_.bytes + 100, done_.files + 1};
  prepared_.count_anew(done_);
  EXPECT_EQ(left().bytes, 100);
  EXPECT_EQ(left().files, 1);
}

// Whatever comes in whatever order, what is left is never negative and never grows while I/O is done.
TEST_F(PreparedTest, WhatIsLeftNeverGrowsByItself) {
  std::mt19937_64 random{7};
  const auto number = [&] { return std::to_string(random() % 1000); };
  for (int round = 0; round < 2000; ++round) {
    switch (random() % 6) {
      case 4: push({{"files", std::to_string(random() % 8)}}); break;
      case 0: push({{"bytes", number()}, {"files", std::to_string(random() % 8)}}); break;
      case 1: push({{"rounds", number()}, {"bytes_per_round", number()}}); break;
      case 2:
      case 5: prepared_.pop(); break;
      default: break;
    }
    const IoLeft before = left();
    done_.bytes += static_cast<std::int64_t>(random() % 500);
    const IoLeft after = left();
    ASSERT_GE(after.bytes, 0);
    ASSERT_LE(after.bytes, before.bytes) << round;
    ASSERT_LE(after.files, before.files) << round;
  }
}

}  // namespace
}  // namespace hocket::runtime
