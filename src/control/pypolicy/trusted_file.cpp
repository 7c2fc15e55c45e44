#include "pypolicy/trusted_file.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/descriptor.hpp"

namespace hocket::pypolicy {
namespace {

constexpr int most_links = 40;  // bound of symbolic links on one path, as in the kernel

std::string octal(mode_t mode) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "%04o", mode & 07777U);
  return text.data();
}

// Returns why users other than root and this one could change the entry, or "".
std::string why_not_trusted(const struct stat& entry) {
  if (!is_trusted(entry.st_uid)) {
    return "belongs to user " + std::to_string(entry.st_uid) +
           ", who could change what runs: use one that belongs to "
           "root or to user " +
           std::to_string(geteuid());
  }
  // A link has no mode of its own. In a sticky directory, only its owner can replace an entry.
  const bool is_sticky = S_ISDIR(entry.st_mode) && (entry.st_mode & S_ISVTX) != 0;
  if (S_ISLNK(entry.st_mode) || is_sticky || (entry.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  return "may be written by other users (mode " + octal(entry.st_mode) + "), who could change what runs: chmod go-w it";
}

// Follows a path from the root, one component after the other, and checks each entry before it is used.
class Walk {
 public:
  explicit Walk(const std::string& path) : path_(path), rest_(std::filesystem::absolute(path)) {}

  // Returns the descriptor of the file, opened with O_PATH.
  Result<Fd> run() {
    while (!rest_.empty()) {
      const std::string name = take_component();
      Fd next{openat(at_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC)};
      struct stat entry {};
      if (!next || fstat(next.get(), &entry) != 0) return Error{path_ + ": cannot be read: " + error_text(errno)};
      here_ = name == "/" ? std::filesystem::path{name} : here_ / name;
      if (const std::string why = why_not_trusted(entry); !why.empty()) return Error{path_ + ": " + said(why)};
      if (S_ISLNK(entry.st_mode)) {
        if (const Status followed = follow(next); !followed) return followed.error();
        continue;
      }
      at_ = std::move(next);
      is_regular_ = S_ISREG(entry.st_mode);
    }
    if (!is_regular_) return Error{path_ + ": cannot be read: it is not a regular file"};
    return std::move(at_);
  }

 private:
  std::string said(const std::string& why) const {
    return (here_ == path_ ? std::string{"it"} : here_.string()) + " " + why;
  }

  std::string take_component() {
    const std::string name = rest_.begin()->string();
    std::filesystem::path rest;
    for (auto part = std::next(rest_.begin()); part != rest_.end(); ++part) rest /= *part;
    rest_ = rest;
    return name;
  }

  // Puts the target of the link before the rest of the path.
  Status follow(const Fd& link) {
    std::array<char, PATH_MAX> target{};
    const ssize_t length = readlinkat(link.get(), "", target.data(), target.size());
    if (length < 0 || ++links_ > most_links) return Error{path_ + ": cannot be read: too many symbolic links"};
    here_ = here_.parent_path();
    rest_ = std::filesystem::path{std::string(target.data(), static_cast<std::size_t>(length))} / rest_;
    return success();
  }

  std::string path_;
  std::filesystem::path rest_;  // what is left to walk
  std::filesystem::path here_;  // what was walked, for messages
  Fd at_;
  int links_ = 0;
  bool is_regular_ = false;
};

}  // namespace

Result<std::string> read_trusted(const std::string& path) {
  const auto file = Walk{path}.run();
  if (!file) return file.error();
  // The same file is opened again for reading: an O_PATH descriptor cannot be read, and the name may change.
  const Fd readable{open(("/proc/self/fd/" + std::to_string(file.value().get())).c_str(), O_RDONLY | O_CLOEXEC)};
  if (!readable) return Error{path + ": cannot be read: " + error_text(errno)};
  std::string bytes;
  std::array<char, 1 << 16> chunk{};
  while (true) {
    const ssize_t n = read(readable.get(), chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error{path + ": cannot be read: " + error_text(errno)};
    if (n == 0) return bytes;
    bytes.append(chunk.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace hocket::pypolicy
