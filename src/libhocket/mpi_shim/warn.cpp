#include "mpi_shim/warn.hpp"

#include <unistd.h>

#include <string>

#include "base/utf8.hpp"

namespace hocket::runtime {

void warn(std::string_view text) {
  const std::string line = "hocket: " + printable(text) + "\n";
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) return;  // there is no other place to report it
}

}  // namespace hocket::runtime
