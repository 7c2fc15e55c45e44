// Reads a trace record by record, for replays and tools. Errors name file and line. A last line that was cut short (its
// writer was killed, or the disk was full) ends the trace without an error. Not thread-safe.
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "trace/compressed.hpp"
#include "trace/line.hpp"
#include "trace/writer.hpp"

namespace hocket::trace {

// An open trace. It holds one line in memory at a time.
class Reader {
 public:
  // Opens a trace and reads its header. If there is no such file, it opens PATH.gz. Fails if the file cannot be read,
  // is no trace, or has an unknown version.
  static Result<Reader> open(const std::string& path);

  const TraceHeader& header() const { return header_; }
  // Returns the next record, or nothing at the end of the trace.
  Result<std::optional<Record>> next();
  // Line number of the record that `next` returned last, counted from 1.
  std::size_t line() const { return line_; }
  // True if the last line was incomplete. Known only after `next` has returned nothing.
  bool was_cut_short() const { return cut_short_; }
  // Name of the next part of the trace, beside this one; "": this is the last. Known like `was_cut_short`.
  const std::string& continued_by() const { return continued_by_; }

 private:
  explicit Reader(const std::string& path) : path_(present_path(path)), file_(path_) {}
  // Returns an error about the present line.
  Error wrong(const std::string& what) const;
  Status read_header();

  std::string path_;
  LineFile file_;
  TraceHeader header_;
  std::size_t line_ = 0;
  bool cut_short_ = false;
  std::string continued_by_;
};

}  // namespace hocket::trace
