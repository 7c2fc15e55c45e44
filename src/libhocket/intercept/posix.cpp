#include "intercept/posix.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <new>
#include <optional>
#include <string>

#include "api/access_turn.hpp"
#include "api/held_view.hpp"
#include "intercept/descriptors.hpp"
#include "intercept/held_files.hpp"
#include "intercept/hooks.hpp"
#include "intercept/targets.hpp"
#include "intercept/volume.hpp"
#include "process/announced.hpp"
#include "process/call_log.hpp"
#include "process/deputy.hpp"
#include "process/identity.hpp"
#include "process/reporter.hpp"
#include "session/file_layout.hpp"
#include "session/file_parts.hpp"

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

Bursts::Burst& burst_of(DeviceTarget& target, Bursts& bursts) {
  if (Bursts::Burst* known = target.burst.load(std::memory_order_acquire)) return *known;
  Bursts::Burst& burst = bursts.of(target.name, target.parts);
  target.burst.store(&burst, std::memory_order_release);
  return burst;
}

// The most bytes that Linux moves in one call.
constexpr std::int64_t most_of_a_call = 0x7ffff000;

// An errand of the deputy: it begins an access, or makes servers store what they hold of a file (`stored`).
struct PosixErrand {
  FileKey stored = no_file;
  AccessDirection direction = AccessDirection::write;
  const char* routine = nullptr;
  int fd = -1;
  dev_t device = 0;
  std::int64_t bytes = 0;
  Time start{};
  DeviceTarget* target = nullptr;
  BegunAccess begun;
};
constinit PosixErrand errand;
using StoreByKey = void (*)(FileKey);
constinit StoreByKey store_held = nullptr;  // set before the deputy starts

// Returns the target of the errand's file. Where the file system tells layouts, the file is looked up, and its place
// noted for the next access. It allocates memory.
DeviceTarget& target_of_errand() {
  if (DeviceTarget* const known = targets.find(errand.device); known && !known->tells_layouts) return *known;
  const std::string path = path_of(errand.fd);
  const DeviceTarget& device = targets.of(errand.device, tells_layouts(path), errand.fd);
  if (!device.tells_layouts) return targets.of(errand.device);
  DeviceTarget& found = targets.at(device, choose_parts(std::nullopt, layout_of(path)));
  descriptors.settle(errand.fd, errand.device, found.place);
  return found;
}

void serve_another() {
  if (errand.stored != no_file) return store_held(errand.stored);
  errand.target = &target_of_errand();
  Bursts* const bursts = independent_bursts([](const HeldTargets& held) { return held.has(errand.target->name); });
  const auto describe = [](event::StartIo& begins) {
    begins.file = path_of(errand.fd);
    begins.operation = errand.routine;
    begins.bytes = errand.bytes;
  };
  Bursts::Burst* const burst = bursts ? &burst_of(*errand.target, *bursts) : nullptr;
  errand.begun = begin_independent(bursts, burst, describe, errand.start, true);
}

void drop_for_another() {
  if (errand.stored != no_file) return;
  leave_access(errand.direction, errand.begun, errand.target->name, node_now(), {}, {}, 0);
}

constinit Deputy deputy{serve_another, drop_for_another};

class PosixAccess {
 public:
  // `worth` maps the start time to the bytes asked for, or to nothing if the access does not count (volume.hpp).
  template <class Worth>
  PosixAccess(AccessDirection direction, const char* routine, int fd, std::int64_t at, dev_t device, Worth worth)
      : direction_(direction), start_(node_now()), routine_(routine), fd_(fd), at_(at), began_(call_log::moment()) {
    const std::optional<std::int64_t> bytes = worth(start_);
    counts_ = bytes.has_value();
    if (!counts_ || begin_at_once(device)) return;
    const NotCancelled not_cancelled;
    begin_by_deputy({no_file, direction, routine, fd, device, *bytes, start_, nullptr, {}});
    start_ = node_now();
  }

  void end(std::int64_t moved) const {
    const Time now = node_now();
    const bool writes = direction_ == AccessDirection::write;
    CallCounters& activity = writes ? hot.counters.posix_write : hot.counters.posix_read;
    activity.add(moved, now - start_, true);
    if (writes) volume.written(moved);
    if (call_log::is_on()) log(writes, moved);
    if (!counts_) return volume.passed(now);
    // If MPI has been finalized meanwhile, or a child was forked during the access, there is no connection to hocketd.
    if (!hot.is_active()) return;
    volume.counted(now, identity().settings.phase_gap);
    leave(now, moved);
  }

