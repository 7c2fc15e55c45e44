// Memory that a forwarding client shares with a server.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "forward/protocol.h"

namespace hocket::forward {

// It is sealed against shrinking, so that no access faults.
class ClientSegment {
 public:
  ClientSegment() = default;
  ClientSegment(const ClientSegment&) = delete;
  ClientSegment& operator=(const ClientSegment&) = delete;
  ~ClientSegment() {
    if (is_mapped()) munmap(memory_, forward_most_bytes);
  }

  // Returns false if the descriptor is not of such memory.
  bool map(int descriptor) {
    const int seals = fcntl(descriptor, F_GET_SEALS);
    struct stat file {};
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(descriptor, &file) != 0 || file.st_size < forward_most_bytes)
      return false;
    memory_ = mmap(nullptr, forward_most_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    return is_mapped();
  }
  char* memory() const { return static_cast<char*>(memory_); }
  bool is_mapped() const { return memory_ != MAP_FAILED; }

 private:
  void* memory_ = MAP_FAILED;
};

}  // namespace hocket::forward
