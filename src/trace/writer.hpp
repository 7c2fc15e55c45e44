// Writes the trace of a coordinator. `add` only stores the record, and `flush` turns records into text later. No
// application therefore waits for the trace.
//
// A trace that cannot be written must not stop the daemon. The writer reports the first error once and omits the rest.
// Not thread-safe; nothing throws.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "trace/line.hpp"

namespace hocket::trace {

// Version of the trace format. The reader accepts no other.
inline constexpr std::int64_t format_version = 1;

// The first line of a trace.
struct Header {
  std::string version;  // version of hocket
  std::string node;
  std::int64_t start_unix_ns = 0;  // start of the trace in nanoseconds since 1970
  Time start{};                    // the same moment on the clock of the events
  // Settings in force at the start, which a replay needs. Times and durations are in seconds.
  event::Properties settings;
  // Trace of the same coordinator that this one continues, as a path relative to this file's directory; "": none. The
  // writer does not write it, because the daemon writes whole traces; tools may split them.
  std::string continues{};
};

// The writer owns the file. Its destructor writes the pending records.
class Writer {
 public:
  // Longest delay and approximate number of records before they are written, if the caller calls `flush` at `due`. A
  // killed daemon loses no more than these.
  static constexpr Duration longest_delay = std::chrono::milliseconds{200};
  static constexpr std::size_t most_pending = 1024;

  // Creates or replaces the file. A new file is readable by this user alone; an existing one keeps its mode. Fails if
  // it cannot be opened. `broken` is called once, with one line for the operator, if writing fails.
  static Result<Writer> create(std::string path, const Header& header, std::function<void(const std::string&)> broken);
  Writer(Writer&& other) noexcept;
  Writer& operator=(Writer&&) = delete;
  ~Writer();

  // Stores one record. It never writes, so that an event and its commands are written together.
  void add(Direction direction, event::Event event);
  // Returns the latest time for the next `flush`; nothing if no record is pending.
  std::optional<Time> due() const { return due_; }
  // Writes the pending records.
  void flush();

  const std::string& path() const { return path_; }
  // True once writing has failed. Further records are dropped then.
  bool is_broken() const { return fd_ < 0; }

 private:
  Writer(std::string path, int fd, std::function<void(const std::string&)> broken)
      : path_(std::move(path)), fd_(fd), broken_(std::move(broken)) {}

  void write_text();

  std::string path_;
  int fd_;
  std::function<void(const std::string&)> broken_;
  std::vector<Record> pending_;
  std::optional<Time> due_;
  std::string text_;
};

}  // namespace hocket::trace
