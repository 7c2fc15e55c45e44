#include "daemon/for_servers.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/descriptor.hpp"
#include "base/server_files.hpp"
#include "base/whole_file.hpp"
#include "bus/private_directory.hpp"

namespace hocket::daemon {
namespace {

constexpr std::size_t longest_bytes = 4096;

// Replaces the file as a whole, so that nobody reads half of it.
Status leave(const std::string& runtime_directory, const std::string& path, const std::string& text) {
  if (whole_file(path.c_str(), longest_bytes) == text) return success();
  if (const Status ready = bus::make_runtime_directory(server_files::directory(runtime_directory), "--dir"); !ready)
    return ready;
  const std::string fresh = path + ".new";
  unlink(fresh.c_str());
  const Fd file{open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (file && write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      std::rename(fresh.c_str(), path.c_str()) == 0)
    return success();
  const Error failed{"cannot write " + path + ": " + error_text(errno)};
  unlink(fresh.c_str());
  return failed;
}

}  // namespace

Status leave_secret(const std::string& runtime_directory, const std::string& secret) {
  return leave(runtime_directory, server_files::secret(runtime_directory), secret);
}

Status leave_address(const std::string& runtime_directory, const std::string& host) {
  const std::string path = server_files::address(runtime_directory);
  if (!host.empty()) return leave(runtime_directory, path, host);
  unlink(path.c_str());
  return success();
}

}  // namespace hocket::daemon
