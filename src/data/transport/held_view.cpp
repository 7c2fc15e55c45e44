#include "transport/held_view.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "base/clock.hpp"
#include "base/descriptor.hpp"

namespace hocket::transport {
namespace {

// Pauses between two looks. Storing takes from microseconds on tmpfs to seconds on a busy disk.
constexpr Duration first_pause = std::chrono::microseconds{20};
constexpr Duration longest_pause = std::chrono::milliseconds{1};
// After so long the server may wait for a turn at the storage, so it is told that a process waits.
constexpr Duration want_after = std::chrono::milliseconds{1};
// The time between two checks whether the server has ended.
constexpr Duration look_after = std::chrono::milliseconds{100};

void pause(Duration time) {
  const timespec length{0, static_cast<long>(time.count())};
  nanosleep(&length, nullptr);
}

}  // namespace

void HeldView::attach(const std::string& runtime_directory) {
  const std::string path = held_table_path(runtime_directory);
  if (path.size() >= path_.size()) return;
  std::copy(path.begin(), path.end(), path_.begin());
  const Fd descriptor{open_held_table(path.c_str())};
  struct stat status {};
  if (!descriptor || fstat(descriptor.get(), &status) != 0) return;
  // Somebody else's table could make this process wait.
  if (!is_trusted(status.st_uid) || (status.st_mode & (S_IRWXG | S_IRWXO)) != 0) return;
  table_.store(map_held_table(descriptor.get(), false), std::memory_order_release);
}

bool HeldView::SeenFile::is_stored() const {
  return entry->key.load(std::memory_order_acquire) != key || entry->claim.load(std::memory_order_acquire) != claim ||
         entry->settled.load(std::memory_order_acquire) >= ticket;
}

bool HeldView::await(FileKey file, FunctionRef<bool(std::uint64_t)> may_hold) const {
  const HeldTable* table = table_.load(std::memory_order_acquire);
  if (table == nullptr) return true;
  bool stored = true;
  const std::size_t first = HeldTable::bucket_of(file);
  for (std::size_t i = first; i < first + HeldTable::bucket_files; ++i) {
    const HeldTable::HeldFile& entry = table->files[i];
    if (entry.key.load(std::memory_order_acquire) != file) continue;
    const SeenFile seen{&entry, file, entry.claim.load(std::memory_order_acquire),
                        entry.acknowledged.load(std::memory_order_acquire),
                        entry.owner.load(std::memory_order_acquire)};
    if (seen.owner == 0 || seen.owner > HeldTable::most_servers) continue;  // it has just been freed
    if (may_hold(table->servers[seen.owner - 1].name.load(std::memory_order_relaxed))) continue;
    stored = await(seen) && stored;
  }
  return stored;
}

bool HeldView::await(const SeenFile& seen) const {
  const HeldTable::ServerRow& server = table_.load(std::memory_order_acquire)->servers[seen.owner - 1];
  const Time began = node_now();
  Time alive = began;  // when the server last showed that it runs
  Time looked = began;
  std::uint64_t beats = server.beats.load(std::memory_order_relaxed);
  bool wanted = false;
  for (Duration next = first_pause; !seen.is_stored(); next = std::min(next * 2, longest_pause)) {
    pause(next);
    const Time now = node_now();
    if (!wanted && now - began >= want_after) {
      want(seen);
      wanted = true;
    }
    if (const std::uint64_t latest = server.beats.load(std::memory_order_relaxed); latest != beats) {
      beats = latest;
      alive = now;
    }
    if (now - alive > most_silence || now - began > most_wait) return false;
    if (now - looked < look_after) continue;
    if (bury(seen.owner)) return true;
    looked = now;
  }
  return true;
}

// Marks what this process waits for. Its own mapping cannot be written, so that the program cannot damage the table. If
// the entry has another file by now, the server stores that early, which does no harm.
void HeldView::want(const SeenFile& seen) const {
  const int descriptor = open(path_.data(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return;
  if (HeldTable* table = map_held_table(descriptor, true)) {
    auto& wanted = table->files[static_cast<std::size_t>(seen.entry - table_.load()->files.data())].wanted;
    std::uint64_t before = wanted.load(std::memory_order_relaxed);
    while (before < seen.ticket && !wanted.compare_exchange_weak(before, seen.ticket, std::memory_order_release)) {
    }
    munmap(table, sizeof *table);
  }
  close(descriptor);
}

// Frees the entries of a server that has ended without doing so. Returns false if it runs.
bool HeldView::bury(std::uint32_t owner) const {
  const int descriptor = open(path_.data(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool ended = lock_held_row(descriptor, owner - 1);
  if (ended) {
    if (HeldTable* table = map_held_table(descriptor, true)) {
      table->clear(owner - 1);
      munmap(table, sizeof *table);
    }
  }
  close(descriptor);
  return ended;
}

}  // namespace hocket::transport
