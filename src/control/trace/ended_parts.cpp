#include "trace/ended_parts.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>
#include <utility>

#include "base/descriptor.hpp"
#include "trace/compressed.hpp"

namespace hocket::trace {
namespace {

// The lowest priority that a thread can have.
constexpr int least_priority = 19;

// Copies the file into a compressed one until `give_up` returns true. Returns its bytes; 0 if the copy is not whole.
template <class GiveUp>
std::int64_t compress_into(const Fd& from, int to, GiveUp give_up) {
  const int kept = dup(to);  // gzclose closes the other one
  const GzipFile out{kept < 0 ? nullptr : gzdopen(kept, "wb")};
  if (!out) {
    if (kept >= 0) close(kept);
    return 0;
  }
  auto bytes = std::make_unique<std::array<char, 65536>>();
  ssize_t count = 0;
  while ((count = read(from.get(), bytes->data(), bytes->size())) > 0) {
    if (give_up() || gzwrite(out.get(), bytes->data(), static_cast<unsigned>(count)) != count) return 0;
  }
  // The part is removed after this, so the copy must be on the disk.
  const bool whole = count == 0 && gzflush(out.get(), Z_FINISH) == Z_OK && fsync(to) == 0;
  return whole ? lseek(to, 0, SEEK_END) : 0;
}

}  // namespace

EndedParts::~EndedParts() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  come_.notify_one();
  thread_.join();
}

void EndedParts::add(std::string path, std::int64_t bytes) {
  if (!limits_.compress) return keep({std::move(path), bytes});
  {
    const std::lock_guard lock(mutex_);
    added_.push_back({std::move(path), bytes});
  }
  try {
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  } catch (const std::system_error&) {
    return;  // the user has too many threads; the next part tries again
  }
  come_.notify_one();
}

void EndedParts::keep(EndedPart part) {
  kept_bytes_ += part.bytes;
  kept_.push_back(std::move(part));
  remove_oldest();
}

// Removes the oldest parts while the others and a whole present part would exceed the limit. A part that cannot be
// removed, or was already, counts no more.
void EndedParts::remove_oldest() {
  while (limits_.most_bytes > 0 && !kept_.empty() && kept_bytes_ + limits_.part_bytes > limits_.most_bytes) {
    unlink(kept_.front().path.c_str());
    kept_bytes_ -= kept_.front().bytes;
    kept_.pop_front();
  }
}

void EndedParts::work() {
  // 0 is the calling thread: Linux has a priority for each.
  setpriority(PRIO_PROCESS, 0, least_priority);
  std::unique_lock lock(mutex_);
  while (true) {
    come_.wait(lock, [this] { return leaving_ || !added_.empty(); });
    if (leaving_) return;
    EndedPart part = std::move(added_.front());
    added_.pop_front();
    lock.unlock();
    keep(std::move(part));
    if (!kept_.empty()) {
      EndedPart& newest = kept_.back();
      if (const std::int64_t bytes = compress(newest.path); bytes > 0) {
        kept_bytes_ += bytes - std::exchange(newest.bytes, bytes);
        newest.path += compressed_suffix;
      }
    }
    lock.lock();
  }
}

std::int64_t EndedParts::compress(const std::string& path) {
  const std::string whole = path + std::string{compressed_suffix};
  const std::string growing = whole + ".tmp";
  const Fd from{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  const Fd to{open(growing.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
  const std::int64_t bytes = from && to ? compress_into(from, to.get(), [this] { return is_leaving(); }) : 0;
  // A reader finds the part under one name or the other at any time.
  if (bytes == 0 || rename(growing.c_str(), whole.c_str()) != 0) {
    unlink(growing.c_str());
    return 0;
  }
  unlink(path.c_str());
  return bytes;
}

bool EndedParts::is_leaving() {
  const std::lock_guard lock(mutex_);
  return leaving_;
}

}  // namespace hocket::trace
