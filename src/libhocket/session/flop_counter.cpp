#include "session/flop_counter.hpp"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "base/kept_descriptor.hpp"

namespace hocket::runtime {
namespace {

// Models of Intel's family 6 from Broadwell on, on which FP_ARITH_INST_RETIRED counts instructions by their width and
// precision. Haswell has no such counter, and older cores count speculated instructions. Atom and hybrid processors
// (whose cores differ) have other events.
constexpr std::array intel_models = {
    0x3d, 0x47, 0x4f, 0x56,  // Broadwell
    0x4e, 0x5e, 0x8e, 0x9e,  // Skylake, Kaby Lake, Coffee Lake
    0xa5, 0xa6, 0x55,        // Comet Lake; Skylake, Cascade Lake and Cooper Lake servers
    0x7d, 0x7e, 0x6a, 0x6c,  // Ice Lake
    0x8c, 0x8d, 0xa7,        // Tiger Lake, Rocket Lake
    0x8f, 0xcf, 0xad, 0xae,  // Sapphire, Emerald and Granite Rapids
};

// Encodes a raw event as perf_event_attr.config expects it.
constexpr std::uint64_t raw(unsigned event, unsigned umask) { return std::uint64_t{umask} << 8U | event; }

// Returns Intel's events. The bits of the umask are scalar double and single, then double and single of 128, 256 and
// 512 bits. Instructions with equally many elements share an event. The hardware counts an FMA twice.
std::vector<CountedEvent> intel_events(const Cpu& cpu) {
  constexpr unsigned fp_arith = 0xc7;
  if (cpu.family != 6 || std::find(intel_models.begin(), intel_models.end(), cpu.model) == intel_models.end())
    return {};
  const auto retired = [](unsigned umask, double elements) {
    return CountedEvent{PERF_TYPE_RAW, raw(fp_arith, umask), elements};
  };
  if (!cpu.avx512) return {retired(0x03, 1), retired(0x04, 2), retired(0x18, 4), retired(0x20, 8)};
  return {retired(0x03, 1), retired(0x04, 2), retired(0x18, 4), retired(0x60, 8), retired(0x80, 16)};
}

// Returns AMD's events. Zen counts operations, not instructions (FP_RET_SSE_AVX_OPS). The umask of Zen 1 has four bits
// for single precision and four for double; from Zen 2 on it has additions, multiplications, divisions and FMA (as two)
// of both. More than 15 operations a cycle need two joined counters: without them, before Linux 5.6, counts are wrong.
std::vector<CountedEvent> amd_events(const Cpu& cpu, LinuxVersion kernel) {
  constexpr unsigned fp_ret_sse_avx_ops = 0x03;
  if (kernel < LinuxVersion{5, 6}) return {};
  if (cpu.family != 0x17 && cpu.family != 0x19 && cpu.family != 0x1a) return {};
  const bool zen1 = cpu.family == 0x17 && cpu.model < 0x30;
  return {{PERF_TYPE_RAW, raw(fp_ret_sse_avx_ops, zen1 ? 0xff : 0x0f), 1}};
}

// Opens an event for this thread and for what it starts later. Returns a descriptor, or a negative number on failure.
int open_event(const CountedEvent& event) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = event.type;
  attr.config = event.config;
  attr.inherit = 1;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  constexpr pid_t this_thread = 0;
  constexpr int any_cpu = -1;
  constexpr int no_group = -1;  // the kernel cannot read inherited events as a group
  return static_cast<int>(syscall(SYS_perf_event_open, &attr, this_thread, any_cpu, no_group, PERF_FLAG_FD_CLOEXEC));
}

std::optional<CounterReading> read_event(int fd) {
  CounterReading reading;
  static_assert(sizeof reading == 3 * sizeof(std::uint64_t));
  if (::read(fd, &reading, sizeof reading) != sizeof reading) return std::nullopt;
  return reading;
}

std::uint64_t since(std::uint64_t before, std::uint64_t now) { return now > before ? now - before : 0; }

}  // namespace

constexpr CountedEvent task_clock_event{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 1};

std::vector<CountedEvent> flop_events(const Cpu& cpu, LinuxVersion kernel) {
  if (cpu.vendor == "GenuineIntel") return intel_events(cpu);
  if (cpu.vendor == "AuthenticAMD") return amd_events(cpu, kernel);
  return {};
}