 private:
  // Begins the access if it needs nothing but counting: it continues an I/O phase and a burst. Returns false, and
  // nothing has begun, if it needs more than that, or if another thread holds a lock for long.
  bool begin_at_once(dev_t device) {
    target_ = targets.find(device);
    Reporter* const reporter = Reporter::find();
    const bool coordinates = identity().coordinates();
    if (!reporter) return coordinates && hot.in_step.load(std::memory_order_relaxed);
    if (!target_ || (!coordinates && !reporter->session().knows_held(start_))) return false;
    const bool asks =
        coordinates ? !hot.in_step.load(std::memory_order_relaxed) : reporter->session().held().has(target_->name);
    Bursts* const bursts = asks && !reporter->session().engaged() ? &reporter->bursts() : nullptr;
    const NotCancelled not_cancelled;
    Bursts::Burst* const burst = bursts ? target_->burst.load(std::memory_order_acquire) : nullptr;
    const auto begins = burst ? bursts->begin_at_once(*burst) : std::nullopt;
    if (bursts && !begins) return false;
    if (!reporter->operation_begins_at_once(start_, bursts ? AsksFor::itself : AsksFor::nobody)) {
      if (begins) bursts->take_back(*burst);
      return false;
    }
    if (begins && !begins->granted) hot.uncoordinated.add(1);
    begun_.burst = burst;
    return begun_.tracked = true;
  }

  // If the deputy is stuck, the access is counted, but belongs to no I/O phase and no burst.
  void begin_by_deputy(const PosixErrand& asked) {
    while (!deputy.claim())
      if (!deputy.await_turn() || begin_at_once(asked.device)) return;
    errand = asked;
    if (!deputy.send()) return;
    target_ = errand.target;
    begun_ = errand.begun;
    deputy.release();
  }

  void log(bool writes, std::int64_t moved) const {
    LoggedCall call;
    call.kind = writes ? CallKind::write : CallKind::read;
    call.bytes = moved;
    const off_t position = at_ == POSIX_AT_POSITION ? lseek(fd_, 0, SEEK_CUR) - moved : at_;
    call.offset = std::max<std::int64_t>(position, -1);
    struct stat file {};
    if (fstat(fd_, &file) == 0) {
      const std::array<std::uint64_t, 2> place = {file.st_dev, file.st_ino};
      call.file = call_log::file_number({reinterpret_cast<const char*>(place.data()), sizeof place});
    }
    call_log::add(routine_, began_, call);
  }

  void leave(Time now, std::int64_t moved) const {
    const NotCancelled not_cancelled;
    if (begun_.burst) {
      announced().moved(moved);
      Reporter::find()->bursts().end_at_once(*begun_.burst, now, now - start_, moved);
    }
    if (!begun_.tracked) return;
    const bool reads = direction_ == AccessDirection::read;
    Reporter::find()->operation_ends_at_once(
        {now, now - start_, begun_.wait, reads ? moved : 0, reads ? 0 : moved, target_->name});
  }

  const Inside inside_;
  AccessDirection direction_;
  Time start_;
  const char* routine_;
  int fd_;
  std::int64_t at_;
  call_log::CallStart began_;
  bool counts_ = false;
  DeviceTarget* target_ = nullptr;
  BegunAccess begun_;
};

// Storage for this thread's access that is under way. It is raw bytes, because a cancelled thread runs no destructors
// of its C++ variables (access.h).
alignas(PosixAccess) constinit thread_local std::array<std::byte, sizeof(PosixAccess)> under_way{};

// Makes servers store what they may hold of a file of this process. The deputy does it, because this thread may have
// been interrupted anywhere. If the deputy is stuck, the program's call goes on, and may miss these bytes.
void show_own(FileKey key) {
  if (!held_files.may_be(key)) return;
  while (!deputy.claim())
    if (!deputy.await_turn()) return;
  errand = {};
  errand.stored = key;
  if (deputy.send()) deputy.release();
}

// True if servers may hold data of some file: of one that this process wrote through them, or of any, if they run on
// this node.
bool any_held() { return hot.holds.load(std::memory_order_relaxed) || api::held_view.any(); }

