// The log of this process's MPI calls and file accesses, for `hocket capture` (python/hocket/capture/log.py reads it).
//
// The records are kept in memory until MPI_Finalize, so that the log disturbs no I/O of the program. Thread-safe and
// async-signal-safe: a record takes one atomic addition, and no lock. A log that is full drops records and counts them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.hpp"
#include "process/hot.hpp"

namespace hocket::runtime {

// Kinds of records in the log, as in python/hocket/capture/log.py.
// Records of malleable programs have another use for some fields (malleable/job_log.hpp).
enum class CallKind : std::uint8_t {
  communication = 1,
  completion = 2,
  read = 3,
  write = 4,
  file = 5,
  control_point = 6,
  data = 7,
  method = 8
};

// One record, as it stands in the file, in the byte order of this machine.
struct LoggedCall {
  std::int64_t start_ns = 0;  // since MPI_Init returned, when the program made the call
  std::int64_t end_ns = 0;    // when the call returned
  std::int64_t cpu_ns = 0;    // CPU time that the thread had used at the start
  std::int64_t cpu_end_ns = 0;
  std::int64_t bytes = 0;    // that this process contributed; -1: unknown
  std::int64_t offset = -1;  // of the first byte in the file; -1: unknown
  std::uint32_t sleeps = 0;  // how often the thread had given its core up to wait, at the start and at the end
  std::uint32_t sleeps_end = 0;
  std::int32_t processes = 0;  // of the communicator; 0: there is none
  std::int32_t peer = -1;      // destination, source, or root; negative: none, or any
  std::uint32_t file = 0;      // identifies the file's name; 0: no file
  CallKind kind = CallKind::communication;
  std::array<char, 27> routine{};  // ends with a zero unless it is full
};
static_assert(sizeof(LoggedCall) == 96);

namespace call_log {

// What the calling thread has used.
struct Used {
  std::int64_t cpu_ns = 0;
  std::uint32_t sleeps = 0;  // voluntary context switches, which time on a crowded core does not change
};

// The start of a call.
struct CallStart {
  Time at{};
  Used used;
};

// Reserves memory for the log that ends in `directory`. Called once, in MPI_Init. Returns false if there is none.
bool begin(std::string directory, Time started) noexcept;
// Returns true between begin() and end(). One load.
inline bool is_on() noexcept { return hot.logs_calls.load(std::memory_order_relaxed); }
// Returns what this thread has used so far.
Used used_by_thread() noexcept;
// Returns the present moment. The clock is read last: a thread whose core others want as well often loses it when it
// asks the kernel for its CPU time, and that wait is none of the call.
CallStart present() noexcept;
// Returns the present moment if the log is on; else an empty one.
inline CallStart moment() noexcept { return is_on() ? present() : CallStart{}; }
// Adds the call that ends now. `start` is its moment(). It fills in times and routine.
void add(std::string_view routine, const CallStart& start, LoggedCall call) noexcept;
// Returns the number of a file: of its name, or of its place in the file system. All processes get the same one.
std::uint32_t file_number(std::string_view name) noexcept;
// Writes the log to DIRECTORY/PID.calls. One line on stderr says why if it cannot. Called in MPI_Finalize.
void end(int rank, int processes, bool spawned) noexcept;

}  // namespace call_log
}  // namespace hocket::runtime
