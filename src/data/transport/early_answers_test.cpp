#include "transport/early_answers.hpp"

#include <gtest/gtest.h>

namespace hocket::transport {
namespace {

TEST(EarlyAnswers, AreHeldUntilTheServerHasStoredThem) {
  EarlyAnswers early;
  EXPECT_FALSE(early.are_held());
  early.answered = 10;
  EXPECT_TRUE(early.are_held());
  early.all_stored(0, false);
  EXPECT_FALSE(early.are_held());
  early.answered = 15;
  early.synced(12);  // bytes that were answered while the sync was under way may be held
  EXPECT_TRUE(early.are_held());
  early.synced(10);
  EXPECT_EQ(early.stored, 12) << "never less than before";
  early.all_stored(28, true);
  EXPECT_EQ(early.error, 28);
  early.answered = 20;
  EXPECT_FALSE(early.are_held()) << "the server has ended in order";
}

// The table of docs/design/fencing.md.
TEST(EarlyAnswers, OnlyWhoClosesItselfWritesNothingLater) {
  for (const bool unanswered : {false, true}) {
    for (const bool held : {false, true}) {
      EXPECT_FALSE(may_write_later(true, unanswered, held));
      EXPECT_EQ(may_write_later(false, unanswered, held), unanswered || held);
    }
  }
}

}  // namespace
}  // namespace hocket::transport
