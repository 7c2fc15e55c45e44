#include "daemon/node_identity.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <fstream>

#include "base/fnv.hpp"

namespace hocket::daemon {

std::string node_identity() {
  std::ifstream file{"/proc/sys/kernel/random/boot_id"};
  std::string text;
  std::getline(file, text);
  for (const char* space : {"/proc/self/ns/pid", "/proc/self/ns/uts", "/proc/self/ns/net"}) {
    struct stat about {};
    if (stat(space, &about) == 0) text += fmt::format(" {}", about.st_ino);
  }
  return fmt::format("{:016x}", fnv1a(text));
}

}  // namespace hocket::daemon