// Looks the file up with `find`, if servers may hold data of any. Servers of this node hold what they have not stored
// yet, whoever wrote it, so it is enough to wait. This concerns accesses by the MPI library, too.
template <class Find>
[[gnu::noinline]] void show(Find find) {
  static constinit thread_local bool looks = false;  // `find` calls functions that are wrapped
  if (looks) return;
  const SameErrno same;
  const NotCancelled not_cancelled;
  struct stat file {};
  looks = true;
  const bool found = find(file) == 0 && S_ISREG(file.st_mode);
  looks = false;
  if (!found) return;
  const FileKey key = key_of(file);
  if (api::held_view.any()) api::held_view.await(key);
  if (!hot.holds.load(std::memory_order_relaxed) || !posix_watched()) return;
  const Inside inside;
  show_own(key);
}

template <class Find>
void show_if(Find find) {
  if (any_held()) [[unlikely]]
    show(find);
}

template <class Worth>
bool begin(AccessDirection direction, const char* routine, int fd, std::int64_t at, Worth worth) {
  if (!posix_watched() || fd <= STDERR_FILENO) return false;
  const SameErrno same;
  const std::optional<dev_t> device = descriptors.device_of(fd);
  if (!device) return false;
  new (under_way.data()) PosixAccess(direction, routine, fd, at, *device, worth);
  return true;
}

std::optional<std::int64_t> bytes_if(bool counts, std::int64_t bytes) {
  return counts ? std::optional(bytes) : std::nullopt;
}

bool begin_bytes_at(bool writes, const char* routine, int fd, std::int64_t bytes, std::int64_t at) {
  return begin(writes ? AccessDirection::write : AccessDirection::read, routine, fd, at,
               [&](Time now) { return bytes_if(volume.counts(bytes, now, identity().settings.phase_gap), bytes); });
}

bool begin_bytes(bool writes, const char* routine, int fd, std::int64_t bytes) {
  return begin_bytes_at(writes, routine, fd, bytes, POSIX_ANYWHERE);
}

bool begin_sync(const char* routine, int fd) {
  return begin(AccessDirection::write, routine, fd, POSIX_ANYWHERE,
               [](Time now) { return bytes_if(volume.sync_counts(now), 0); });
}

std::string applicant_of(int fd) {
  struct stat file {};
  event::StartIo asked;
  if (fstat(fd, &file) == 0) asked.target = target_of(file.st_dev, fd);
  return applicant_at(asked);
}

// Put and get through I/O servers take part as if they accessed the file themselves. They see what servers hold.
constexpr api::AccessTurns turns_of_puts{begin_bytes, begin_sync, [](std::int64_t moved) { posix_end(moved); },
                                         applicant_of};

}  // namespace
}  // namespace hocket::runtime::posix

using namespace hocket;
using namespace hocket::runtime;

bool posix_watched() { return hot.is_posix_watched() && !Inside::any(); }

bool posix_begin(bool writes, const char* routine, int fd, const iovec* parts, int count, std::int64_t at) {
  posix_show(fd);
  std::int64_t bytes = 0;
  for (int i = 0; i < count && i < IOV_MAX && bytes < posix::most_of_a_call; ++i)
    bytes += static_cast<std::int64_t>(std::min<std::size_t>(parts[i].iov_len, posix::most_of_a_call));
  return posix::begin_bytes_at(writes, routine, fd, std::min(bytes, posix::most_of_a_call), at);
}

bool posix_begin_sync(const char* routine, int fd) {
  posix_show(fd);
  return posix::begin_sync(routine, fd);
}

void posix_end(ssize_t moved) {
  const posix::SameErrno same;
  auto* access = std::launder(reinterpret_cast<posix::PosixAccess*>(posix::under_way.data()));
  access->end(std::max<std::int64_t>(0, moved));
  access->~PosixAccess();
}

void posix_show(int fd) {
  posix::show_if([&](struct stat& file) { return fstat(fd, &file); });
}

void posix_show_path(int directory, const char* path) {
  posix::show_if([&](struct stat& file) { return path ? fstatat(directory, path, &file, 0) : -1; });
}

bool posix_any_held() { return posix::any_held(); }

void posix_watch_begins(void (*store)(FileKey key)) {
  posix::store_held = store;
  api::access_turns.store(&posix::turns_of_puts, std::memory_order_release);
  if (hot.is_posix_watched()) posix::deputy.start();
}

void posix_watch_ends() { posix::deputy.stop(); }

void posix_forget(unsigned first, unsigned last) { posix::descriptors.forget(first, last); }

void* posix_next(const char* name) { return find_next(name); }
