// Coordinates the independent accesses of one process. Accesses of one target that follow each other within a gap are a
// burst, and one grant covers the burst. The first access sends the request. If hocketd preempts the burst, it pauses
// between two accesses. The burst ends when no access has come for the gap.
//
// Thread-safe. An access within a burst takes two uncontended locks; it makes no system call and allocates nothing.
#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>
#include <string>

#include "base/function_ref.hpp"
#include "event/event.hpp"
#include "session/file_parts.hpp"
#include "session/pace.hpp"
#include "session/session.hpp"

namespace hocket::runtime {

class Bursts {
 public:
  // `session` must outlive this object. `gap` is the idle time after which a burst is over.
  Bursts(Session& session, Duration gap) : session_(session), gap_(gap) {}

  struct Burst;
  // Returns the record of the bursts on these parts of the target, which lives as long as this object. Linear in the
  // number of records. `file_system`: as in START_IO.
  Burst& of(const std::string& target, const FileParts& parts = {}, const std::string& file_system = {});

  // Fills in a START_IO before it is sent. It runs under the lock of this object, so it must not call this object.
  using Describe = FunctionRef<void(event::StartIo&)>;
  struct BurstAccess {
    Burst* burst;  // argument for `end`
    bool waited;   // the call may have blocked
    bool granted;  // false: the access runs uncoordinated
  };
  // Begins an access. It may send a request or pause, and then blocks until the grant comes, within the time limits of
  // `session`. `in_one_call` is true if the access ends before this thread does anything else.
  BurstAccess begin(Burst& burst, bool in_one_call, Describe describe);
  // Begins an access in one call, if it needs no request, no pause, and no wait. Otherwise returns nothing: call
  // `begin` from a thread that may block. It allocates nothing, and may run in a signal handler (bounded_lock.hpp).
  std::optional<BurstAccess> begin_at_once(Burst& burst);
  // Ends an access that took `io` and moved `bytes`. `in_one_call` must be the value that `begin` got. Only the time of
  // such an access shows how fast the target is.
  void end(Burst& burst, Time now, Duration io, std::int64_t bytes, bool in_one_call);

  // Ends an access in one call, as `end`, but may run in a signal handler. If another thread holds the lock for long,
  // the burst does not count the access's time and bytes.
  void end_at_once(Burst& burst, Time now, Duration io, std::int64_t bytes);
  // Takes back `begin_at_once` of an access that is not made.
  void take_back(Burst& burst);

  // Ends all idle bursts now, because no access follows soon. `phase_over` ends the I/O phase and its idle hold too.
  void finish(bool phase_over);

  // Pauses and ends bursts between their accesses, and returns the time of the next call. The lease thread calls it.
  Time due(Time now);

 private:
  // Functions with a `lock` parameter need that lock held. Those that block release it meanwhile.
  void has_ended(Burst& burst);
  static void count(Burst& burst, Time now, Duration io, std::int64_t bytes);
  static bool lasts_too_long(const Burst& burst);
  bool may_begin(std::unique_lock<std::mutex>& lock, Burst& burst, Describe describe);
  bool gather(std::unique_lock<std::mutex>& lock, Burst& burst);
  bool look(std::unique_lock<std::mutex>& lock, Burst& burst);
  const Session::RequestShare& share(Burst& burst);
  bool keep_pace(std::unique_lock<std::mutex>& lock, const Burst& burst);
  void ask(std::unique_lock<std::mutex>& lock, Burst& burst, event::StartIo start);
  void finish(Burst& burst, bool phase_over);

  Session& session_;
  const Duration gap_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Burst> bursts_;  // one a target and set of its parts
};

// The bursts of one target, one after the other. The lock of `Bursts` guards all members but `running`, which a thread
// may decrease without it.
struct Bursts::Burst {
  std::string target;
  FileParts parts;
  std::string file_system;
  RequestId request;             // none: no burst is granted
  std::uint64_t seen = 0;        // Session::changes() when the standing of the request was last checked
  bool asking = false;           // a thread waits for hocketd, without the lock
  std::atomic<int> running = 0;  // accesses under way
  int open = 0;                  // running accesses not in one call; the calling thread itself may have to end them
  Session::RequestShare share{1, true};
  std::uint64_t share_seen = 0;  // Session::changes() when `share` was last read
  AccessPace pace;
  Time since{};            // end of the burst's first access
  Time last{};             // end of the burst's latest access
  Duration io{};           // I/O time of the burst's accesses
  std::int64_t bytes = 0;  // bytes moved by the burst's accesses
};

}  // namespace hocket::runtime
