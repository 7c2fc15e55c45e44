// A descriptor that libhocket keeps in a process of somebody else. That program may close descriptors which it has not
// opened (closefrom, a loop up to 1023), and open files of its own under their numbers. So the descriptor gets a number
// that such a loop rarely reaches, and its owner checks before each use that it still refers to the same file.
//
// No function throws. A thread of the program may close the descriptor between the check and the use.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/descriptor.hpp"

namespace hocket {

// Returns the descriptor under a high number, or unchanged if there is none. A table of descriptors is as long as its
// highest number, and a fork copies it, so the number is not the highest that is possible.
inline int out_of_reach(int fd) {
  constexpr rlim_t high = 4096;
  constexpr rlim_t room = 256;  // numbers below the limit, for other descriptors of libhocket
  rlimit limit{};
  if (fd < 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0) return fd;
  const rlim_t end = std::min(high, limit.rlim_cur);
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, static_cast<int>(end - std::min(room, end / 4)));
  if (moved < 0) return fd;
  close(fd);
  return moved;
}

// Makes the process's table of descriptors as long as out_of_reach() needs. A process that has several threads waits
// some 15 ms for a longer table (the kernel waits for a grace period of RCU), one of a single thread does not. So this
// is called before MPI starts its threads.
inline void make_room_out_of_reach() { const Fd any{out_of_reach(open("/", O_PATH | O_CLOEXEC))}; }

// Owns a descriptor as Fd does, but closes it only if it still refers to the same file. Move-only.
class KeptFd {
 public:
  KeptFd() = default;
  // Takes over a descriptor that was just opened, and moves it out of reach of the program.
  explicit KeptFd(int fd) : fd_(out_of_reach(fd)) {
    if (struct stat status{}; fd_ >= 0 && fstat(fd_, &status) == 0) {
      device_ = status.st_dev;
      inode_ = status.st_ino;
      checked_ = true;
    }
  }
  // Takes a descriptor of a program that owns all of its descriptors: it is not checked.
  static KeptFd unchecked(Fd fd) {
    KeptFd kept;
    kept.fd_ = fd.release();
    return kept;
  }
  KeptFd(KeptFd&& other) noexcept { *this = std::move(other); }
  KeptFd& operator=(KeptFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(device_, other.device_);
    std::swap(inode_, other.inode_);
    std::swap(checked_, other.checked_);
    return *this;
  }
  ~KeptFd() {
    if (fd_ >= 0 && is_ours()) close(fd_);
  }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  // Returns false if the program has closed the descriptor or uses its number. Sockets, files and pipes are told apart;
  // timers and the like have one inode together. Async-signal-safe.
  bool is_ours() const {
    struct stat status {};
    return !checked_ || (fstat(fd_, &status) == 0 && status.st_dev == device_ && status.st_ino == inode_);
  }

 private:
  int fd_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  bool checked_ = false;
};

}  // namespace hocket