LinuxVersion linux_version(std::string_view release) {
  LinuxVersion version;
  const char* end = release.data() + release.size();
  const auto major = std::from_chars(release.data(), end, version.major);
  if (major.ec != std::errc{} || major.ptr == end || *major.ptr != '.') return {};
  const auto minor = std::from_chars(major.ptr + 1, end, version.minor);
  return minor.ec == std::errc{} ? version : LinuxVersion{};
}

Cpu this_cpu() {
  Cpu cpu;
#if defined(__x86_64__) || defined(__i386__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(0, &a, &b, &c, &d)) return cpu;
  std::array<char, 12> vendor{};
  std::memcpy(vendor.data(), &b, 4);
  std::memcpy(vendor.data() + 4, &d, 4);
  std::memcpy(vendor.data() + 8, &c, 4);
  cpu.vendor.assign(vendor.data(), vendor.size());
  if (!__get_cpuid(1, &a, &b, &c, &d)) return cpu;
  // The extended fields count only for some families (Intel's and AMD's manuals, CPUID leaf 1).
  cpu.family = static_cast<int>(a >> 8U & 0xfU);
  cpu.model = static_cast<int>(a >> 4U & 0xfU);
  if (cpu.family == 6 || cpu.family == 15) cpu.model += static_cast<int>(a >> 16U & 0xfU) << 4;
  if (cpu.family == 15) cpu.family += static_cast<int>(a >> 20U & 0xffU);
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) cpu.avx512 = (b >> 16U & 1U) != 0;
#endif
  return cpu;
}

LinuxVersion this_linux() {
  utsname name{};
  return uname(&name) == 0 ? linux_version(name.release) : LinuxVersion{};
}

// ---- FlopTally ---------------------------------------------------------------------------------------------------

FlopTally::FlopTally(const std::vector<CountedEvent>& events) {
  for (const CountedEvent& event : events) events_.push_back({event.weight, {}});
}

std::optional<double> FlopTally::take(std::span<const CounterReading> now) {
  if (now.size() != events_.size()) return std::nullopt;
  double more = 0;
  for (std::size_t i = 0; i < now.size(); ++i) {
    const CounterReading& before = events_[i].before;
    const std::uint64_t enabled = since(before.enabled_ns, now[i].enabled_ns);
    const std::uint64_t running = since(before.running_ns, now[i].running_ns);
    if (running == 0) {
      if (enabled > 0) return std::nullopt;
      continue;
    }
    const double waits = std::max(1.0, static_cast<double>(enabled) / static_cast<double>(running));
    more += events_[i].weight * static_cast<double>(since(before.count, now[i].count)) * waits;
  }
  for (std::size_t i = 0; i < now.size(); ++i) events_[i].before = now[i];
  return total_ += more;
}

// ---- FlopCounter -------------------------------------------------------------------------------------------------

bool FlopCounter::OpenCounter::is_open() const {
  std::uint64_t now = 0;
  return ioctl(fd, PERF_EVENT_IOC_ID, &now) == 0 && now == id;
}

void FlopCounter::OpenCounter::close() const {
  if (is_open()) ::close(fd);
}

bool FlopCounter::open(const std::vector<CountedEvent>& events) {
  close();
  const std::lock_guard lock(mutex_);
  tally_ = FlopTally(events);
  for (const CountedEvent& event : events) {
    OpenCounter counter{out_of_reach(open_event(event))};
    if (counter.fd < 0) break;
    ioctl(counter.fd, PERF_EVENT_IOC_ID, &counter.id);
    counters_.push_back(counter);
  }
  readable_ = !events.empty() && counters_.size() == events.size();
  if (!readable_) {
    for (const OpenCounter& counter : counters_) counter.close();
    counters_.clear();
  }
  return readable_;
}

void FlopCounter::close() {
  const std::lock_guard lock(mutex_);
  if (readable_.exchange(false))
    for (const OpenCounter& counter : counters_) counter.close();
  counters_.clear();
}

void FlopCounter::abandon() noexcept {
  if (!readable_.exchange(false)) return;
  for (const OpenCounter& counter : counters_) counter.close();
}

std::optional<double> FlopCounter::read() {
  const std::lock_guard lock(mutex_);
  if (!readable_) return std::nullopt;
  std::vector<CounterReading> now;
  for (const OpenCounter& counter : counters_) {
    const auto reading = counter.is_open() ? read_event(counter.fd) : std::nullopt;
    if (!reading) return std::nullopt;
    now.push_back(*reading);
  }
  return tally_.take(now);
}

}  // namespace hocket::runtime
