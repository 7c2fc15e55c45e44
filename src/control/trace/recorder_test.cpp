#include "trace/recorder.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/clock.hpp"
#include "event/random_event.hpp"
#include "trace/packed.hpp"
#include "trace/reader.hpp"

namespace hocket::trace {
namespace {

using event::Event;
using testing::HasSubstr;

TEST(PackedEvents, GiveBackEveryField) {
  event::RandomEvents random{5};
  std::string bytes;
  std::vector<Record> packed;
  for (int i = 0; i < 10'000; ++i) {
    Record one{random.below(2) == 0 ? Direction::in : Direction::out, random.next()};
    const Event& e = one.event;
    pack({one.direction, e.time, e.origin.node, e.origin.application, e.origin.member, e.body}, bytes);
    packed.push_back(std::move(one));
  }
  std::string_view rest = bytes;
  Record read;
  for (const Record& expected : packed) {
    ASSERT_FALSE(rest.empty());
    unpack(rest, read);
    ASSERT_EQ(read.direction, expected.direction);
    // Lines of a trace are compared, because a NaN is equal to nothing.
    std::string line;
    std::string expected_line;
    append_line(read.direction, read.event, line);
    append_line(expected.direction, expected.event, expected_line);
    ASSERT_EQ(line, expected_line);
  }
  EXPECT_TRUE(rest.empty());
}

class RecorderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/hocket-recorder-XXXXXX";
    directory_ = mkdtemp(name.data());
    path_ = directory_ + "/t.jsonl";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  static std::unique_ptr<Recorder> create(const std::string& path, TraceSizes sizes = {},
                                          std::size_t queued_bytes = Recorder::most_queued_bytes) {
    TraceHeader header;
    header.version = "0.1.0";
    auto recorder = Recorder::create(path, header, sizes, queued_bytes);
    EXPECT_TRUE(recorder.ok());
    return std::move(recorder).value();
  }
  static void add(Recorder& recorder, std::uint64_t request) {
    const Time time = time_from_ns(static_cast<std::int64_t>(request));
    recorder.add_event({time, {"node1", "a", MemberId{2}}, event::RenewIo{RequestId{request}}});
    event::GrantIo grant;
    grant.request = RequestId{request};
    recorder.add_command(time, "a", MemberId{2}, grant);
  }
  static bool becomes_readable(int fd) {
    pollfd one{fd, POLLIN, 0};
    return poll(&one, 1, 10'000) == 1;
  }
  std::vector<Record> read() const {
    std::vector<Record> records;
    auto reader = Reader::open(path_);
    EXPECT_TRUE(reader.ok());
    for (auto record = reader.value().next(); record && record.value(); record = reader.value().next())
      records.push_back(std::move(*record.value()));
    return records;
  }

  std::string directory_;
  std::string path_;
};

TEST_F(RecorderTest, WritesAllInTheirOrderBeforeItEnds) {
  constexpr std::uint64_t count = 20'000;
  {
    const auto recorder = create(path_);
    for (std::uint64_t i = 1; i <= count; ++i) {
      add(*recorder, i);
      if (recorder->due() && *recorder->due() <= time_from_ns(static_cast<std::int64_t>(i))) recorder->flush();
    }
    EXPECT_EQ(recorder->lost(), 0);
  }
  const std::vector<Record> records = read();
  ASSERT_EQ(records.size(), 2 * count);
  for (std::uint64_t i = 0; i < count; ++i) {
    EXPECT_EQ(std::get<event::RenewIo>(records[2 * i].event.body).request, RequestId{i + 1});
    EXPECT_EQ(std::get<event::GrantIo>(records[2 * i + 1].event.body).request, RequestId{i + 1});
    EXPECT_EQ(records[2 * i + 1].event.origin.application, "a");
  }
}

TEST_F(RecorderTest, TellsWhenAFlushIsInTheFile) {
  const auto recorder = create(path_);
  add(*recorder, 1);
  const std::uint64_t flushed = recorder->flush();
  recorder->notify_when_written(flushed);
  ASSERT_TRUE(becomes_readable(recorder->descriptor()));
  EXPECT_TRUE(recorder->is_written(flushed));
  EXPECT_EQ(read().size(), 2U);
  recorder->clear();
  EXPECT_EQ(recorder->flush(), flushed) << "nothing is pending";
  add(*recorder, 2);
  EXPECT_FALSE(recorder->is_written(flushed + 1));
}

TEST_F(RecorderTest, IsDueWithinItsDelayOrWhenABatchIsFull) {
  const auto recorder = create(path_);
  EXPECT_FALSE(recorder->due().has_value());
  add(*recorder, 100);
  EXPECT_EQ(recorder->due(), time_from_ns(100) + Writer::longest_delay);
  std::uint64_t i = 101;
  for (std::size_t bytes = 0; bytes < 2 * Recorder::batch_bytes; bytes += 50) add(*recorder, i++);
  EXPECT_LT(recorder->due(), time_from_ns(100) + Writer::longest_delay);
  recorder->flush();
  EXPECT_FALSE(recorder->due().has_value());
}

// Makes writes to the file wait, as on a disk that hangs: the writer opens it so that they would fail.
void make_blocking(const std::string& path) {
  for (const auto& open : std::filesystem::directory_iterator{"/proc/self/fd"}) {
    std::error_code gone;
    if (std::filesystem::read_symlink(open.path(), gone) != path) continue;
    const int fd = std::stoi(open.path().filename());
    ASSERT_EQ(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK), 0);
  }
}

// Reads from the pipe until the record of that request has come.
std::string read_until(int pipe, std::uint64_t request) {
  const std::string last = "\"out\": \"GRANT_IO\", \"time_ns\": " + std::to_string(request) + ",";
  std::string text;
  std::vector<char> bytes(1 << 16);
  while (text.find(last) == std::string::npos || !text.ends_with('\n')) {
    const ssize_t n = ::read(pipe, bytes.data(), bytes.size());
    if (n <= 0) break;
    text.append(bytes.data(), static_cast<std::size_t>(n));
  }
  return text;
}

// The trace is a pipe that nobody reads for a while.
TEST_F(RecorderTest, RecordsAGapInsteadOfWaiting) {
  constexpr std::uint64_t count = 20'000;
  constexpr std::uint64_t last = 30'000;
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const Fd pipe{open(path_.c_str(), O_RDWR | O_CLOEXEC)};
  ASSERT_TRUE(pipe);
  auto recorder = create(path_, {}, 100'000);
  make_blocking(path_);
  const Time begin = node_now();
  for (std::uint64_t i = 1; i <= count; ++i) {
    add(*recorder, i);
    recorder->flush();
  }
  EXPECT_LT(node_now() - begin, std::chrono::seconds{5}) << "the deciding thread waited for the disk";
  const std::int64_t lost = recorder->lost();
  EXPECT_GT(lost, 0);
  EXPECT_EQ(lost % 2, 0) << "an event is left out with its command";

  std::string text;
  std::thread reader([&] { text = read_until(pipe.get(), last); });
  recorder->notify_when_written(recorder->flush());
  EXPECT_TRUE(becomes_readable(recorder->descriptor()));
  add(*recorder, last);
  recorder.reset();
  reader.join();
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);  // the header
  std::int64_t records = 0;
  std::int64_t missing = 0;
  while (std::getline(lines, line)) {
    const auto record = parse_line(line);
    ASSERT_TRUE(record.ok()) << line;
    const auto* gap = std::get_if<event::EventsLost>(&record.value().event.body);
    if (gap != nullptr) missing += gap->events;
    if (gap == nullptr) ++records;
  }
  EXPECT_EQ(missing, lost);
  EXPECT_EQ(records + missing, 2 * static_cast<std::int64_t>(count + 1));
}

TEST_F(RecorderTest, TellsThatTheDiskIsFull) {
  const auto recorder = create("/dev/full");
  add(*recorder, 1);
  recorder->flush();
  ASSERT_TRUE(becomes_readable(recorder->descriptor()));
  EXPECT_TRUE(recorder->is_broken());
  EXPECT_THAT(recorder->error(), HasSubstr("/dev/full can no longer be written: No space left on device"));
  add(*recorder, 2);
  EXPECT_FALSE(recorder->due().has_value());
  EXPECT_FALSE(Recorder::create(directory_ + "/no/t.jsonl", {}).ok());
}

TEST_F(RecorderTest, NamesThePartThatIsBeingWritten) {
  const auto recorder = create(path_, {.part_bytes = 300});
  EXPECT_EQ(recorder->path(), path_);
  for (std::uint64_t i = 1; i <= 10; ++i) add(*recorder, i);
  recorder->notify_when_written(recorder->flush());
  ASSERT_TRUE(becomes_readable(recorder->descriptor()));
  EXPECT_THAT(recorder->path(), testing::EndsWith("/t.1.jsonl"));
}

}  // namespace
}  // namespace hocket::trace
