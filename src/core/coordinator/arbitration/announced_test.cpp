// Tests what the coordinator learns from announcements: whether they were right, and what was wrong.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "coordinator/coordinator.hpp"
#include "coordinator/script_testing.hpp"

namespace hocket::coordinator {
namespace {

using std::chrono::milliseconds;
using testing::event_of;
using testing::Lines;

class AnnouncedTest : public testing::Script {
 protected:
  // Returns nothing for a command that is no DECISION.
  std::optional<std::string> line_of(const Command& command) override {
    const auto* decision = std::get_if<event::Decision>(&command.body);
    if (decision == nullptr) return std::nullopt;
    const auto* io = std::get_if<event::AnnouncedIo>(&decision->reason);
    const auto* wrong = std::get_if<event::InformationIgnored>(&decision->reason);
    std::string line = decision->action;
    if (io != nullptr) line += " " + std::to_string(io->announced) + " " + std::to_string(io->accessed);
    if (wrong != nullptr) line += " " + wrong->error;
    return line;
  }
  Lines inform(std::int64_t ms, std::int64_t phase_bytes) {
    event::StartIo start{RequestId{++request_}, "dev:8:1", "/f", "hocket_io_inform", 0};
    start.phase_bytes = phase_bytes;
    start.files = 4;
    return at(ms, 1, start);
  }
  Lines release(std::int64_t ms) { return finish(ms, 1, request_, false); }
  Lines complete(std::int64_t ms) {
    event::InformIo over;
    over.phase_over = true;
    return at(ms, 1, over);
  }
  // The IO_PHASE of one of the four processes.
  Lines reports(std::int64_t ms, std::int64_t bytes, std::int64_t left, std::uint64_t member = 1) {
    event::IoPhase phase;
    phase.index = index_++;
    phase.start = Time{} + milliseconds{ms - 20};
    phase.end = Time{} + milliseconds{ms - 10};
    phase.io = milliseconds{10};
    phase.bytes_written = bytes / 4;
    phase.target = "dev:8:1";
    phase.announced_left = left;
    return at(ms, member, phase);
  }
  Lines wrong(std::int64_t ms, const std::string& error) {
    event::InformIo inform;
    inform.error = error;
    return at(ms, 1, inform);
  }
  const model::Application& application() { return coordinator.cluster().applications().begin()->second; }

 private:
  std::uint64_t request_ = 0;
  std::int64_t index_ = 0;
};

// The paper's loop over files, in which each step pauses for longer than the gap before its access: the phase of a file
// is reported while the step of the next one has its grant.
TEST_F(AnnouncedTest, ALoopOverFilesIsRightWhereverItPauses) {
  hello(1);
  for (int phase = 0; phase < 3; ++phase) {
    const std::int64_t from = 10'000 * phase;
    for (int file = 0; file < 4; ++file) {
      EXPECT_EQ(inform(from + 100 + 300 * file, 80'000 - 20'000 * file), Lines{});
      if (file > 0) {
        EXPECT_EQ(reports(from + 300 + 300 * file, 20'000, 80'000 - 20'000 * file), Lines{});
      }
      EXPECT_EQ(release(from + 350 + 300 * file), Lines{});
    }
    EXPECT_EQ(reports(from + 2'000, 20'000, 0), Lines{}) << phase;
    EXPECT_EQ(complete(from + 2'000), Lines{});
    EXPECT_EQ(application().demand.since, Time{}) << "the phase is over";
  }
}

// The last step waits after its access, so that no report is left for the end of the phase.
TEST_F(AnnouncedTest, CompleteEndsAPhaseThatWasReportedBefore) {
  hello(1);
  inform(100, 80'000);
  reports(500, 40'000, 40'000);
  reports(900, 40'000, 0);
  release(1'000);
  EXPECT_EQ(complete(1'000), Lines{});
  EXPECT_EQ(application().demand.since, Time{});
  inform(5'000, 80'000);
  reports(5'500, 20'000, 60'000);
  release(6'000);
  EXPECT_EQ(complete(6'000), Lines{"doubt 80000 20000"}) << "fewer than announced";
}

TEST_F(AnnouncedTest, OtherBytesThanAnnouncedAreNoticedInParts) {
  hello(1);
  inform(100, 80'000);
  reports(500, 60'000, 20'000);
  reports(700, 100'000, 0);
  EXPECT_EQ(release(800), Lines{});
  EXPECT_EQ(reports(1'000, 40'000, 0), Lines{"doubt 80000 200000"}) << "more";
}

// Rank 0 reports for all processes, while another one has a request of its own.
TEST_F(AnnouncedTest, OnlyReportsOfThePresentPhaseAndForAllProcessesCount) {
  hello(1);
  hello(2, "job", "app", 0);
  start(1'000, 2, 1);
  EXPECT_EQ(reports(1'005, 20'000, 0), Lines{});
  EXPECT_EQ(application().demand.reported_bytes, 0) << "it was over before";
  EXPECT_EQ(reports(1'100, 20'000, 0), Lines{});
  EXPECT_EQ(application().demand.reported_bytes, 20'000);
  EXPECT_EQ(reports(1'200, 20'000, 0, 2), Lines{});
  EXPECT_EQ(application().demand.reported_bytes, 20'000) << "it is counted already";
}

TEST_F(AnnouncedTest, WrongInformationIsPublishedOnceAndWithinBounds) {
  hello(1);
  EXPECT_EQ(wrong(1, "f was called twice"), Lines{"wrong f was called twice"}) << "no I/O phase is needed";
  EXPECT_EQ(wrong(2, "f was called twice"), Lines{});
  EXPECT_EQ(wrong(3, std::string(1'000, 'x')), Lines{"wrong " + std::string(256, 'x')});
  for (int i = 0; i < 100; ++i) wrong(4 + i, std::to_string(i));
  EXPECT_EQ(wrong(200, "one more"), Lines{});
  inform(300, 80'000);
  EXPECT_EQ(wrong(301, "again"), Lines{});
  EXPECT_EQ(application().demand.bytes, 80'000) << "it announces nothing";
  at(400, 1, event::Bye{});
  hello(1, "job-2");
  EXPECT_EQ(wrong(500, "f was called twice"), Lines{"wrong f was called twice"}) << "another application";
}

}  // namespace
}  // namespace hocket::coordinator
