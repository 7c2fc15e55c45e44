#include "session/flop_counter.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <random>
#include <thread>

namespace hocket::runtime {
namespace {

constexpr LinuxVersion recent{6, 1};

std::vector<std::pair<std::uint64_t, double>> raw_events(const Cpu& cpu, LinuxVersion kernel = recent) {
  std::vector<std::pair<std::uint64_t, double>> found;
  for (const CountedEvent& event : flop_events(cpu, kernel)) {
    EXPECT_EQ(event.type, PERF_TYPE_RAW);
    found.emplace_back(event.config, event.weight);
  }
  return found;
}

using Events = std::vector<std::pair<std::uint64_t, double>>;

TEST(FlopEvents, OfIntelCountInstructionsByTheirElements) {
  const Events avx512{{0x03c7, 1}, {0x04c7, 2}, {0x18c7, 4}, {0x60c7, 8}, {0x80c7, 16}};
  const Events avx2{{0x03c7, 1}, {0x04c7, 2}, {0x18c7, 4}, {0x20c7, 8}};
  EXPECT_EQ(raw_events({"GenuineIntel", 6, 0x55, true}), avx512);      // Skylake server
  EXPECT_EQ(raw_events({"GenuineIntel", 6, 0x8f, true}), avx512);      // Sapphire Rapids
  EXPECT_EQ(raw_events({"GenuineIntel", 6, 0x4f, false}), avx2);       // Broadwell server
  EXPECT_EQ(raw_events({"GenuineIntel", 6, 0x9e, false}), avx2);       // Coffee Lake
  EXPECT_EQ(raw_events({"GenuineIntel", 6, 0x55, true}, {}), avx512);  // any version of Linux
}

// Each bit of the umask is counted by one event, with the number of elements of its instructions.
TEST(FlopEvents, OfIntelCountEachKindOnce) {
  const double elements[] = {1, 1, 2, 4, 4, 8, 8, 16};
  for (const bool avx512 : {false, true}) {
    const auto events = raw_events({"GenuineIntel", 6, 0x6a, avx512});
    for (unsigned bit = 0; bit < (avx512 ? 8 : 6); ++bit) {
      const auto counts = [&](const auto& event) { return (event.first >> (8 + bit) & 1) != 0; };
      ASSERT_EQ(std::count_if(events.begin(), events.end(), counts), 1) << bit;
      EXPECT_EQ(std::find_if(events.begin(), events.end(), counts)->second, elements[bit]) << bit;
    }
  }
}

TEST(FlopEvents, OfZenCountOperations) {
  EXPECT_EQ(raw_events({"AuthenticAMD", 0x17, 0x01, false}), (Events{{0xff03, 1}}));  // Zen
  EXPECT_EQ(raw_events({"AuthenticAMD", 0x17, 0x18, false}), (Events{{0xff03, 1}}));  // Zen+
  for (const Cpu& cpu : {Cpu{"AuthenticAMD", 0x17, 0x31, false}, Cpu{"AuthenticAMD", 0x17, 0x71, false},
                         Cpu{"AuthenticAMD", 0x19, 0x01, false}, Cpu{"AuthenticAMD", 0x19, 0x11, true},
                         Cpu{"AuthenticAMD", 0x1a, 0x02, true}})
    EXPECT_EQ(raw_events(cpu), (Events{{0x0f03, 1}})) << cpu.family << ' ' << cpu.model;
}

TEST(FlopEvents, ThereAreNoneThatCannotBeTrusted) {
  EXPECT_TRUE(flop_events({}, recent).empty());
  EXPECT_TRUE(flop_events({"GenuineIntel", 6, 0x3f, false}, recent).empty());  // Haswell
  EXPECT_TRUE(
      flop_events({"GenuineIntel", 6, 0x2d, false}, recent).empty());  // Sandy Bridge: counts speculated instructions
  EXPECT_TRUE(flop_events({"GenuineIntel", 6, 0x97, false}, recent).empty());  // Alder Lake: cores differ
  EXPECT_TRUE(flop_events({"GenuineIntel", 6, 0xaf, false}, recent).empty());  // Sierra Forest
  EXPECT_TRUE(flop_events({"GenuineIntel", 15, 0x55, false}, recent).empty());
  EXPECT_TRUE(flop_events({"AuthenticAMD", 0x15, 0x02, false}, recent).empty());  // Bulldozer
  EXPECT_TRUE(flop_events({"AuthenticAMD", 0x17, 0x31, false}, {5, 5}).empty());  // Linux < 5.6: at most 15 a cycle
  EXPECT_FALSE(flop_events({"AuthenticAMD", 0x17, 0x31, false}, {5, 6}).empty());
  EXPECT_TRUE(flop_events({"HygonGenuine", 0x18, 0x01, false}, recent).empty());
}

TEST(FlopEvents, OfThisMachineAreAskedForWithoutHarm) {
  FlopCounter counter;
  const bool opened = counter.open(flop_events(this_cpu(), this_linux()));
  EXPECT_EQ(opened, counter.readable());
#if defined(__x86_64__)
  EXPECT_FALSE(this_cpu().vendor.empty());
  EXPECT_GT(this_cpu().family, 0);
#endif
  EXPECT_GT(this_linux().major, 2);
}

TEST(LinuxVersion, IsReadFromTheRelease) {
  EXPECT_EQ(linux_version("6.1.0-18-amd64"), (LinuxVersion{6, 1}));
  EXPECT_EQ(linux_version("5.6"), (LinuxVersion{5, 6}));
  EXPECT_EQ(linux_version("5.14-rc1"), (LinuxVersion{5, 14}));
  for (const char* no : {"", "linux", "5", "5.", ".6", "5-6"}) EXPECT_EQ(linux_version(no), LinuxVersion{}) << no;
  EXPECT_LT((LinuxVersion{4, 18}), (LinuxVersion{5, 6}));
}

// ---- FlopTally ---------------------------------------------------------------------------------------------------

const std::vector<CountedEvent> scalar_and_packed{{PERF_TYPE_RAW, 1, 1}, {PERF_TYPE_RAW, 2, 8}};

TEST(FlopTally, WeighsWhatWasCounted) {
  FlopTally tally(scalar_and_packed);
  EXPECT_EQ(tally.take(std::vector<CounterReading>{{100, 50, 50}, {10, 50, 50}}), 180);
  EXPECT_EQ(tally.take(std::vector<CounterReading>{{101, 60, 60}, {10, 60, 60}}), 181);
  EXPECT_EQ(tally.take(std::vector<CounterReading>{{101, 60, 60}, {10, 60, 60}}), 181);  // no time has passed
}

TEST(FlopTally, CorrectsForTheTimeWithoutACounter) {
  FlopTally tally({{PERF_TYPE_RAW, 1, 2}});
  EXPECT_EQ(tally.take(std::vector<CounterReading>{{100, 1000, 1000}}), 200);
  EXPECT_EQ(tally.take(std::vector<CounterReading>{{150, 3000, 1500}}), 200 + 2 * 50 * 4);  // scales this interval only
}

TEST(FlopTally, SaysNothingOfATimeInWhichAnEventWasNeverCounted) {
  FlopTally tally(scalar_and_packed);
  EXPECT_EQ(tally.take(std::vector<CounterReading>{{100, 50, 50}, {10, 50, 50}}), 180);
  EXPECT_EQ(tally.take(std::vector<CounterReading>{{200, 100, 100}, {10, 100, 50}}), std::nullopt);
  // The next total includes that time: the second event counted for half of it.
  EXPECT_EQ(tally.take(std::vector<CounterReading>{{300, 150, 150}, {15, 150, 100}}), 180 + 200 + 8 * 5 * 2);
}

TEST(FlopTally, NeverFalls) {
  std::mt19937_64 random(1);
  FlopTally tally(scalar_and_packed);
  double before = 0;
  for (int i = 0; i < 1000; ++i) {
    std::vector<CounterReading> any(2);
    for (CounterReading& one : any) one = {random() % 1000, random() % 1000, random() % 1000};
    if (const auto total = tally.take(any)) {
      ASSERT_GE(*total, before);
      before = *total;
    }
  }
  EXPECT_EQ(tally.take({}), std::nullopt);  // fewer values than events
}

// ---- FlopCounter, with events that every Linux has ---------------------------------------------------------------

const CountedEvent nothing_counts{PERF_TYPE_MAX + 1000, 0, 1};

// Returns true if this system lets a process count its own events. Containers and kernel.perf_event_paranoid may not.
bool allowed() {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = task_clock_event.type;
  attr.config = task_clock_event.config;
  attr.exclude_kernel = 1;
  const auto fd = static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
  if (fd < 0) return errno != EACCES && errno != EPERM && errno != ENOSYS;
  ::close(fd);
  return true;
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

double wall_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

void compute(double ns) {
  timespec start{}, now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
  do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  while (1e9 * static_cast<double>(now.tv_sec - start.tv_sec) + static_cast<double>(now.tv_nsec - start.tv_nsec) < ns);
}

TEST(FlopCounter, CountsThisProcessAndItsThreads) {
  if (!allowed()) GTEST_SKIP() << "perf_event_open is forbidden here";
  FlopCounter counter;
  const double start = wall_ns();
  ASSERT_TRUE(counter.open({task_clock_event, {task_clock_event.type, task_clock_event.config, 2}}));
  ASSERT_TRUE(counter.readable());
  const double here = 10e6;
  compute(here);
  const auto alone = counter.read();
  ASSERT_TRUE(alone);
  // In virtual machines, the counter's clock and the thread's clock differ by up to a sixth.
  EXPECT_GE(*alone, 3 * here * 0.8);
  std::thread(compute, here).join();
  const auto both = counter.read();
  ASSERT_TRUE(both);
  EXPECT_GE(*both, *alone + 3 * here * 0.8);
  // The threads run one after the other, so no time counts twice.
  EXPECT_LE(*both, 3 * (wall_ns() - start) * 1.5);
}

TEST(FlopCounter, LeavesNoDescriptorBehind) {
  const std::size_t before = open_descriptors();
  FlopCounter counter;
  EXPECT_FALSE(counter.open({}));
  EXPECT_FALSE(counter.open({nothing_counts}));
  EXPECT_FALSE(counter.open({task_clock_event, nothing_counts})) << "all or none";
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_FALSE(counter.readable());
  EXPECT_EQ(counter.read(), std::nullopt);

  if (!allowed()) GTEST_SKIP() << "perf_event_open is forbidden here";
  ASSERT_TRUE(counter.open({task_clock_event}));
  ASSERT_TRUE(counter.open({task_clock_event, task_clock_event}));  // replaces the events above
  EXPECT_EQ(open_descriptors(), before + 2);
  counter.close();
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(counter.read(), std::nullopt);
}

TEST(FlopCounter, IsClosedByExec) {
  if (!allowed()) GTEST_SKIP() << "perf_event_open is forbidden here";
  // Other descriptors may stay open at an exec, so those that stay are counted.
  const auto stay_open = [] {
    int count = 0;
    for (int fd = 0; fd < 8192; ++fd) count += fcntl(fd, F_GETFD) == 0 ? 1 : 0;
    return count;
  };
  const int before = stay_open();
  FlopCounter counter;
  ASSERT_TRUE(counter.open({task_clock_event}));
  EXPECT_EQ(stay_open(), before);
}

}  // namespace
}  // namespace hocket::runtime
