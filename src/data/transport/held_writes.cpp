#include "transport/held_writes.hpp"

#include <sys/mman.h>

#include <algorithm>

#include "base/fnv.hpp"

namespace hocket::transport {

Result<std::unique_ptr<HeldWrites>> HeldWrites::in(const std::string& runtime_directory, std::string_view server) {
  const std::string path = held_table_path(runtime_directory);
  Fd descriptor{open_held_table(path.c_str())};
  HeldTable* table = descriptor ? map_held_table(descriptor.get(), true) : nullptr;
  if (table == nullptr) return Error{"cannot use " + path + ": " + error_text(errno)};
  for (std::size_t row = 0; row < HeldTable::most_servers; ++row) {
    if (!lock_held_row(descriptor.get(), row)) continue;
    table->clear(row);  // the one before may have been killed
    table->servers[row].name.store(fnv1a(server), std::memory_order_relaxed);
    return std::unique_ptr<HeldWrites>(new HeldWrites{std::move(descriptor), table, row});
  }
  munmap(table, sizeof *table);
  return Error{path + " has no free row: at most " + std::to_string(HeldTable::most_servers) +
               " servers of a node write behind"};
}

HeldWrites::~HeldWrites() {
  table_->clear(row_);
  munmap(table_, sizeof *table_);
}

HeldTable::HeldFile* HeldWrites::enter(FileKey file, std::uint64_t ticket) {
  const std::size_t first = HeldTable::bucket_of(file);
  for (std::size_t i = first; i < first + HeldTable::bucket_files; ++i) {
    HeldTable::HeldFile& entry = table_->files[i];
    std::uint32_t free = 0;
    if (!entry.owner.compare_exchange_strong(free, static_cast<std::uint32_t>(row_ + 1))) continue;
    entry.acknowledged.store(ticket, std::memory_order_relaxed);
    entry.settled.store(ticket - 1, std::memory_order_relaxed);
    entry.wanted.store(0, std::memory_order_relaxed);
    entry.claim.store(table_->claims.fetch_add(1) + 1, std::memory_order_relaxed);
    entry.key.store(file, std::memory_order_release);
    if (entered_++ == 0) table_->holding.fetch_or(HeldTable::bit_of(row_), std::memory_order_release);
    return &entry;
  }
  return nullptr;
}

void HeldWrites::leave(HeldTable::HeldFile& file) {
  file.key.store(no_file, std::memory_order_release);
  file.owner.store(0, std::memory_order_release);
  if (--entered_ == 0) table_->holding.fetch_and(~HeldTable::bit_of(row_), std::memory_order_release);
}

}  // namespace hocket::transport
