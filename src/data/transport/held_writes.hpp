// A server's side of the table of held files (held_table.hpp). One thread uses an object; nothing throws but lack of
// memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "transport/held_table.hpp"

namespace hocket::transport {

class HeldWrites {
 public:
  // Takes a row of the table in the runtime directory. Fails if there is none, or if the table cannot be used.
  static Result<std::unique_ptr<HeldWrites>> in(const std::string& runtime_directory, std::string_view server);
  ~HeldWrites();
  HeldWrites(const HeldWrites&) = delete;
  HeldWrites& operator=(const HeldWrites&) = delete;

  // Enters a file, of which the write `ticket` is to be acknowledged. Returns nullptr if its bucket is full: then the
  // write must not be acknowledged before it has been stored.
  HeldTable::HeldFile* enter(FileKey file, std::uint64_t ticket);
  // Notes that one more write of an entered file is to be acknowledged.
  static void acknowledge(HeldTable::HeldFile& file, std::uint64_t ticket) {
    file.acknowledged.store(ticket, std::memory_order_release);
  }
  // Notes that all requests of the file up to this ticket have been carried out.
  static void settle(HeldTable::HeldFile& file, std::uint64_t ticket) {
    file.settled.store(ticket, std::memory_order_release);
  }
  // True if a process waits for what is held of the file.
  static bool is_wanted(const HeldTable::HeldFile& file) {
    return file.wanted.load(std::memory_order_acquire) > file.settled.load(std::memory_order_relaxed);
  }
  // Removes a file, of which nothing is held any more.
  void leave(HeldTable::HeldFile& file);

  // Shows that the server runs.
  void beat() { table_->servers[row_].beats.fetch_add(1, std::memory_order_relaxed); }

 private:
  HeldWrites(Fd descriptor, HeldTable* table, std::size_t row)
      : descriptor_(std::move(descriptor)), table_(table), row_(row) {}

  Fd descriptor_;  // has the row's lock
  HeldTable* table_;
  std::size_t row_;
  std::size_t entered_ = 0;  // files of this server that are in the table
};

}  // namespace hocket::transport
