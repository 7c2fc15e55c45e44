// Lets the library that watches a program coordinate its put and get as it does other I/O. Without that library, the
// process requests grants itself (own_turn.hpp). Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace hocket::api {

// Functions of the watching library. They may block within the time limits of its waits, and do not fail.
struct AccessTurns {
  // Begins an access of the file of this descriptor, when it is this application's turn. Returns false if the access is
  // not coordinated; otherwise this thread must call `end` next. `routine` is a string literal.
  bool (*begin)(bool writes, const char* routine, int file, std::int64_t bytes);
  // The same for storing what was written before.
  bool (*begin_sync)(const char* routine, int file);
  // `moved`: bytes; 0 if the access failed.
  void (*end)(std::int64_t moved);
  // Returns for whom I/O servers ask for turns before they store what is put to the file (event/applicant.hpp). May
  // throw std::bad_alloc.
  std::string (*applicant)(int file);
};
inline constinit std::atomic<const AccessTurns*> access_turns = nullptr;
// How the data of a put or get move.
enum class AccessPath {
  servers,           // through I/O servers
  servers_together,  // the same, in a call that all processes of a group make
  process,           // by this process, which a watching library sees anyway
};
const AccessTurns* own_turns(AccessPath path) noexcept;  // own_turn.hpp
// Returns the turns for such an access; nullptr: it is not coordinated.
inline const AccessTurns* turns_for(AccessPath path) noexcept {
  const AccessTurns* const watching = access_turns.load(std::memory_order_acquire);
  if (watching == nullptr) return own_turns(path);
  return path == AccessPath::process ? nullptr : watching;
}

// One access between its beginning and its end.
class AccessTurn {
 public:
  AccessTurn(bool writes, int file, std::int64_t bytes, AccessPath path) : turns_(turns_for(path)) {
    const char* const routine = writes ? "hocket_file_put" : "hocket_file_get";
    if (turns_ != nullptr && !turns_->begin(writes, routine, file, bytes)) turns_ = nullptr;
  }
  // This one is of a call that stores what was put before.
  AccessTurn(const char* routine, int file) : turns_(turns_for(AccessPath::servers)) {
    if (turns_ != nullptr && !turns_->begin_sync(routine, file)) turns_ = nullptr;
  }
  ~AccessTurn() {
    if (turns_ != nullptr) turns_->end(moved_);
  }
  AccessTurn(const AccessTurn&) = delete;
  AccessTurn& operator=(const AccessTurn&) = delete;

  void moved(std::int64_t bytes) { moved_ = bytes; }

 private:
  const AccessTurns* turns_;
  std::int64_t moved_ = 0;
};

}  // namespace hocket::api
