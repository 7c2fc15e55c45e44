#include "forward/collected_writes.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

namespace hocket::forward {

CollectedWrites::CollectedWrites(std::shared_ptr<ClientSegment> segment, Fd file, FileKey key)
    : segment_(std::move(segment)),
      head_(*reinterpret_cast<forward_collected*>(segment_->memory() + forward_collected_at)),
      key_(key),
      file_(std::move(file)) {}

// A client that claims more than there is room for gets no more written than that.
std::uint64_t CollectedWrites::filled() const {
  const std::uint64_t filled = std::atomic_ref(head_.filled).load(std::memory_order_acquire) & ~forward_closed;
  return std::min<std::uint64_t>(filled, forward_collected_bytes);
}

CollectedWrites::Pending CollectedWrites::pending() const {
  const std::lock_guard lock(mutex_);
  if (!file_) return {};
  const std::uint64_t end = filled();
  if (end <= stored_) return {};  // nobody may look at the place then, because the client may be setting it
  return {head_.offset + static_cast<std::int64_t>(stored_), static_cast<std::int64_t>(end - stored_)};
}

// After the descriptor was given back, the segment may belong to the client's next writes.
std::int64_t CollectedWrites::store_locked() {
  if (!file_) return 0;
  const std::uint64_t end = filled();
  std::int64_t written = 0;
  while (stored_ < end) {
    const ssize_t some = pwrite(file_.get(), segment_->memory() + stored_, end - stored_,
                                head_.offset + static_cast<std::int64_t>(stored_));
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) {
      std::atomic_ref(head_.error).store(static_cast<std::uint32_t>(some < 0 ? errno : EIO));
      stored_ = end;
      break;
    }
    stored_ += static_cast<std::uint64_t>(some);
    written += some;
  }
  std::atomic_ref(head_.stored).store(stored_, std::memory_order_release);
  return written;
}

std::int64_t CollectedWrites::store() {
  const std::lock_guard lock(mutex_);
  return store_locked();
}

std::int64_t CollectedWrites::store_all() {
  const std::lock_guard lock(mutex_);
  const std::int64_t written = store_locked();
  if (!file_) return written;
  stored_ = 0;
  seen_ = never;
  std::atomic_ref(head_.stored).store(0);
  std::atomic_ref(head_.filled).store(0);
  return written;
}

void CollectedWrites::give_back() {
  const int error = file_.close_now();
  if (error != 0) std::atomic_ref(head_.error).store(static_cast<std::uint32_t>(error));
  std::atomic_ref(head_.stored).store(stored_ | forward_closed, std::memory_order_release);
}

bool CollectedWrites::try_to_close() {
  std::uint64_t expected = std::atomic_ref(head_.filled).load();
  if (std::min<std::uint64_t>(expected, forward_collected_bytes) != stored_) return false;
  if (!std::atomic_ref(head_.filled).compare_exchange_strong(expected, expected | forward_closed)) return false;
  give_back();
  return true;
}

std::int64_t CollectedWrites::close() {
  const std::lock_guard lock(mutex_);
  constexpr int attempts = 1000;  // a client that goes on writing while it is closed can be served no better
  std::int64_t written = 0;
  for (int i = 0; file_ && i < attempts; ++i) {
    written += store_locked();
    if (try_to_close()) return written;
  }
  if (file_) give_back();
  return written;
}

std::int64_t CollectedWrites::look() {
  const std::lock_guard lock(mutex_);
  const bool is_idle = stored_ == seen_ && filled() == stored_;
  if (file_ && is_idle && try_to_close()) return 0;
  const std::int64_t written = store_locked();
  seen_ = stored_;
  return written;
}

bool CollectedWrites::is_closed() const {
  const std::lock_guard lock(mutex_);
  return !file_;
}

}  // namespace hocket::forward
