// The open files of this process of which I/O servers may hold what was put, before the file system has it. The library
// that watches a program makes servers store it before other accesses of such a file. Thread-safe.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <mutex>
#include <vector>

#include "base/function_ref.hpp"
#include "io_client/waiting.hpp"

namespace hocket::api {

// A file of which servers may hold puts.
class HeldPut {
 public:
  virtual ~HeldPut() = default;
  // Makes the servers store what they hold, unless another thread uses the file at this moment. Returns true if they
  // hold nothing any more. Errors of storing are kept for the next flush or close.
  virtual bool store_held(io_client::WaitStrategy& how) = 0;
};

// The list of them. It is never destroyed, so threads may use it while the program ends.
class HeldPuts {
 public:
  // Adds or removes a file, and calls `changed`. After `remove`, no thread uses the file through this list. The caller
  // may use the file meanwhile, because `store_held` does not wait for it.
  void add(HeldPut& file, const struct stat& identity);
  void remove(HeldPut& file);

  // Calls `see` with the identity of each file.
  void for_each(FunctionRef<void(const struct stat&)> see);
  // Stores the files that `wanted` chooses. Files that servers hold nothing of any more leave the list.
  void store(FunctionRef<bool(const struct stat&)> wanted, io_client::WaitStrategy& how);

  // The watching library's function that is called after each change, without a lock. Null if there is no such library.
  std::atomic<void (*)()> changed = nullptr;

 private:
  struct Entry {
    HeldPut* file;
    struct stat identity;
  };
  void tell() const;

  std::mutex mutex_;  // also held while files are stored
  std::vector<Entry> entries_;
};
HeldPuts& held_puts();

}  // namespace hocket::api
