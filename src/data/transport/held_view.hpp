// What a process sees of the files that I/O servers of its node hold (held_table.hpp). All functions but attach() are
// async-signal-safe: they allocate nothing and take no lock.
#pragma once

#include <array>
#include <atomic>
#include <climits>
#include <cstdint>
#include <string>

#include "base/function_ref.hpp"
#include "base/time.hpp"
#include "transport/held_table.hpp"

namespace hocket::transport {

class HeldView {
 public:
  // How long a process waits for a server that shows no life, and at all. Clients of servers wait as long.
  static constexpr Duration most_silence = std::chrono::seconds{30};
  static constexpr Duration most_wait = std::chrono::minutes{10};

  // Maps the table of the runtime directory, and makes it if it is not there, because a server may come later. Without
  // that directory nothing is seen. Called once, before other threads use the object.
  void attach(const std::string& runtime_directory);

  // True if some server of this node holds writes.
  bool any() const {
    const HeldTable* table = table_.load(std::memory_order_acquire);
    return table != nullptr && table->holding.load(std::memory_order_acquire) != 0;
  }
  // Waits until the file system has all writes of the file that a server had acknowledged before the call, or until the
  // servers that held them have ended. Returns false if it gave up. Servers whose name's hash `may_hold` accepts are
  // left out.
  bool await(FileKey file, FunctionRef<bool(std::uint64_t)> may_hold) const;
  bool await(FileKey file) const {
    return await(file, [](std::uint64_t) { return false; });
  }

 private:
  // An entry as it was when the file was looked up.
  struct SeenFile {
    const HeldTable::HeldFile* entry;
    FileKey key;
    std::uint64_t claim;
    std::uint64_t ticket;
    std::uint32_t owner;
    bool is_stored() const;
  };
  bool await(const SeenFile& seen) const;
  void want(const SeenFile& seen) const;
  bool bury(std::uint32_t owner) const;

  std::atomic<const HeldTable*> table_ = nullptr;
  std::array<char, PATH_MAX> path_{};
};

}  // namespace hocket::transport
