// Requests for parts of a target: what waits for what, one small case each.
#include <gtest/gtest.h>

#include "coordinator/script_testing.hpp"
#include "event/part_names.hpp"

namespace hocket::coordinator {
namespace {

using testing::Lines;

class Parts : public testing::AccessScript {
 protected:
  void SetUp() override {
    for (std::uint64_t member = 1; member <= 4; ++member) {
      const std::string name(1, static_cast<char>('a' + member - 1));
      hello(member, "job-" + name, name);
    }
  }
  Lines start_parts(std::int64_t ms, std::uint64_t member, std::uint64_t request, const std::string& parts,
                    const std::string& error = {}) {
    event::StartIo start{RequestId{request}, "dev:8:1", "/f", "MPI_File_write_all", 10};
    start.parts = parts;
    start.parts_error = error;
    return at(ms, member, std::move(start));
  }
  // Returns the reasons of the published decisions of one event.
  template <class Reason>
  std::vector<Reason> reasons_of(const event::Event& event) {
    std::vector<Reason> reasons;
    for (const Command& command : coordinator.handle(event)) {
      const auto* decision = std::get_if<event::Decision>(&command.body);
      const auto* reason = decision ? std::get_if<Reason>(&decision->reason) : nullptr;
      if (reason) reasons.push_back(*reason);
    }
    return reasons;
  }
};

TEST_F(Parts, DisjointOnesDoNotWaitForEachOther) {
  EXPECT_EQ(start_parts(0, 1, 1, "ost1,ost2"), Lines{"1 GRANT_IO 1 waited 0"});
  EXPECT_EQ(start_parts(1, 2, 1, "ost3"), Lines{"2 GRANT_IO 1 waited 0"});
  EXPECT_EQ(start_parts(2, 3, 1, "ost2,ost4"), Lines{"3 QUEUED_IO 1 position 1 behind a"});
  EXPECT_EQ(start_parts(3, 4, 1, "ost5"), Lines{"4 GRANT_IO 1 waited 0"});
  EXPECT_EQ(finish(4, 2, 1), Lines{});
  EXPECT_EQ(finish(5, 1, 1), Lines{"3 GRANT_IO 1 waited 3"});
}

TEST_F(Parts, WholeTargetMeetsAllParts) {
  EXPECT_EQ(start_parts(0, 1, 1, "ost1"), Lines{"1 GRANT_IO 1 waited 0"});
  EXPECT_EQ(start(1, 2, 1), Lines{"2 QUEUED_IO 1 position 1 behind a"});
  EXPECT_EQ(start_parts(2, 3, 1, "ost2"), Lines{"3 QUEUED_IO 1 position 2 behind "}) << "b came before, and wants all";
  EXPECT_EQ(finish(3, 1, 1), Lines{"2 GRANT_IO 1 waited 2"});
  EXPECT_EQ(finish(4, 2, 1), Lines{"3 GRANT_IO 1 waited 2"});
}

TEST_F(Parts, RequestWithManyIsNotOvertaken) {
  start_parts(0, 1, 1, "ost1");
  start_parts(0, 2, 1, "ost2");
  EXPECT_EQ(start_parts(1, 3, 1, "ost1,ost2"), Lines{"3 QUEUED_IO 1 position 1 behind a"});
  EXPECT_EQ(start_parts(2, 4, 1, "ost1"), Lines{"4 QUEUED_IO 1 position 2 behind a"});
  EXPECT_EQ(finish(3, 1, 1), Lines{}) << "d waits behind c, and c waits for b";
  EXPECT_EQ(finish(4, 2, 1), Lines{"3 GRANT_IO 1 waited 3"});
  EXPECT_EQ(finish(5, 3, 1), Lines{"4 GRANT_IO 1 waited 3"});
}

TEST_F(Parts, WithdrawnRequestLetsOthersGo) {
  start_parts(0, 1, 1, "ost1");
  start_parts(1, 2, 1, "ost1,ost2");
  EXPECT_EQ(start_parts(2, 3, 1, "ost2"), Lines{"3 QUEUED_IO 1 position 2 behind "});
  EXPECT_EQ(finish(3, 2, 1), Lines{"3 GRANT_IO 1 waited 1"});
}

TEST_F(Parts, HolderGetsFurtherFreePartsAtOnce) {
  start_parts(0, 1, 1, "ost1");
  EXPECT_EQ(start_parts(1, 2, 1, "ost1,ost2"), Lines{"2 QUEUED_IO 1 position 1 behind a"});
  EXPECT_EQ(start_parts(2, 1, 2, "ost2"), Lines{"1 GRANT_IO 2 waited 0"}) << "b waits for a in any case";
  EXPECT_EQ(start_parts(3, 3, 1, "ost3"), Lines{"3 GRANT_IO 1 waited 0"});
  EXPECT_EQ(start_parts(4, 1, 3, "ost3"), Lines{"1 QUEUED_IO 3 position 1 behind c"});
  EXPECT_EQ(start_parts(5, 4, 1, "ost2,ost3"), Lines{"4 QUEUED_IO 1 position 3 behind a"});
  EXPECT_EQ(finish(6, 3, 1), Lines{"1 GRANT_IO 3 waited 2"});
}

// Without this, b would wait for a, and a's second request behind b's.
TEST_F(Parts, HoldersRequestDoesNotWaitBehindOneThatWaitsForIt) {
  start_parts(0, 1, 1, "ost1");
  start_parts(0, 3, 1, "ost3");
  EXPECT_EQ(start_parts(1, 2, 1, "ost1,ost3"), Lines{"2 QUEUED_IO 1 position 1 behind a"});
  EXPECT_EQ(start_parts(2, 1, 2, "ost3"), Lines{"1 QUEUED_IO 2 position 2 behind c"});
  EXPECT_EQ(finish(3, 3, 1), Lines{"1 GRANT_IO 2 waited 1"});
}

TEST_F(Parts, EndedOperationFreesItsParts) {
  start_parts(0, 1, 1, "ost1");
  start_parts(0, 1, 2, "ost2");
  start_parts(1, 2, 1, "ost2");
  EXPECT_EQ(finish(2, 1, 2, false), Lines{"2 GRANT_IO 1 waited 1"});
  EXPECT_EQ(start_parts(3, 3, 1, "ost1"), Lines{"3 QUEUED_IO 1 position 1 behind a"});
}

TEST_F(Parts, IdleHoldKeepsThoseOfTheLastOperation) {
  start_parts(0, 1, 1, "ost1");
  finish(1, 1, 1, false);
  EXPECT_EQ(start_parts(2, 2, 1, "ost2"), Lines{"2 GRANT_IO 1 waited 0"});
  EXPECT_EQ(start_parts(3, 3, 1, "ost1"), Lines{"3 QUEUED_IO 1 position 1 behind a"});
  // The next operation uses other parts, which are taken: the idle hold has no purpose any more.
  EXPECT_EQ(start_parts(4, 1, 2, "ost2"), (Lines{"3 GRANT_IO 1 waited 1", "1 QUEUED_IO 2 position 1 behind b"}));
}

TEST_F(Parts, IdleHoldDoesNotDelayTheApplicationsOwnRequest) {
  start_parts(0, 1, 1, "ost1");
  start_parts(0, 2, 1, "ost2");
  EXPECT_EQ(start_parts(1, 1, 2, "ost1,ost2"), Lines{"1 QUEUED_IO 2 position 1 behind a"});
  EXPECT_EQ(finish(2, 1, 1, false), Lines{});
  EXPECT_EQ(finish(3, 2, 1), Lines{"1 GRANT_IO 2 waited 2"});
}

// Two applications use ost1 and ost2 again and again, so that one of them is always held.
TEST_F(Parts, RequestWithManyIsServedAfterTheTimeSlice) {
  std::uint64_t request = 1;
  start_parts(0, 1, request, "ost1");
  start_parts(5, 2, request, "ost2");
  EXPECT_EQ(start_parts(6, 3, 1, "ost1,ost2"), Lines{"3 QUEUED_IO 1 position 1 behind a"});
  for (std::int64_t ms = 10;; ms += 10) {
    ASSERT_LT(ms, 4000) << "the time slice is 3 s";
    Lines lines = finish(ms, 1, request, false);
    for (const std::string& line : finish(ms + 5, 2, request, false)) lines.push_back(line);
    const auto is_c = [](const std::string& line) { return line.starts_with("3 GRANT_IO 1"); };
    if (std::any_of(lines.begin(), lines.end(), is_c)) break;
    ++request;
    start_parts(ms + 1, 1, request, "ost1");
    start_parts(ms + 6, 2, request, "ost2");
  }
}

TEST_F(Parts, CircleWithinOneTargetIsBroken) {
  start_parts(0, 1, 1, "ost1");
  start_parts(0, 2, 1, "ost2");
  EXPECT_EQ(start_parts(1, 1, 2, "ost2"), Lines{"1 QUEUED_IO 2 position 1 behind b"});
  EXPECT_EQ(start_parts(2, 2, 2, "ost1"), Lines{"2 QUEUED_IO 2 position 1 behind a"});
  Lines granted;
  for (std::int64_t ms = 1000; ms <= 8000 && granted.empty(); ms += 500) {
    at(ms, 1, event::RenewIo{RequestId{1}});
    at(ms, 2, event::RenewIo{RequestId{1}});
    for (const std::string& line : tick(ms))
      if (line.find("GRANT_IO") != std::string::npos) granted.push_back(line);
  }
  EXPECT_FALSE(granted.empty());
}

// a has ost1 of the first target and wants ost3 of the second, behind d, who waits for c; c wants ost1 of the first.
TEST_F(Parts, CircleThroughAQueueIsBroken) {
  const auto on_second = [&](std::int64_t ms, std::uint64_t member, std::uint64_t request, const std::string& parts) {
    event::StartIo start{RequestId{request}, "dev:8:2", "/g", "MPI_File_write_all", 10};
    start.parts = parts;
    return at(ms, member, std::move(start));
  };
  start_parts(0, 1, 1, "ost1");
  on_second(0, 3, 1, "ost4");
  on_second(1, 4, 1, "ost3,ost4");
  EXPECT_EQ(on_second(2, 1, 2, "ost3"), Lines{"1 QUEUED_IO 2 position 2 behind "});
  EXPECT_EQ(start_parts(3, 3, 2, "ost1"), Lines{"3 QUEUED_IO 2 position 1 behind a"});
  bool granted = false;
  for (std::int64_t ms = 1000; ms <= 8000; ms += 500) {
    at(ms, 1, event::RenewIo{RequestId{1}});
    at(ms, 3, event::RenewIo{RequestId{1}});
    for (const std::string& line : tick(ms)) granted |= line.find("GRANT_IO") != std::string::npos;
  }
  EXPECT_TRUE(granted);
}

TEST_F(Parts, UnusableOnesAreTheWholeTargetAndAreToldOnce) {
  start_parts(0, 1, 1, "ost1");
  EXPECT_EQ(start_parts(1, 2, 1, "ost2,,"),
            (Lines{"0 DECISION 1 fcfs whole b 4 to 4", "2 QUEUED_IO 1 position 1 behind a"}));
  event::StartIo start{RequestId{2}, "dev:8:1", "/f", "MPI_File_write_all", 10};
  start.parts = "ost2,,";
  EXPECT_TRUE(reasons_of<event::PartsIgnored>(testing::event_of(2, 2, start)).empty());
  start.request = RequestId{3};
  start.parts = "disk9";
  start.parts_error = "nobody knows disk9";
  EXPECT_EQ(reasons_of<event::PartsIgnored>(testing::event_of(3, 2, start)),
            (std::vector<event::PartsIgnored>{{"dev:8:1", "/f", "disk9", "nobody knows disk9"}}));
}

TEST_F(Parts, WaitNamesThem) {
  start_parts(0, 1, 1, "ost1");
  event::StartIo start{RequestId{1}, "dev:8:1", "/f", "MPI_File_write_all", 10};
  start.parts = "ost2,ost1";
  const auto reasons = reasons_of<event::AccessChoice>(testing::event_of(1, 2, start));
  ASSERT_EQ(reasons.size(), 1U);
  EXPECT_EQ(reasons.front().target, "dev:8:1");
  EXPECT_EQ(reasons.front().parts, "ost1,ost2");
}

TEST_F(Parts, ExpectedWaitIsThatForTheParts) {
  start_parts(0, 1, 1, "ost1");
  const auto ahead = [&](const std::string& parts) {
    const auto commands = coordinator.handle(testing::event_of(1, 2, event::AskWait{1, "dev:8:1", 10, parts}));
    return std::get<event::ExpectedWait>(commands.front().body).ahead;
  };
  EXPECT_EQ(ahead("ost1"), 1);
  EXPECT_EQ(ahead("ost2"), 0);
  EXPECT_EQ(ahead(""), 1);
}

}  // namespace
}  // namespace hocket::coordinator
