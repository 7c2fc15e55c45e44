// Tests the answer to ASK_WAIT against what then happens, and that the question itself changes nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "coordinator/coordinator.hpp"
#include "coordinator/script_testing.hpp"

namespace hocket::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::event_of;
using testing::Lines;

class ExpectedWaitTest : public testing::AccessScript {
 protected:
  void use(const policy::Policy& policy) {
    restart(testing::usual_settings(policy));
    next_ = 1;
  }
  // Lets the member do one I/O phase alone, so that its duration is known.
  void show_phase(std::int64_t ms, std::uint64_t member, std::int64_t length_ms, std::int64_t index = 0) {
    start(ms, member, next_, "dev:8:1", 1000);
    finish(ms + length_ms, member, next_++);
    event::IoPhase phase;
    phase.index = index;
    phase.start = Time{} + milliseconds{ms};
    phase.end = Time{} + milliseconds{ms + length_ms};
    phase.io = milliseconds{length_ms};
    phase.bytes_written = 1000;
    phase.target = "dev:8:1";
    at(ms + length_ms, member, phase);
  }
  event::ExpectedWait ask(std::int64_t ms, std::uint64_t member, const std::string& target = "dev:8:1") {
    const auto& commands = coordinator.handle(event_of(ms, member, event::AskWait{++asked_, target, 0}));
    EXPECT_EQ(commands.size(), 1U);
    if (commands.size() != 1) return {};
    EXPECT_EQ(commands[0].to, MemberId{member}) << "the one that asked gets the answer";
    const auto* answer = std::get_if<event::ExpectedWait>(&commands[0].body);
    EXPECT_NE(answer, nullptr);
    if (answer == nullptr) return {};
    EXPECT_EQ(answer->number, asked_);
    EXPECT_EQ(answer->target, target);
    return *answer;
  }
  // Three applications that have shown phases of 4, 2 and 3 s.
  void three_known() {
    hello(1, "a", "a");
    hello(2, "b", "b");
    hello(3, "c", "c");
    for (const std::int64_t index : {0, 1}) {
      show_phase(index * 20'000, 1, 4'000, index);
      show_phase(index * 20'000 + 5'000, 2, 2'000, index);
      show_phase(index * 20'000 + 10'000, 3, 3'000, index);
    }
  }

 private:
  std::uint64_t next_ = 1;
  std::int64_t asked_ = 0;
};

TEST_F(ExpectedWaitTest, AFreeTargetIsGrantedAtOnce) {
  hello(1, "a", "a");
  const auto unknown = ask(0, 1);
  EXPECT_EQ(unknown.wait, Duration{});
  EXPECT_EQ(unknown.uncertainty, Duration{});
  EXPECT_EQ(unknown.ahead, 0);
}

// Only the rate of the target is known, from another application of 4 processes: 4000 bytes/s. The phase goes on after
// the bytes of one access.
TEST_F(ExpectedWaitTest, AnUnknownPhaseHasAtLeastTheAccessThatIsUnderWay) {
  hello(1, "a", "a");
  hello(2, "b", "b");
  show_phase(0, 1, 1'000);
  for (std::uint64_t access = 0; access < 4; ++access) {
    const auto from_ms = static_cast<std::int64_t>(10'000 + access * 1'000);
    start(from_ms, 2, 50 + access, "dev:8:1", 4000);
    EXPECT_NEAR(to_s(ask(from_ms + 300, 1).wait), 0.7, 0.1) << "access " << access;
    EXPECT_NEAR(to_s(ask(from_ms + 800, 1).wait), 0.2, 0.1) << "access " << access;
    at(from_ms + 1'000, 2, event::FinishIo{RequestId{50 + access}, seconds{1}, 1000, false});
  }
}

TEST_F(ExpectedWaitTest, TheHolderAndTheQueueAreServedBefore) {
  three_known();
  start(40'000, 1, 101);
  start(40'500, 2, 102);
  const auto answer = ask(41'000, 3);
  EXPECT_EQ(answer.ahead, 2);
  EXPECT_NEAR(to_s(answer.wait), 3 + 2, 0.1) << "3 s are left of the holder's phase";
  EXPECT_GE(answer.uncertainty, Duration{}) << "both have shown their phases";
  EXPECT_LT(to_s(answer.uncertainty), 0.5) << "they were alike";
  EXPECT_NEAR(to_s(ask(41'000, 9).wait), 5, 0.1) << "a tool learns the same";
}

TEST_F(ExpectedWaitTest, TheAnswerIsTheWaitThatFollows) {
  three_known();
  start(40'000, 1, 101);
  start(40'500, 2, 102);
  const auto answer = ask(41'000, 3);
  EXPECT_EQ(start(41'000, 3, 103), Lines{"3 QUEUED_IO 103 position 2 behind a"});
  EXPECT_EQ(ask(41'000, 3).wait, answer.wait) << "its own request stands in the queue already";
  EXPECT_EQ(finish(44'000, 1, 101), Lines{"2 GRANT_IO 102 waited 3500"});
  EXPECT_EQ(finish(46'000, 2, 102), Lines{"3 GRANT_IO 103 waited 5000"});
  EXPECT_NEAR(to_s(answer.wait), 5, 0.1);
  EXPECT_EQ(ask(46'000, 3).wait, Duration{}) << "it has the target";
}

// The holder writes four files of 1000 bytes, one in a second, and was never asked to stop.
TEST_F(ExpectedWaitTest, AHolderThatNeverPausedStopsAsItHasAnnounced) {
  use(policy::interrupt);
  three_known();
  event::StartIo start{RequestId{101}, "dev:8:1", "/f", "hocket_io_inform", 0};
  start.phase_bytes = 4'000;
  start.files = 4;
  at(40'000, 1, start);
  const auto answer = ask(40'250, 2);
  const double file_s = 4.0 / 4;
  EXPECT_NEAR(to_s(answer.wait), file_s - 0.25, 0.05);
  EXPECT_GT(answer.uncertainty, Duration{});
}

TEST_F(ExpectedWaitTest, AnUnknownApplicationAheadMakesTheWaitUncertain) {
  hello(1, "a", "a");
  hello(2, "b", "b");
  start(1'000, 1, 1, "dev:8:1", 0);
  const auto answer = ask(1'500, 2);
  EXPECT_EQ(answer.ahead, 1);
  EXPECT_EQ(answer.uncertainty, Duration{-1});
  EXPECT_GE(to_s(ask(4'000, 2).wait), 2.9) << "it has held the target for three seconds";
}

TEST_F(ExpectedWaitTest, OtherTargetsDoNotCount) {
  three_known();
  start(40'000, 1, 101);
  EXPECT_EQ(ask(41'000, 3, "dev:9:9").ahead, 0);
  EXPECT_EQ(ask(41'000, 3, "").ahead, 0);
}

TEST_F(ExpectedWaitTest, ThePolicyDecidesWhoIsAhead) {
  use(policy::interfere);
  three_known();
  start(40'000, 1, 101);
  EXPECT_EQ(ask(41'000, 3).wait, Duration{}) << "no application waits";
  use(policy::interrupt);
  three_known();
  start(40'000, 1, 101);
  EXPECT_EQ(ask(41'000, 3).ahead, 0) << "it would preempt the holder";
}

TEST_F(ExpectedWaitTest, UnderEachPolicyARequestIsGrantedAtOnceIfNoWaitIsExpected) {
  for (const policy::Policy* one : policy::policies()) {
    for (const std::int64_t ms : {40'500, 42'000, 43'500}) {
      use(*one);
      three_known();
      start(40'000, 1, 101);
      const auto answer = ask(ms, 3);
      const Lines lines = start(ms, 3, 103);
      const auto is_one_of = [&](const std::string& line) {
        return std::find(lines.begin(), lines.end(), line) != lines.end();
      };
      const bool at_once = is_one_of("3 GRANT_IO 103 waited 0") || is_one_of("1 PAUSE_IO 101 because of c");
      EXPECT_EQ(answer.ahead == 0, at_once) << one->name << " at " << ms << " ms: " << ::testing::PrintToString(lines);
    }
  }
}

TEST_F(ExpectedWaitTest, AnApplicationWithoutHistoryMayAskUnderEachPolicy) {
  for (const policy::Policy* one : policy::policies()) {
    use(*one);
    three_known();
    hello(4, "d", "d");
    start(40'000, 1, 101);
    start(40'500, 2, 102);
    const auto answer = ask(41'000, 4);
    EXPECT_GE(answer.wait, Duration{}) << one->name;
    EXPECT_LE(answer.ahead, 2) << one->name;
  }
}

// Feeds two coordinators the same random requests. One of them is asked between all of them, and must command the same.
TEST(ExpectedWaitPropertyTest, AskingChangesNoDecision) {
  for (const policy::Policy* one : policy::policies()) {
    for (unsigned seed = 0; seed < 20; ++seed) {
      std::mt19937 random{seed};
      Coordinator asked{testing::usual_settings(*one)};
      Coordinator quiet{testing::usual_settings(*one)};
      const auto both = [&](std::int64_t ms, std::uint64_t member, const event::Body& body) {
        const auto event = event_of(ms, member, body);
        EXPECT_EQ(testing::describe_all(asked.handle(event)), testing::describe_all(quiet.handle(event)))
            << one->name << ", seed " << seed << ", at " << ms << " ms";
      };
      constexpr std::uint64_t members = 4;
      for (std::uint64_t member = 1; member <= members; ++member) {
        const std::string name{static_cast<char>('a' + member)};
        both(0, member, event::Hello{name, name, "/bin/" + name, "mpich", "0.1", 99, 4});
      }
      std::vector<std::uint64_t> latest(members + 1, 0);
      std::vector<bool> open(members + 1, false);
      std::vector<std::int64_t> phases(members + 1, 0);
      for (std::int64_t ms = 100; ms < 20'000; ms += 1 + static_cast<std::int64_t>(random() % 300)) {
        const std::uint64_t member = 1 + random() % members;
        if (open[member]) {
          both(ms, member, event::FinishIo{RequestId{latest[member]}, milliseconds{50}, 1000, true});
          event::IoPhase phase;
          phase.index = phases[member]++;
          phase.start = Time{} + milliseconds{ms - 50};
          phase.end = Time{} + milliseconds{ms};
          phase.io = milliseconds{50};
          phase.bytes_written = 1000;
          phase.target = "dev:8:1";
          both(ms, member, phase);
        } else {
          both(ms, member, event::StartIo{RequestId{++latest[member]}, "dev:8:1", "/f", "MPI_File_write_all", 4000});
        }
        open[member] = !open[member];
        for (std::uint64_t asker = 1; asker <= members + 1; ++asker) {  // the last one is a tool
          const auto& answer = asked.handle(event_of(ms, asker, event::AskWait{1, "dev:8:1", 4000}));
          ASSERT_EQ(answer.size(), 1U);
          const auto& said = std::get<event::ExpectedWait>(answer[0].body);
          EXPECT_GE(said.wait, Duration{});
          EXPECT_LE(said.ahead, static_cast<std::int64_t>(members));
        }
        if (quiet.deadline() && to_ns(*quiet.deadline()) <= ms * 1'000'000) both(ms, 0, event::Tick{});
      }
    }
  }
}

}  // namespace
}  // namespace hocket::coordinator
