#include "transport/held_table.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/address.hpp"

namespace hocket::transport {

void HeldTable::clear(std::size_t row) {
  for (HeldFile& file : files) {
    if (file.owner.load(std::memory_order_acquire) != row + 1) continue;
    file.key.store(no_file, std::memory_order_release);
    file.owner.store(0, std::memory_order_release);
  }
  holding.fetch_and(~bit_of(row), std::memory_order_release);
}

std::string held_table_path(const std::string& runtime_directory) {
  return runtime_directory + "/held-1-" + node_number();
}

int open_held_table(const char* path) {
  const int descriptor = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0) return -1;
  struct stat status {};
  const auto size = static_cast<off_t>(sizeof(HeldTable));
  if (fstat(descriptor, &status) == 0 && (status.st_size == size || ftruncate(descriptor, size) == 0))
    return descriptor;
  close(descriptor);
  return -1;
}

HeldTable* map_held_table(int descriptor, bool writable) {
  void* at = mmap(nullptr, sizeof(HeldTable), writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, descriptor, 0);
  return at == MAP_FAILED ? nullptr : static_cast<HeldTable*>(at);
}

bool lock_held_row(int descriptor, std::size_t row) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(row);
  lock.l_len = 1;
  return fcntl(descriptor, F_OFD_SETLK, &lock) == 0;
}

}  // namespace hocket::transport
