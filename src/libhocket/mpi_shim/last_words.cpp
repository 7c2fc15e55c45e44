#include "mpi_shim/last_words.hpp"

#include <sys/ioctl.h>
#include <sys/stat.h>

#include <thread>

#include "base/clock.hpp"

namespace hocket::runtime {

void wait_until_read(int fd, Duration limit) {
  struct stat status {};
  if (fstat(fd, &status) != 0 || !S_ISFIFO(status.st_mode)) return;
  const Time deadline = node_now() + limit;
  int unread = 0;
  while (ioctl(fd, FIONREAD, &unread) == 0 && unread > 0 && node_now() < deadline)
    std::this_thread::sleep_for(std::chrono::microseconds{200});
}

}  // namespace hocket::runtime
