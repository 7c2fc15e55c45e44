// Writes the trace. What happened is kept as it is and becomes text later, in `flush`, so that nobody waits for it.
//
// A trace that cannot be written must not stop the daemon: the first error is told once, and the rest left out. Not
// thread-safe; nothing throws.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "trace/line.hpp"

namespace hocket::trace {

inline constexpr std::int64_t format_version = 1;

struct Header {
  std::string version;  // hocket's
  std::string node;
  std::int64_t start_unix_ns = 0;
  Time start{};
  // In force at the start: what a replay needs. Times and durations in seconds.
  event::Properties settings;
  // The trace of the same coordinator that this one continues, a path relative to this file's directory; "": none.
  // The daemon writes whole traces; tools may cut them.
  std::string continues{};
};

class Writer {
 public:
  // At most this much time passes, or about this many records come, before they are written, if `due` is heeded.
  static constexpr Duration longest_delay = std::chrono::milliseconds{200};
  static constexpr std::size_t most_pending = 1024;

  // Makes or replaces the file, readable by this user alone. Fails where it cannot be opened. `broken` is called
  // once, with one line, when writing has failed.
  static Result<Writer> create(std::string path, const Header& header, std::function<void(const std::string&)> broken);
  Writer(Writer&& other) noexcept;
  Writer& operator=(Writer&&) = delete;
  ~Writer();

  // Never writes by itself, so that an event and its commands are not parted.
  void add(Direction direction, event::Event event);
  // When `flush` should be called at the latest; nothing where nothing is pending.
  std::optional<Time> due() const { return due_; }
  // Writes what is pending.
  void flush();

  const std::string& path() const { return path_; }
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
