// The floating-point operations of this process, by the hardware's counters (perf_event_open): those of the thread that
// opens them and of all threads and child processes that it starts from then on, in user space.
//
// Where the kernel forbids it, or there is no such counter, nothing is readable: that costs a few system calls once,
// and nobody is told. Reading costs a system call for each event, about a microsecond.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hocket::runtime {

// What CPUID says of a processor.
struct Cpu {
  std::string vendor;  // "GenuineIntel", "AuthenticAMD", …; "" where there is no CPUID
  int family = 0;      // the extended one included
  int model = 0;       // likewise
  bool avx512 = false;
};

struct LinuxVersion {
  int major = 0;
  int minor = 0;
  bool operator==(const LinuxVersion&) const = default;
  bool operator<(LinuxVersion other) const { return std::pair{major, minor} < std::pair{other.major, other.minor}; }
};

// An event of perf_event_open. `weight` operations for each count.
struct CountedEvent {
  std::uint32_t type = 0;
  std::uint64_t config = 0;
  double weight = 1;
};

// The events that together count each operation once, an FMA as two for each element; none: the processor has no such
// counters, or none that can be trusted. Pure.
std::vector<CountedEvent> flop_events(const Cpu& cpu, LinuxVersion kernel);

// "6.1.0-18-amd64" → {6, 1}; {0, 0} where it is no version. Pure.
LinuxVersion linux_version(std::string_view release);

// Nanoseconds of computing time, which every Linux counts.
extern const CountedEvent task_clock_event;

Cpu this_cpu();
LinuxVersion this_linux();

// An event's values as the kernel gives them. More events than counters take turns: an event counts for `running_ns`
// of the `enabled_ns`.
struct CounterReading {
  std::uint64_t count = 0;
  std::uint64_t enabled_ns = 0;
  std::uint64_t running_ns = 0;
};

// From the events' values to a running total. Each interval between two readings is corrected for the time in which an
// event had no counter, so that the total never falls. Pure; not thread-safe.
class FlopTally {
 public:
  FlopTally() = default;
  explicit FlopTally(const std::vector<CountedEvent>& events);

  // The total so far; one value for each event. Nothing: an event that was enabled since the last total had no counter
  // in all that time. The next total takes that time in.
  std::optional<double> take(std::span<const CounterReading> now);

 private:
  struct Event {
    double weight = 1;
    CounterReading before;
  };
  std::vector<Event> events_;
  double total_ = 0;
};

// The open counters. Thread-safe.
class FlopCounter {
 public:
  FlopCounter() = default;
  ~FlopCounter() { close(); }
  FlopCounter(const FlopCounter&) = delete;
  FlopCounter& operator=(const FlopCounter&) = delete;

  // All events, or none: then no descriptor stays open. No events: false. Descriptors are closed by exec.
  bool open(const std::vector<CountedEvent>& events);
  void close();
  // In the child of a fork(): gives its copies of the descriptors up, whatever other threads were doing.
  void abandon() noexcept;
  bool readable() const { return readable_; }

  // Operations since `open`; nothing where they cannot be read, or not this time.
  std::optional<double> read();

 private:
  std::mutex mutex_;
  std::vector<int> fds_;
  FlopTally tally_;
  std::atomic<bool> readable_ = false;
};

}  // namespace hocket::runtime
