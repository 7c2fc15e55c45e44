#include "process/call_log.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <new>

#include "base/clock.hpp"
#include "base/fnv.hpp"
#include "mpi_shim/warn.hpp"

namespace hocket::runtime::call_log {
namespace {

// The most calls of a process. Their 200 MB are touched only as they are used.
constexpr std::uint64_t most_calls = 1U << 21;

// The first bytes of the file, as python/hocket/capture/log.py reads them.
struct LogHeader {
  std::array<char, 8> magic{'h', 'k', 'c', 'a', 'l', 'l', 's', '2'};
  std::int32_t rank = 0;       // in MPI_COMM_WORLD
  std::int32_t processes = 0;  // in MPI_COMM_WORLD
  std::int32_t spawned = 0;    // 1: MPI_Comm_spawn started this world
  std::int32_t pid = 0;
  std::int64_t started_ns = 0;  // CLOCK_MONOTONIC, when MPI_Init returned
  std::int64_t elapsed_ns = 0;  // from then on, when MPI_Finalize began
  std::int64_t cpu_ns = 0;      // CPU time of that thread between both
  std::uint64_t calls = 0;      // records that follow
  std::uint64_t dropped = 0;    // for which there was no room
};
static_assert(sizeof(LogHeader) == 64);

struct CallLog {
  LoggedCall* calls = nullptr;
  std::string* directory = nullptr;  // never freed, because other threads may still log when the process ends
  std::int64_t started_ns = 0;
  std::int64_t started_cpu_ns = 0;
  std::atomic<std::uint64_t> used = 0;  // may exceed most_calls
};
constinit CallLog log;

bool write_all(int fd, const void* data, std::size_t size) {
  const char* from = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(fd, from, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    from += written;
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

}  // namespace

bool begin(std::string directory, Time started) noexcept {
  void* const memory = mmap(nullptr, most_calls * sizeof(LoggedCall), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  log.calls = static_cast<LoggedCall*>(memory);
  log.directory = new (std::nothrow) std::string(std::move(directory));
  if (!log.directory) return false;
  log.started_ns = to_ns(started);
  log.started_cpu_ns = used_by_thread().cpu_ns;
  hot.logs_calls = true;
  return true;
}

Used used_by_thread() noexcept {
  timespec ts{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
  rusage all{};
  getrusage(RUSAGE_THREAD, &all);
  return {static_cast<std::int64_t>(ts.tv_sec) * 1'000'000'000 + ts.tv_nsec, static_cast<std::uint32_t>(all.ru_nvcsw)};
}

CallStart present() noexcept {
  const Used used = used_by_thread();
  return {node_now(), used};
}

void add(std::string_view routine, const CallStart& start, LoggedCall call) noexcept {
  if (start.at == Time{} || !is_on()) return;
  const std::uint64_t place = log.used.fetch_add(1, std::memory_order_relaxed);
  if (place >= most_calls) return;
  call.start_ns = to_ns(start.at) - log.started_ns;
  call.end_ns = to_ns(node_now()) - log.started_ns;
  const Used used = used_by_thread();
  call.cpu_ns = start.used.cpu_ns - log.started_cpu_ns;
  call.cpu_end_ns = used.cpu_ns - log.started_cpu_ns;
  call.sleeps = start.used.sleeps;
  call.sleeps_end = used.sleeps;
  std::memcpy(call.routine.data(), routine.data(), std::min(routine.size(), call.routine.size()));
  log.calls[place] = call;
}

std::uint32_t file_number(std::string_view name) noexcept {
  return std::max(static_cast<std::uint32_t>(fnv1a(name)), 1U);  // 0 means that there is no file
}

void end(int rank, int processes, bool spawned) noexcept {
  if (!hot.logs_calls.exchange(false)) return;
  const std::uint64_t used = log.used.load();
  LogHeader header;
  header.rank = rank;
  header.processes = processes;
  header.spawned = spawned ? 1 : 0;
  header.pid = getpid();
  header.started_ns = log.started_ns;
  header.elapsed_ns = to_ns(node_now()) - log.started_ns;
  header.cpu_ns = used_by_thread().cpu_ns - log.started_cpu_ns;
  header.calls = std::min(used, most_calls);
  header.dropped = used - header.calls;
  const std::string path = *log.directory + "/" + std::to_string(header.pid) + ".calls";
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const bool ok =
      fd >= 0 && write_all(fd, &header, sizeof header) && write_all(fd, log.calls, header.calls * sizeof(LoggedCall));
  const int error = errno;
  if (fd >= 0) close(fd);
  if (!ok) warn("cannot write the log of calls " + path + ": " + std::strerror(error) + "; capture again");
}

}  // namespace hocket::runtime::call_log
