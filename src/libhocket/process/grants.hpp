// The grants of accesses that one process requests for all ranks of a file: the request, pauses in the middle of the
// access, and throttling to a share of the target's bandwidth.
//
// Thread-safe: each function concerns the access of the calling thread. They are called while `hot.is_active()`.
#pragma once

#include <cstdint>
#include <string>

#include "event/event.hpp"
#include "process/hot.hpp"
#include "session/session.hpp"

namespace hocket::runtime::grants {

// Sends START_IO and waits for the grant, in rank 0 of the file's communicator. Returns none if the access is to run
// uncoordinated.
RequestId ask(event::StartIo start, RequestPurpose use) noexcept;
// Sends FINISH_IO. Each of the file's `processes` is assumed to have moved as many bytes as this one, unless
// `progress` has reported more. `in_one_call`: the time of the access shows how fast the target is.
void finish(event::FinishIo finish, const std::string& target, int processes, bool in_one_call) noexcept;

// Accesses of the MPI library that ended after PAUSE_IO, because they have no place to stop, and the time that others
// waited for their ends.
struct Unstopped {
  std::int64_t accesses = 0;
  Duration others_waited{};
};
// Returns those of this process so far.
Unstopped unstopped() noexcept;

// Returns the bytes that this process has reported by `finish` so far. A step that encloses such accesses does not
// report them again.
std::int64_t reported_bytes() noexcept;

// Returns Session::changes(). For a process that has sent a request.
std::uint64_t changes() noexcept;
// Answers PAUSE_IO for this thread's access and blocks, within the time limits, until it may continue. Precondition:
// the access has stopped after `round` (-1: between two accesses) in all processes, which have moved `bytes` and hold
// no lock of the file system. The time counts as `waited`. For the process that sent the request; returns false at
// once if nothing of this thread is to pause.
bool pause(std::int64_t bytes, std::int64_t round) noexcept;
// Counts time that this thread waited for a grant in the middle of an access, as waiting instead of I/O.
void waited(Duration wait) noexcept;
// Returns the time that this thread has `waited` since the last call.
Duration take_waited() noexcept;

// Sets the bytes that all processes have moved in this thread's access so far. For the process that sent the request.
void progress(std::int64_t bytes) noexcept;
// Notes that hocket has done this thread's access, not the MPI library. It could stop between two rounds.
void done_by_hocket() noexcept;
// Notes that the data of this thread's access begin to move, in rounds.
void begins_to_move() noexcept;
// Returns true if this thread's access, which moves data in rounds, has less than all of the target's bandwidth. Two
// loads while nothing changes.
bool has_share() noexcept;
// Returns true if all processes, having moved `bytes`, are so far ahead of that share that they should stop.
bool ahead_of_share(std::int64_t bytes) noexcept;
// Blocks, with all processes stopped, until they are no longer ahead, have another share, or are to pause. The time
// counts as `waited`.
void fall_back_to_share(std::int64_t bytes) noexcept;

}  // namespace hocket::runtime::grants
