// Coordinates the independent accesses of one process. Accesses of one target that follow each other within a gap are a
// burst, and one grant covers the burst. The first access sends the request. If hocketd preempts the burst, it pauses
// between two accesses. The burst ends when no access has come for the gap.
//
// Thread-safe. An access within a burst takes two uncontended locks; it makes no system call and allocates nothing.
#pragma once

#include <condition_variable>
#include <list>
#include <mutex>
#include <string>

#include "base/function_ref.hpp"
#include "event/event.hpp"
#include "runtime/member.hpp"
#include "runtime/pace.hpp"

namespace hocket::runtime {

class Bursts {
 public:
  // `member` must outlive this object. `gap` is the idle time after which a burst is over.
  Bursts(Member& member, Duration gap) : member_(member), gap_(gap) {}

  struct Burst;
  // Returns the record of the target's bursts, which lives as long as this object. Linear in the number of targets.
  Burst& of(const std::string& target);

  // Fills in a START_IO before it is sent. It runs under the lock of this object, so it must not call this object.
  using Describe = FunctionRef<void(event::StartIo&)>;
  struct Begun {
    Burst* burst;  // argument for `end`
    bool waited;   // the call may have blocked
    bool granted;  // false: the access runs uncoordinated
  };
  // Begins an access. It may send a request or pause, and then blocks until the grant comes, within the time limits of
  // `member`. `in_one_call` is true if the access ends before this thread does anything else.
  Begun begin(Burst& burst, bool in_one_call, Describe describe);
  // Ends an access that took `io` and moved `bytes`. `in_one_call` must be the value that `begin` got. Only the time of
  // such an access shows how fast the target is.
  void end(Burst& burst, Time now, Duration io, std::int64_t bytes, bool in_one_call);

  // Ends all idle bursts now, because no access follows soon. `phase_over` ends the I/O phase and its idle hold too.
  void finish(bool phase_over);

  // Pauses and ends bursts between their accesses, and returns the time of the next call. The lease thread calls it.
  Time due(Time now);

 private:
  // Functions with a `lock` parameter need that lock held. Those that block release it meanwhile.
  bool may_begin(std::unique_lock<std::mutex>& lock, Burst& burst, Describe describe);
  bool gather(std::unique_lock<std::mutex>& lock, Burst& burst);
  bool look(std::unique_lock<std::mutex>& lock, Burst& burst);
  const Member::Share& share(Burst& burst);
  bool keep_pace(std::unique_lock<std::mutex>& lock, const Burst& burst);
  void ask(std::unique_lock<std::mutex>& lock, Burst& burst, event::StartIo start);
  void finish(Burst& burst, bool phase_over);

  Member& member_;
  const Duration gap_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Burst> bursts_;  // one a target
};

// The bursts of one target, one after the other. The lock of `Bursts` guards all members.
struct Bursts::Burst {
  std::string target;
  RequestId request;       // none: no burst is granted
  std::uint64_t seen = 0;  // Member::changes() when the standing of the request was last checked
  bool asking = false;     // a thread waits for hocketd, without the lock
  int running = 0;         // accesses under way
  int open = 0;            // running accesses not in one call; the calling thread itself may have to end them
  Member::Share share{1, true};
  std::uint64_t share_seen = 0;  // Member::changes() when `share` was last read
  Pace pace;
  Time since{};            // end of the burst's first access
  Time last{};             // end of the burst's latest access
  Duration io{};           // I/O time of the burst's accesses
  std::int64_t bytes = 0;  // bytes moved by the burst's accesses
};

}  // namespace hocket::runtime
