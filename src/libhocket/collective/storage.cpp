#include "collective/storage.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "mpi_shim/depth.hpp"
#include "mpi_shim/signals_blocked.hpp"

namespace hocket::runtime::collective {
namespace {

constexpr long nfs_magic = 0x6969;  // NFS clients see each other's bytes late
// Average length of a run in bytes below which read-modify-write is cheaper than one system call per run.
constexpr std::int64_t short_run = 16 << 10;

}  // namespace

Storage::~Storage() {
  if (fd_ >= 0) close(fd_);
}

int Storage::open(const char* path, bool reads, bool writes) {
  fd_ = ::open(path, (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC);
  readable_ = fd_ >= 0;
  // Read-modify-write needs read permission although the program only writes; if that is denied, open without it.
  if (fd_ < 0 && writes && !reads) fd_ = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd_ < 0) return errno;
  struct stat file {};
  struct statfs system {};
  if (fstat(fd_, &file) == 0 && S_ISREG(file.st_mode) && fstatfs(fd_, &system) == 0 && system.f_type != nfs_magic)
    return 0;
  close(fd_);
  fd_ = -1;
  return ENOTSUP;
}

int Storage::read_some(std::byte* bytes, std::int64_t count, std::int64_t offset, std::int64_t& got) const {
  for (got = 0; got < count;) {
    const ssize_t n = pread(fd_, bytes + got, static_cast<std::size_t>(count - got), offset + got);
    // A pread of 0 bytes is the end of the file, which only read() treats as an error.
    if (n == 0) return 0;
    if (n < 0 && errno != EINTR) return errno;
    if (n > 0) got += n;
  }
  return 0;
}

int Storage::read(std::span<std::byte> bytes, std::int64_t offset) const {
  const auto count = static_cast<std::int64_t>(bytes.size());
  std::int64_t got = 0;
  const int error = read_some(bytes.data(), count, offset, got);
  return error == 0 && got < count ? EIO : error;
}

int Storage::write(std::span<const std::byte> bytes, std::int64_t offset) const {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd_, bytes.data(), bytes.size(), offset);
    // A pwrite that takes nothing would repeat for ever.
    if (n == 0) return EIO;
    if (n < 0 && errno != EINTR) return errno;
    if (n < 0) continue;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += n;
  }
  return 0;
}

int Storage::write_covered(const std::byte* buffer, layout::Extent span, const Coverage& coverage,
                           std::byte* scratch) const {
  if (coverage.full()) return write({buffer, static_cast<std::size_t>(span.count())}, span.first);
  std::int64_t runs = 0, covered = 0;
  coverage.for_each_run([&](layout::Extent run) {
    ++runs;
    covered += run.count();
  });
  // A single run needs no reading: one pwrite covers it.
  if (runs > 1 && readable_ && covered / runs < short_run) return read_modify_write(buffer, span, coverage, scratch);
  int error = 0;
  coverage.for_each_run([&](layout::Extent run) {
    if (error == 0)
      error = write({buffer + (run.first - span.first), static_cast<std::size_t>(run.count())}, run.first);
  });
  return error;
}

int Storage::read_modify_write(const std::byte* buffer, layout::Extent span, const Coverage& coverage,
                               std::byte* scratch) const {
  if (const int error = lock(span, true)) return error;
  std::int64_t got = 0;
  int error = read_some(scratch, span.count(), span.first, got);
  if (error == 0) {
    // Bytes beyond the end of the file are zero, as in any hole of a file.
    std::fill(scratch + got, scratch + span.count(), std::byte{});
    coverage.for_each_run([&](layout::Extent run) {
      std::memcpy(scratch + (run.first - span.first), buffer + (run.first - span.first),
                  static_cast<std::size_t>(run.count()));
    });
    error = write({scratch, static_cast<std::size_t>(span.count())}, span.first);
  }
  const int unlocked = unlock(span);
  return error != 0 ? error : unlocked;
}

// Uses open file description locks, because the kernel drops process-wide (POSIX) locks as soon as any library in the
// process closes the same file.
int Storage::set_lock(layout::Extent span, short kind) const {
  struct flock lock {};
  lock.l_type = kind;
  lock.l_whence = SEEK_SET;
  lock.l_start = span.first;
  lock.l_len = span.count();
  while (fcntl(fd_, F_OFD_SETLKW, &lock) != 0) {
    if (errno == EINTR) continue;
    return errno == EINVAL || errno == ENOLCK || errno == ENOTSUP ? 0 : errno;  // the file system supports no locks
  }
  return 0;
}

int Storage::lock(layout::Extent span, bool writes) const { return set_lock(span, writes ? F_WRLCK : F_RDLCK); }
int Storage::unlock(layout::Extent span) const { return set_lock(span, F_UNLCK); }

std::int64_t Storage::size() const {
  struct stat file {};
  return fstat(fd_, &file) == 0 ? file.st_size : 0;
}

int Storage::sync() const { return fsync(fd_) == 0 ? 0 : errno; }

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Worker::submit(std::function<void()> job) {
  if (!thread_.joinable()) {
    try {
      // The program's signal handlers must run in the program's own threads.
      const SignalsBlocked blocked;
      thread_ = std::thread([this] { work(); });
    } catch (const std::system_error&) {
      return job();
    }
  }
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  wake_.notify_one();
}

void Worker::work() {
  const Inside inside;  // its file accesses are not counted as the program's own
  for (;;) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return ends_ || !jobs_.empty(); });
    // Queued jobs still run after `ends_`: buffers of an access are in use until they have.
    if (jobs_.empty()) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
  }
}

}  // namespace hocket::runtime::collective
