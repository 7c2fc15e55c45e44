// Reads a trace, record by record. Errors name file and line; a last line that was cut short (its writer was killed, or
// the disk full) ends the trace without being one. Not thread-safe.
#pragma once

#include <fstream>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "trace/line.hpp"
#include "trace/writer.hpp"

namespace hocket::trace {

class Reader {
 public:
  // Fails where the file cannot be read, is no trace, or one of another version.
  static Result<Reader> open(const std::string& path);

  const Header& header() const { return header_; }
  // Nothing: the trace is over.
  Result<std::optional<Record>> next();
  // Of the record that `next` gave last.
  std::size_t line() const { return line_; }
  bool was_cut_short() const { return cut_short_; }

 private:
  explicit Reader(const std::string& path) : path_(path), file_(path) {}
  Error wrong(const std::string& what) const;
  Status read_header();

  std::string path_;
  std::ifstream file_;
  Header header_;
  std::size_t line_ = 0;
  bool cut_short_ = false;
};

}  // namespace hocket::trace
