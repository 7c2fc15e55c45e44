#include "api/held_puts.hpp"

#include <algorithm>

namespace hocket::api {

void HeldPuts::tell() const {
  if (auto* const call = changed.load(std::memory_order_acquire)) call();
}

void HeldPuts::add(HeldPut& file, const struct stat& identity) {
  {
    const std::lock_guard lock(mutex_);
    entries_.push_back({&file, identity});
  }
  tell();
}

void HeldPuts::remove(HeldPut& file) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(entries_, [&](const Entry& entry) { return entry.file == &file; });
  }
  tell();
}

void HeldPuts::for_each(FunctionRef<void(const struct stat&)> see) {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) see(entry.identity);
}

void HeldPuts::store(FunctionRef<bool(const struct stat&)> wanted, io_client::WaitStrategy& how) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const Entry& entry) { return wanted(entry.identity) && entry.file->store_held(how); });
}

HeldPuts& held_puts() {
  static HeldPuts& puts = *new HeldPuts;
  return puts;
}

}  // namespace hocket::api
