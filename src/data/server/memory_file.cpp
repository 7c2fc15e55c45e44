#include "server/memory_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hocket::server {

std::pair<Fd, Fd> make_memory() {
  Fd writable{memfd_create("hocket-data-set", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  Fd readable{writable ? fcntl(writable.get(), F_DUPFD_CLOEXEC, 0) : -1};
  return {std::move(readable), std::move(writable)};
}

// The calls can fail only for a descriptor that is no such file.
void extend_memory(const ServerFile& file, std::int64_t length) {
  struct stat status {};
  if (fstat(file.writable.get(), &status) != 0 || status.st_size >= length) return;
  if (ftruncate(file.writable.get(), length) != 0) return;
}

void free_memory(ServerFile& file) {
  file.dropped = true;
  fcntl(file.writable.get(), F_ADD_SEALS, F_SEAL_GROW);
  if (ftruncate(file.writable.get(), 0) != 0) return;
}

}  // namespace hocket::server
