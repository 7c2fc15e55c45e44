#include "transport/file_identity.hpp"

#include <fcntl.h>
#include <sys/stat.h>

namespace hocket::transport {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
constexpr std::int64_t most_seconds = (std::int64_t{1} << 61) / second_ns;  // so that a frame can hold the time

// Returns the time of creation, or 0. Device and inode alone could not tell files of two nodes apart over TCP.
std::int64_t birth_of(int descriptor) {
  struct statx status {};
  if (statx(descriptor, "", AT_EMPTY_PATH, STATX_BTIME, &status) != 0 || (status.stx_mask & STATX_BTIME) == 0) return 0;
  const std::int64_t seconds = status.stx_btime.tv_sec;
  if (seconds < 0 || seconds > most_seconds) return 0;
  return seconds * second_ns + status.stx_btime.tv_nsec;
}

}  // namespace

FileIdentity identity_of(int descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) return {UINT64_MAX, UINT64_MAX, 0};
  return {status.st_dev, status.st_ino, birth_of(descriptor)};
}

bool is_wanted(const FileIdentity& own, const FileIdentity& wanted) {
  const auto same = [](auto one, auto other) { return one == other || one == 0 || other == 0; };
  if (wanted.inode == 0) return true;
  return own.inode == wanted.inode && same(own.device, wanted.device) && same(own.born_ns, wanted.born_ns);
}

}  // namespace hocket::transport
