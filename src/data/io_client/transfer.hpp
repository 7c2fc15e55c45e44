// One access of this process through several I/O servers. Up to three chunks for each server are in flight: a server
// writes one while others are on their way. Data go through memory shared with a server of this node, else straight
// from and to the caller's memory if it is one run, else through a copy.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "base/function_ref.hpp"
#include "io_client/local.hpp"
#include "io_client/waiting.hpp"
#include "layout/stripes.hpp"

namespace hocket::io_client {

// A part of an access; `server` is the index of its file.
using Chunk = layout::StripeChunk;
// Returns the next chunk; no value at the end.
using NextChunk = FunctionRef<std::optional<Chunk>()>;

// May hold an access between two rounds. Its rounds are counted from 0 among those in which this process has data.
class RoundGate {
 public:
  virtual ~RoundGate() = default;

  virtual bool may_begin(std::int64_t round) const = 0;
  virtual void begins(std::int64_t round) = 0;
  // Reports bytes that a server has written or read since the last call.
  virtual void stored(std::int64_t bytes) = 0;
  // Receives messages; called in each step, before speak(). Returns true if it made progress. `idle` is true if it
  // should look for them in any case.
  virtual bool hear(bool idle) = 0;
  // Sends the messages that are due. `held` is the next round if it must not begin and nothing is in flight; `ended` is
  // true if no round is left and nothing is in flight. Returns true if it made progress.
  virtual bool speak(std::optional<std::int64_t> held, bool ended) = 0;
  // True if no further message is to be sent or received.
  virtual bool own_part_done() const = 0;
  virtual bool awaits_messages() const = 0;
  // True if no message comes any more: the access begins nothing further.
  virtual bool failed() const = 0;
};

// The way in which a server learns where the data of an access are (CLARISSE, section III-A): it keeps views, and
// forgets lists of offsets and lengths. `automatic` takes what is shorter for this access. A view that is too long for
// a server (ServerLink::most_view_bytes) is never sent.
enum class Method : std::int64_t { automatic, view, list };

// Conditions of a transfer.
struct Terms {
  std::string_view serialised{};  // the view (layout::append); not needed if it is contiguous
  Method method = Method::automatic;
  std::uint64_t operation = 0;  // number common to all participants; 0: not collective
  int participants = 0;         // processes that take part in the operation
  RoundGate* gate = nullptr;    // nullptr: nothing holds the access
};

// Result of a transfer.
struct Transferred {
  // A server was lost: the caller repeats the access without it, or fails. The other results say nothing then.
  bool lost = false;
  int error = 0;  // the first errno; 0: none
  // Bytes of data that are there, from the first on. If a read reaches the end of the file, they are fewer than wanted.
  std::int64_t there = 0;
  // True if a read found data behind a missing part: the file has grown meanwhile, or a server writes behind.
  bool gap = false;
};

// Performs an access through the servers that have the file open. If all chunks have been requested and the access is
// collective, this tells all servers that this process sends nothing more for the operation. The caller's memory is not
// used after this has returned or thrown, which happens only for lack of memory.
Transferred transfer(std::span<ServedFile> files, const Local& local, NextChunk next, const Terms& terms,
                     WaitStrategy&& how);

}  // namespace hocket::io_client
