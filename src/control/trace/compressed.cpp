#include "trace/compressed.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace hocket::trace {
namespace {

constexpr std::size_t buffer_bytes = 65536;

gzFile open_to_read(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  gzFile file = gzdopen(fd, "rb");
  if (file == nullptr) close(fd);
  return file;
}

}  // namespace

std::string present_path(const std::string& path) {
  const std::string compressed = path + std::string{compressed_suffix};
  return access(path.c_str(), F_OK) != 0 && access(compressed.c_str(), F_OK) == 0 ? compressed : path;
}

LineFile::LineFile(const std::string& path) : file_(open_to_read(path)), bytes_(buffer_bytes) {}

bool LineFile::next(std::string& line) {
  line.clear();
  whole_ = false;
  while (begin_ < end_ || fill()) {
    const auto begin = bytes_.begin() + static_cast<std::ptrdiff_t>(begin_);
    const auto end = bytes_.begin() + static_cast<std::ptrdiff_t>(end_);
    const auto at = std::find(begin, end, '\n');
    line.append(begin, at);
    whole_ = at != end;
    begin_ = whole_ ? static_cast<std::size_t>(at - bytes_.begin()) + 1 : end_;
    if (whole_) return true;
  }
  return !line.empty();
}

bool LineFile::fill() {
  if (!file_ || !error_.empty()) return false;
  const int count = gzread(file_.get(), bytes_.data(), static_cast<unsigned>(bytes_.size()));
  begin_ = 0;
  end_ = static_cast<std::size_t>(std::max(count, 0));
  int code = Z_OK;
  const char* const text = gzerror(file_.get(), &code);
  // A compressed file without its end gives what there is, and Z_BUF_ERROR.
  if (count < 0 || (count == 0 && code != Z_OK && code != Z_STREAM_END)) error_ = text;
  return count > 0;
}

}  // namespace hocket::trace
