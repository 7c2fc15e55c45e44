// Tests what servers that keep data sets are told of a drain, and how long they stay in the map.
#include <gtest/gtest.h>

#include "coordinator/coordinator.hpp"
#include "coordinator/script_testing.hpp"
#include "coordinator/servers/servers.hpp"

namespace hocket::coordinator {
namespace {

using testing::Lines;

class MovingTest : public testing::Script {
 protected:
  MovingTest() { hello(1); }

  // Member 11 is s1, 12 is s2, …
  Lines server(std::int64_t ms, std::uint64_t number, std::int64_t exchange_bytes = 1 << 20) {
    const std::string name = "s" + std::to_string(number);
    event::Server said{name, "unix:/" + name, "/scratch", 1 << 20, false, 700 + static_cast<std::int64_t>(number)};
    said.exchange_bytes = exchange_bytes;
    return at(ms, 10 + number, said);
  }
  Lines set(std::int64_t ms, const std::string& name, const std::string& action) {
    return at(ms, tool, event::SetServer{name, action});
  }
  Lines left(std::int64_t ms, std::uint64_t number, std::int64_t epoch, std::int64_t kept) {
    return at(ms, 10 + number, event::DataSetsLeft{epoch, kept, kept * 10, std::string(kept > 0 ? "field" : "")});
  }
  event::IoServer row(const std::string& name) {
    for (const event::IoServer& one : coordinator.servers().describe(Time{}))
      if (one.server == name) return one;
    return {};
  }

  static constexpr std::uint64_t tool = 99;
};

TEST_F(MovingTest, ADrainedServerIsInTheMapUntilItKeepsNothing) {
  for (std::uint64_t i = 1; i <= 2; ++i) server(1, i);
  EXPECT_EQ(set(2, "s1", "drain"),
            (Lines{"11 MOVE_DATA_SETS 1 to s2 from s1", "12 MOVE_DATA_SETS 2 to s2 from s1", "1 SERVER_MAP 3 s2"}))
      << "s1 is set aside";
  EXPECT_TRUE(row("s1").moves_data_sets);
  EXPECT_EQ(row("s1").epoch, 3);
  EXPECT_EQ(left(3, 1, 1, 2), Lines{});
  EXPECT_EQ(row("s1").data_sets_left, 2);
  EXPECT_EQ(row("s1").data_set_bytes_left, 20);
  EXPECT_EQ(row("s1").data_sets_text, "field");
  EXPECT_EQ(left(3, 1, 7, 0), Lines{}) << "an answer to something else";
  EXPECT_EQ(left(3, 2, 2, 0), Lines{}) << "a server that stays";
  EXPECT_EQ(left(4, 1, 1, 0), Lines{"1 SERVER_MAP 4 s2"}) << "s1 has left it";
  EXPECT_FALSE(row("s1").moves_data_sets);
  EXPECT_EQ(row("s1").epoch, 3) << "what applications must adopt is as before";
}

TEST_F(MovingTest, OneThatKeepsSomethingAfterAllReturnsIntoTheMap) {
  for (std::uint64_t i = 1; i <= 2; ++i) server(1, i);
  set(2, "s1", "drain");
  EXPECT_EQ(left(3, 1, 1, 0), Lines{"1 SERVER_MAP 4 s2"});
  EXPECT_EQ(left(4, 1, 1, 1), Lines{"1 SERVER_MAP 5 s2"});
  EXPECT_TRUE(row("s1").moves_data_sets);
  EXPECT_EQ(left(5, 1, 1, 0), Lines{"1 SERVER_MAP 6 s2"});
}

TEST_F(MovingTest, AServerThatKeepsNoDataSetsIsNotAsked) {
  server(1, 1, 0);
  server(1, 2);
  EXPECT_EQ(set(2, "s1", "drain"), Lines{"1 SERVER_MAP 3 s2"});
  EXPECT_FALSE(row("s1").moves_data_sets);
}

TEST_F(MovingTest, OneThatIsAddedAgainIsToldSo) {
  for (std::uint64_t i = 1; i <= 2; ++i) server(1, i);
  set(2, "s1", "drain");
  EXPECT_EQ(set(3, "s1", "add"),
            (Lines{"11 MOVE_DATA_SETS 3 to from ", "12 MOVE_DATA_SETS 4 to from ", "1 SERVER_MAP 4 s1 s2"}));
  EXPECT_EQ(left(4, 1, 1, 0), Lines{}) << "too late";
  EXPECT_EQ(set(5, "s1", "drain").size(), 3U);
  EXPECT_EQ(left(6, 1, 1, 0), Lines{}) << "it may have taken data sets since";
  EXPECT_TRUE(row("s1").moves_data_sets);
  EXPECT_EQ(left(6, 1, 5, 0).size(), 1U);
}

TEST_F(MovingTest, AllAreToldIfTheServersThatStayChange) {
  for (std::uint64_t i = 1; i <= 3; ++i) server(1, i);
  set(2, "s1", "drain");
  EXPECT_EQ(set(3, "s2", "drain"),
            (Lines{"11 MOVE_DATA_SETS 4 to s3 from s1 s2", "12 MOVE_DATA_SETS 5 to s3 from s1 s2",
                   "13 MOVE_DATA_SETS 6 to s3 from s1 s2", "1 SERVER_MAP 5 s3"}));
  EXPECT_EQ(left(4, 1, 1, 0), Lines{}) << "an answer to the earlier message";
  EXPECT_EQ(at(5, 13, event::Lost{}),
            (Lines{"11 MOVE_DATA_SETS 7 to from s1 s2", "12 MOVE_DATA_SETS 8 to from s1 s2", "1 SERVER_MAP 6"}))
      << "nobody stays, so they keep what they have";
  EXPECT_EQ(server(6, 4), (Lines{"11 MOVE_DATA_SETS 9 to s4 from s1 s2", "12 MOVE_DATA_SETS 10 to s4 from s1 s2",
                                 "14 MOVE_DATA_SETS 11 to s4 from s1 s2", "1 SERVER_MAP 7 s4"}));
}

TEST_F(MovingTest, ADrainedServerThatIsLostKeepsNothing) {
  for (std::uint64_t i = 1; i <= 2; ++i) server(1, i);
  set(2, "s1", "drain");
  EXPECT_EQ(at(3, 11, event::Lost{}), (Lines{"12 MOVE_DATA_SETS 3 to from ", "1 SERVER_MAP 4 s2"}));
  EXPECT_FALSE(row("s1").moves_data_sets);
}

}  // namespace
}  // namespace hocket::coordinator
