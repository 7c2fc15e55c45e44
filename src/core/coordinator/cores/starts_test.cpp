// Tests that an application which is about to start waits for cores only while others return them.
#include "coordinator/cores/starts.hpp"

#include <gtest/gtest.h>

#include <string>

#include "coordinator/testing.hpp"

namespace hocket::coordinator {
namespace {

using std::chrono::seconds;
using testing::describe;
using testing::event_of;

// Eight cores, of which application 1 has some.
class StartsTest : public ::testing::Test {
 protected:
  void run(std::int64_t cores) { cores_.claim(AppId{1}, cores, "node1"); }
  void give_back(std::int64_t cores) { cores_.release(AppId{1}, cores); }
  // Asks as tool 9, and returns the answer: "wait", "start", each with what is missing, or "" if there is none.
  std::string ask(std::int64_t processes, std::int64_t coming, std::uint64_t member = 9, const std::string& job = "j") {
    return at(0, coming, member, event::AskCores{job, "new", processes, seconds{30}});
  }
  std::string later(std::int64_t ms, std::int64_t coming) { return at(ms, coming, 0, event::Tick{}); }
  std::string at(std::int64_t ms, std::int64_t coming, std::uint64_t member, const event::Body& body) {
    commands_.clear();
    const event::Event event = event_of(ms, member, body);
    const Moment moment{event, event.time, commands_};
    if (const auto* asked = std::get_if<event::AskCores>(&event.body)) starts_.ask(moment, *asked);
    starts_.expire(moment.now);
    starts_.answer(moment, coming);
    std::string text;
    for (const Command& command : commands_) {
      if (const auto* answer = std::get_if<event::CoresFor>(&command.body)) {
        text += (text.empty() ? "" : ", ") + std::string{answer->wait ? "wait " : "start "} +
                std::to_string(answer->missing) + " for " + answer->job;
      } else {
        text += ", " + describe(command);
      }
    }
    return text;
  }

  model::Cores cores_{{{"node1", 8}}};
  std::int64_t decisions_ = 0;
  Starts starts_{cores_, decisions_};
  std::vector<Command> commands_;
};

TEST_F(StartsTest, FreeCoresAreKeptUntilTheApplicationComes) {
  run(4);
  EXPECT_EQ(ask(4, 0), "start 0 for j");
  EXPECT_EQ(cores_.free(), 0) << "no policy may give them away meanwhile";
  starts_.joined("j");
  EXPECT_EQ(cores_.free(), 4) << "the application itself takes them";
  EXPECT_FALSE(starts_.deadline());
}

TEST_F(StartsTest, BusyCoresThatNobodyReturnsAreNotWaitedFor) {
  run(8);
  EXPECT_EQ(ask(4, 0), "start 4 for j");
  EXPECT_EQ(decisions_, 0) << "it did not wait";
}

TEST_F(StartsTest, ItWaitsUntilTheCoresAreBack) {
  run(8);
  EXPECT_EQ(ask(4, 4), "wait 4 for j");
  EXPECT_EQ(later(1'000, 4), "") << "told once";
  give_back(4);
  EXPECT_EQ(later(2'000, 0), "start 0 for j, 0 DECISION 1 cores start new 0 to 4");
  const auto& decision = std::get<event::Decision>(commands_.back().body);
  EXPECT_EQ(decision.reason, (event::Reason{event::CoresAwaited{4, 0, 2}}));
}

TEST_F(StartsTest, ItStartsWithoutThoseThatDoNotComeAnyMore) {
  run(8);
  EXPECT_EQ(ask(4, 4), "wait 4 for j");
  give_back(3);
  EXPECT_EQ(later(2'000, 0), "start 1 for j, 0 DECISION 1 cores start new 0 to 4");
}

TEST_F(StartsTest, TheWaitIsBounded) {
  run(8);
  EXPECT_EQ(ask(4, 4), "wait 4 for j");
  ASSERT_EQ(starts_.deadline(), Time{} + seconds{30});
  EXPECT_EQ(later(29'999, 4), "");
  EXPECT_EQ(later(30'000, 4), "start 4 for j, 0 DECISION 1 cores start new 0 to 4");
}

TEST_F(StartsTest, TheFirstIsServedFirst) {
  run(8);
  EXPECT_EQ(ask(2, 4, 9, "j"), "wait 2 for j");
  EXPECT_EQ(ask(2, 4, 10, "k"), "wait 2 for k");
  give_back(2);
  EXPECT_EQ(later(1'000, 2), "start 0 for j, 0 DECISION 1 cores start new 0 to 2");
}

TEST_F(StartsTest, OneThatIsInterruptedOrNeverComesLeavesNothingBehind) {
  run(8);
  EXPECT_EQ(ask(4, 4), "wait 4 for j");
  starts_.leave(MemberId{9});
  EXPECT_EQ(cores_.taken_beyond(), 0);
  EXPECT_TRUE(starts_.empty());
  give_back(4);
  EXPECT_EQ(ask(4, 0), "start 0 for j");
  starts_.leave(MemberId{9});
  EXPECT_EQ(cores_.free(), 0) << "the tool becomes the launcher, so its connection ends as the application starts";
  later(10'000, 0);
  EXPECT_EQ(cores_.free(), 4) << "it has not come";
}

TEST_F(StartsTest, ImpossibleNumbersAreRefused) {
  run(1);
  EXPECT_NE(ask(0, 0).find("REFUSED"), std::string::npos);
  EXPECT_NE(ask(std::int64_t{1} << 40, 0).find("REFUSED"), std::string::npos);
  EXPECT_EQ(cores_.taken_beyond(), 0);
}

}  // namespace
}  // namespace hocket::coordinator
