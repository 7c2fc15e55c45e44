// Files of a trace that may be compressed (gzip). Not thread-safe; nothing throws.
#pragma once

#include <zlib.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hocket::trace {

inline constexpr std::string_view compressed_suffix = ".gz";

struct CloseGzipFile {
  void operator()(gzFile file) const { gzclose(file); }
};
using GzipFile = std::unique_ptr<gzFile_s, CloseGzipFile>;

// Returns the path under which the file is there: this one, or with the suffix. Returns `path` if neither is.
std::string present_path(const std::string& path);

// Reads the lines of a file, compressed or not.
class LineFile {
 public:
  // If the file cannot be opened, `is_open` is false and errno says why.
  explicit LineFile(const std::string& path);

  bool is_open() const { return file_ != nullptr; }
  // Reads the next line, without its end. Returns false at the end of the file, or after an error.
  bool next(std::string& line);
  // True if the last line had an end.
  bool was_whole() const { return whole_; }
  // Why the file could not be read on; "": nothing is wrong.
  const std::string& error() const { return error_; }

 private:
  // Reads more bytes. Returns false if there are none.
  bool fill();

  GzipFile file_;
  std::vector<char> bytes_;
  std::size_t begin_ = 0;  // of what is not returned yet
  std::size_t end_ = 0;
  bool whole_ = false;
  std::string error_;
};

}  // namespace hocket::trace
