#include "runtime/posix/access.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <new>
#include <optional>
#include <string>

#include "runtime/mpi/hooks.hpp"
#include "runtime/posix/descriptors.hpp"
#include "runtime/posix/targets.hpp"
#include "runtime/posix/volume.hpp"

namespace hocket::runtime::posix {
namespace {

constinit Volume volume;
constinit Descriptors descriptors;
constinit Targets targets;

// Restores errno at the end of a scope: the program must see only the errno of its own call.
class SameErrno {
 public:
  SameErrno() = default;
  ~SameErrno() { errno = before_; }
  SameErrno(const SameErrno&) = delete;
  SameErrno& operator=(const SameErrno&) = delete;

 private:
  int before_ = errno;
};

// Disables cancelling of this thread for a scope. As without libhocket, a thread may be cancelled in its own call, but
// not in a wait for hocketd.
class NotCancelled {
 public:
  NotCancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NotCancelled() { pthread_setcancelstate(before_, nullptr); }
  NotCancelled(const NotCancelled&) = delete;
  NotCancelled& operator=(const NotCancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

std::string path_of(int fd) {
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  std::array<char, PATH_MAX> path{};
  const ssize_t length = readlink(link.c_str(), path.data(), path.size());
  return {path.data(), length > 0 ? static_cast<std::size_t>(length) : 0};
}

Bursts::Burst& burst_of(Target& target, Bursts& bursts) {
  if (Bursts::Burst* known = target.burst.load(std::memory_order_acquire)) return *known;
  Bursts::Burst& burst = bursts.of(target.name);
  target.burst.store(&burst, std::memory_order_release);
  return burst;
}

// The most bytes that Linux moves in one call.
constexpr std::int64_t most_of_a_call = 0x7ffff000;

class Access {
 public:
  // `worth` maps the start time to the bytes asked for, or to nothing if the access does not count (volume.hpp).
  template <class Worth>
  Access(Direction direction, const char* routine, int fd, dev_t device, Worth worth)
      : direction_(direction), start_(node_now()) {
    const std::optional<std::int64_t> bytes = worth(start_);
    counts_ = bytes.has_value();
    if (!counts_) return;
    const NotCancelled not_cancelled;
    target_ = &targets.of(device);
    Bursts* const bursts = Process::get().bursts();
    const auto describe = [&](event::StartIo& begins) {
      begins.file = path_of(fd);
      begins.operation = routine;
      begins.bytes = *bytes;
    };
    begun_ = begin_independent(bursts, bursts ? &burst_of(*target_, *bursts) : nullptr, describe, start_, true);
    start_ = begun_.start;
  }

  void end(std::int64_t moved) const {
    const Time now = node_now();
    const bool writes = direction_ == Direction::write;
    Activity& activity = writes ? hot.counters.posix_write : hot.counters.posix_read;
    activity.add(moved, now - start_, true);
    if (writes) volume.written(moved);
    if (!counts_) return volume.passed(now);
    // If MPI has been finalized meanwhile, or a child was forked during the access, there is no connection to hocketd.
    if (!Process::active()) return;
    const NotCancelled not_cancelled;
    volume.counted(now, Process::get().phase_gap());
    leave_access(direction_, begun_, target_->name, now, now - start_, {}, moved);
  }

 private:
  const Inside inside_;
  Direction direction_;
  Time start_;
  bool counts_ = false;
  Target* target_ = nullptr;
  Begun begun_;
};

// Storage for this thread's access that is under way. It is raw bytes, because a cancelled thread runs no destructors
// of its C++ variables (access.h).
alignas(Access) constinit thread_local std::array<std::byte, sizeof(Access)> under_way{};

template <class Worth>
bool begin(Direction direction, const char* routine, int fd, Worth worth) {
  if (!posix_watched() || fd <= STDERR_FILENO) return false;
  const SameErrno same;
  const std::optional<dev_t> device = descriptors.device_of(fd);
  if (!device) return false;
  new (under_way.data()) Access(direction, routine, fd, *device, worth);
  return true;
}

std::optional<std::int64_t> bytes_if(bool counts, std::int64_t bytes) {
  return counts ? std::optional(bytes) : std::nullopt;
}

}  // namespace
}  // namespace hocket::runtime::posix

using namespace hocket;
using namespace hocket::runtime;

bool posix_watched() { return Process::watches_posix() && !Inside::any(); }

bool posix_begin(bool writes, const char* routine, int fd, const iovec* parts, int count) {
  return posix::begin(writes ? Direction::write : Direction::read, routine, fd, [&](Time now) {
    std::int64_t bytes = 0;
    for (int i = 0; i < count && i < IOV_MAX && bytes < posix::most_of_a_call; ++i)
      bytes += static_cast<std::int64_t>(std::min<std::size_t>(parts[i].iov_len, posix::most_of_a_call));
    bytes = std::min(bytes, posix::most_of_a_call);
    return posix::bytes_if(posix::volume.counts(bytes, now, Process::get().phase_gap()), bytes);
  });
}

bool posix_begin_sync(const char* routine, int fd) {
  return posix::begin(Direction::write, routine, fd,
                      [](Time now) { return posix::bytes_if(posix::volume.sync_counts(now), 0); });
}

void posix_end(ssize_t moved) {
  const posix::SameErrno same;
  auto* access = std::launder(reinterpret_cast<posix::Access*>(posix::under_way.data()));
  access->end(std::max<std::int64_t>(0, moved));
  access->~Access();
}

void posix_forget(unsigned first, unsigned last) { posix::descriptors.forget(first, last); }

void* posix_next(const char* name) { return find_next(name); }
