// Counts the floating-point operations of this process with hardware counters (perf_event_open). They cover the thread
// that opens the counters, and all threads and child processes that it starts afterwards, in user space.
//
// If the kernel forbids it, or the processor has no such counter, nothing is readable. That costs a few system calls
// once, and no message is printed. Reading takes one system call for each event, about a microsecond.
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

// The identification of a processor by CPUID.
struct Cpu {
  std::string vendor;  // "GenuineIntel", "AuthenticAMD", …; "" on a processor without CPUID
  int family = 0;      // includes the extended family
  int model = 0;       // includes the extended model
  bool avx512 = false;
};

struct LinuxVersion {
  int major = 0;
  int minor = 0;
  bool operator==(const LinuxVersion&) const = default;
  bool operator<(LinuxVersion other) const { return std::pair{major, minor} < std::pair{other.major, other.minor}; }
};

// An event of perf_event_open. Each count stands for `weight` floating-point operations.
struct CountedEvent {
  std::uint32_t type = 0;
  std::uint64_t config = 0;
  double weight = 1;
};

// Returns the events that together count each operation once, and an FMA as two for each element. The result is empty
// if the processor has no such counters, or none that can be trusted. Pure.
std::vector<CountedEvent> flop_events(const Cpu& cpu, LinuxVersion kernel);

// Parses a kernel release: "6.1.0-18-amd64" → {6, 1}. Returns {0, 0} if the text is no version. Pure.
LinuxVersion linux_version(std::string_view release);

// Nanoseconds of computing time, which every Linux counts. Tests use it in place of hardware events.
extern const CountedEvent task_clock_event;

Cpu this_cpu();
LinuxVersion this_linux();

// The values of one event, in the layout in which the kernel returns them. If there are more events than counters, the
// kernel multiplexes them: an event counts only during `running_ns` of the `enabled_ns`.
struct CounterReading {
  std::uint64_t count = 0;
  std::uint64_t enabled_ns = 0;
  std::uint64_t running_ns = 0;
};

// Turns the events' values into a running total. Each interval between two readings is scaled up for the time in which
// an event had no counter. So the total never falls. Pure; not thread-safe.
class FlopTally {
 public:
  FlopTally() = default;
  explicit FlopTally(const std::vector<CountedEvent>& events);

  // Returns the total so far, in operations. `now` has one value for each event. Returns nothing if an event that was
  // enabled since the last total had no counter in all that time, or if `now` has another length. The next total
  // includes that time.
  std::optional<double> take(std::span<const CounterReading> now);

 private:
  struct WeightedEvent {
    double weight = 1;
    CounterReading before;  // the reading of the last total
  };
  std::vector<WeightedEvent> events_;
  double total_ = 0;
};

// The open counters of this process. Owns their descriptors. Thread-safe.
class FlopCounter {
 public:
  FlopCounter() = default;
  ~FlopCounter() { close(); }
  FlopCounter(const FlopCounter&) = delete;
  FlopCounter& operator=(const FlopCounter&) = delete;

  // Opens all events, or none: if one fails, no descriptor stays open. Returns true if all are open, and false if
  // `events` is empty. The descriptors are closed by exec.
  bool open(const std::vector<CountedEvent>& events);
  void close();
  // Closes the descriptors in the child of a fork(). It takes no lock, because another thread may have held the lock at
  // the fork.
  void abandon() noexcept;
  bool readable() const { return readable_; }

  // Returns the operations since `open`, or nothing if they cannot be read at all or could not be read this time.
  std::optional<double> read();

 private:
  std::mutex mutex_;
  // An open counter. The kernel's id shows that the descriptor is still the counter's.
  struct OpenCounter {
    int fd = -1;
    std::uint64_t id = 0;
    bool is_open() const;
    void close() const;
  };
  std::vector<OpenCounter> counters_;
  FlopTally tally_;
  std::atomic<bool> readable_ = false;
};

}  // namespace hocket::runtime
