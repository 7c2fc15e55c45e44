// Writes the trace of a coordinator. `add` only stores the record, and `flush` turns records into text later. No
// application therefore waits for the trace.
//
// A trace that cannot be written must not stop the daemon. The writer reports the first error once and omits the rest.
// Not thread-safe; nothing throws.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "trace/ended_parts.hpp"
#include "trace/line.hpp"

namespace hocket::trace {

// Version of the trace, and the oldest one that is read. The version rises if other fields are written, or if the
// coordinator decides otherwise with the same settings, so that a replay knows which differences to expect. tests/data
// keeps a trace of each version.
//   1  DECISION, OUTCOME, MODEL and SLOW_IO_SERVER have a sentence in `text`
//   2  they have the facts, and no sentence
inline constexpr std::int64_t format_version = 2;
inline constexpr std::int64_t oldest_version = 1;

// The first line of a trace.
struct TraceHeader {
  std::string version;  // version of hocket
  std::string node;
  std::int64_t start_unix_ns = 0;  // start of the trace in nanoseconds since 1970
  Time start{};                    // the same moment on the clock of the events
  // Settings in force at the start, which a replay needs. Times and durations are in seconds.
  event::Properties settings;
  // Part of the same trace that this file continues, as a path relative to this file's directory; "": none. The writer
  // sets it when it begins another part.
  std::string continues{};
  std::int64_t format = format_version;  // the writer writes the present one
};

// When a trace continues in another file, and when it loses its oldest parts.
struct TraceSizes {
  std::int64_t part_bytes = 0;  // of a part; 0: any number
  std::int64_t most_bytes = 0;  // of all parts; 0: no limit. The present part stays in any case
  Duration part_age{};          // from the first event of a part to the last; 0: any
  bool compress = false;        // ended parts: NAME.jsonl becomes NAME.jsonl.gz
};

// The writer owns the file. Its destructor writes the pending records.
//
// A trace that grows beyond `part_bytes` or `part_age` continues in NAME.1.jsonl, NAME.2.jsonl and so on, beside
// NAME.jsonl. The last line of a part, {"continued_by": FILE}, names the next one, so that a reader knows if a part is
// missing. A part begins with an event, never between an event and its commands. If all parts would exceed
// `most_bytes`, the oldest ones are removed. What is left cannot be replayed: the coordinator's state comes from the
// first event on.
class Writer {
 public:
  // Longest delay and approximate number of records before they are written, if the caller calls `flush` at `due`. A
  // killed daemon loses no more than these.
  static constexpr Duration longest_delay = std::chrono::milliseconds{200};
  static constexpr std::size_t most_pending = 1024;

  // Creates or replaces the file. A new file is readable by this user alone; an existing one keeps its mode. Fails if
  // it cannot be opened. `broken` is called once, with one line for the operator, if writing fails. The
  // sizes hold for a regular file.
  static Result<Writer> create(std::string path, const TraceHeader& header,
                               std::function<void(const std::string&)> broken, TraceSizes sizes = {});
  Writer(Writer&& other) noexcept;
  Writer& operator=(Writer&&) = delete;
  ~Writer();

  // Stores one record. It never writes, so that an event and its commands are written together.
  void add(Direction direction, event::Event event);
  // Returns the latest time for the next `flush`; nothing if no record is pending.
  std::optional<Time> due() const { return due_; }
  // Writes the pending records.
  void flush();

  // Returns the path of the part that is being written.
  const std::string& path() const { return path_; }
  // True once writing has failed. Further records are dropped then.
  bool is_broken() const { return fd_ < 0; }

 private:
  Writer(std::string path, int fd, const TraceHeader& header, std::function<void(const std::string&)> broken)
      : first_(path), path_(std::move(path)), header_(header), fd_(fd), broken_(std::move(broken)) {}

  void write_text();
  void end(const std::string& why);
  void begin_part();
  // True if the present part is too large or too old.
  bool is_part_over() const;

  std::string first_;  // path of the first part
  std::string path_;
  TraceHeader header_;
  TraceSizes sizes_;
  std::int64_t written_ = 0;        // bytes in this part
  std::optional<Time> part_begun_;  // time of the first event in this part
  Time last_event_{};
  std::unique_ptr<EndedParts> ended_;
  int parts_ = 1;
  int fd_;
  std::function<void(const std::string&)> broken_;
  std::vector<Record> pending_;
  std::optional<Time> due_;
  std::string text_;
};

}  // namespace hocket::trace
