// Reads a small file of the system whole, as those of /proc. libhocket does so in processes of somebody else, so the
// calls are made directly: no wrapper of read() or open() sees them. It makes system calls, so pure folders must not
// include it.
#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <string>

namespace hocket {

// Returns the content, at most `most` bytes of it; "" if the file cannot be read. Not a cancellation point.
inline std::string whole_file(const char* path, std::size_t most) {
  std::string content;
  const long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
  if (fd < 0) return content;
  std::array<char, 16384> part{};
  for (long n = 0; content.size() < most && (n = syscall(SYS_read, fd, part.data(), part.size())) > 0;)
    content.append(part.data(), static_cast<std::size_t>(n));
  syscall(SYS_close, fd);
  if (content.size() > most) content.resize(most);
  return content;
}

}  // namespace hocket
