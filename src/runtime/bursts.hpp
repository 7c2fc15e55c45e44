// Independent accesses of one process: those of one target that follow each other within a gap are a burst, and one
// grant covers it. The first access asks; between two of them the burst pauses, where hocketd wants it; it is over when
// nothing has come for the gap.
//
// Thread-safe. An access within a burst costs two locks that nobody holds, and neither a system call nor memory.
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
  // `gap`: after which a burst is over.
  Bursts(Member& member, Duration gap) : member_(member), gap_(gap) {}

  struct Burst;
  // That of the target; it is there as long as this is.
  Burst& of(const std::string& target);

  using Describe = FunctionRef<void(event::StartIo&)>;
  struct Begun {
    Burst* burst;  // for `end`
    bool waited;   // it may have taken long
    bool granted;  // false: uncoordinated
  };
  // An access begins: may ask, or pause, and wait for a grant, within the bounds of `member`. `describe` completes what
  // is asked for then. `in_one_call`: it ends before this thread does anything else.
  Begun begin(Burst& burst, bool in_one_call, Describe describe);
  // `in_one_call`, as it began: its time tells how fast the target is.
  void end(Burst& burst, Time now, Duration io, std::int64_t bytes, bool in_one_call);

  // No access follows soon: bursts end now. `phase_over`: the I/O phase, too.
  void finish(bool phase_over);

  // Called by the thread that renews leases: pauses and ends bursts between their accesses.
  Time due(Time now);

 private:
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

struct Bursts::Burst {
  std::string target;
  RequestId request;
  std::uint64_t seen = 0;  // changes of the member that are known
  bool asking = false;     // a thread waits for hocketd, without the lock
  int running = 0;         // accesses
  int open = 0;            // of these, not in one call: this very thread may have to end them
  Member::Share share{1, true};
  std::uint64_t share_seen = 0;  // changes of the member up to which the share is known
  Pace pace;
  Time since{};  // when the first one ended
  Time last{};   // when one ended
  Duration io{};
  std::int64_t bytes = 0;
};

}  // namespace hocket::runtime
