// The few MPI functions that libhocket itself calls, in the form in which it needs them.
//
// Waits poll with MPI_Test and sleep between two polls, so a waiting rank leaves its core to others. Each function
// needs an initialised MPI and a thread that may call MPI. "Collective" means that all processes of `comm` must call.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "mpi_shim/pmpi.hpp"
#include "mpi_shim/spent.hpp"

namespace hocket::runtime::mpi {

#ifdef OPEN_MPI
inline constexpr const char* name = "openmpi";
#else
inline constexpr const char* name = "mpich";
#endif

// The back-off of a polling wait, since other processes may need this core. A pause yields 50 times at first. Then it
// sleeps, from 20 µs on and twice as long each time, up to a maximum.
class Patience {
 public:
  // The back-off for small messages: it sleeps at most 1 ms.
  Patience() = default;
  // The back-off for data, which flow only while both ends poll: at most 50 µs, and 64 yields between two sleeps.
  static Patience for_data() { return {50'000, 64}; }
  // The back-off of a process that the application may not need for hours: it sleeps at most 20 ms.
  static Patience for_hours() { return {20'000'000, 0}; }

  void pause();

 private:
  Patience(long longest_sleep_ns, int yields_between)
      : longest_sleep_ns_(longest_sleep_ns), yields_between_(yields_between) {}

  long longest_sleep_ns_ = 1'000'000;
  int yields_between_ = 0;  // between two sleeps
  long sleep_ns_ = 20'000;
  int yields_left_ = 50;
};

// Returns the MPI library's text for an error code.
std::string error_text(int code);

// Waits for the request, asleep. Returns false if MPI reports a failure, or if the request is not complete by `until`.
bool wait_asleep(MPI_Request request, Patience patience = {}, Time until = Time::max());

// Begins to receive a message of this tag from any rank, if one has arrived; otherwise `request` becomes none. Returns
// false if MPI fails. Only one thread at a time may receive this tag on `comm`.
//
// All messages from any rank are received in this way: MPICH 5.0.2 loses messages between nodes whose receive names
// MPI_ANY_SOURCE. So a probe finds the sender, and the receive names it.
bool receive_from_any(MPI_Comm comm, int tag, std::span<std::byte> memory, MPI_Request& request);
// Receives such a message, asleep until it has come. Returns false if MPI fails.
bool await_from_any(MPI_Comm comm, int tag, std::span<std::byte> memory, Patience patience = {});

int rank_in(MPI_Comm comm);
int size_of(MPI_Comm comm);
// Returns the rank in MPI_COMM_WORLD of each process of `comm`; nothing if one belongs to another world. Local.
std::vector<int> ranks_in_world(MPI_Comm comm);
// Returns true if several threads may call MPI concurrently.
bool has_threads();
// Returns true if MPI_Comm_spawn started this world.
bool is_spawned();

// Returns a duplicate of `comm` whose errors are returned, or none on failure. The caller frees it. Collective.
MPI_Comm duplicate(MPI_Comm comm);
void free(MPI_Comm& comm);

bool is_inter(MPI_Comm comm);

// Returns rank 0's value, from 0 to 255, in all ranks. Collective. The other ranks sleep, because rank 0 may wait long
// for a grant.
int agree(MPI_Comm comm, int value);
// Sends an empty message to rank 0 without waiting. Rank 0 must receive it (`receive_words`) before it frees the
// communicator: MPICH treats a message that was never received as an error.
void tell_root(MPI_Comm comm);
// Sends `spent` to rank 0 in the same way. The message is empty if the previous one, on any communicator, is still
// under way or another thread sends one.
void tell_root(MPI_Comm comm, const Spent& spent);
// Releases the send of `tell_root` that may still be under way. Call it before MPI ends.
void forget_told();
// Sends an empty message to `rank` without waiting; `await_word` receives it, asleep.
void tell(MPI_Comm comm, int rank, int tag);
void await_word(MPI_Comm comm, int rank, int tag);
// Sends a copy of at most 64 bytes without waiting. One thread at a time may call it.
void send_copy(MPI_Comm comm, int rank, int tag, std::span<const std::byte> bytes);
// Receives a message of `rank`, asleep until it has come. Returns false if it has not come by `until`, or if MPI fails.
bool receive_within(MPI_Comm comm, int rank, int tag, std::span<std::byte> memory, Time until);
// Receives `owed` messages of `tell_root` from any ranks, asleep, and counts `owed` down. Returns the sum of those that
// were not empty. If MPI fails, it returns early.
SpentTotals receive_words(MPI_Comm comm, std::int64_t& owed);
// Lets sent messages make progress. A small message may still be in this process when its send has returned, and MPI
// moves it only inside calls. Costs about a microsecond.
void push(MPI_Comm comm);

// Blocks, asleep, until all processes have called it. Collective.
void meet(MPI_Comm comm);
// Broadcasts at most INT_MAX bytes from `root`; the other ranks sleep. Collective. Returns false if MPI fails.
bool broadcast(MPI_Comm comm, int root, void* data, std::int64_t bytes);
// Replaces each value by the largest (smallest) of all ranks. Collective; ranks that wait sleep. False: MPI has failed.
bool largest(MPI_Comm comm, std::span<std::int64_t> values);
bool smallest(MPI_Comm comm, std::span<std::int64_t> values);
// Replaces each value by its sum over all ranks, and waits for `limit` at most. After false, which also comes if not
// all ranks have called it by then, the ranks cannot know who has called what: call nothing collective on `comm` any
// more.
bool total_within(MPI_Comm comm, std::span<std::int64_t> values, Duration limit);
// Gathers the values of all ranks into `all`, in the order of ranks. Each rank gives equally many; `all` has room for
// those of all ranks. Collective; ranks that wait sleep, with the back-off for data. Returns false if MPI fails.
bool gather_all(MPI_Comm comm, std::span<const std::int64_t> own, std::int64_t* all);
// Sums at most 16 values over all ranks; rank 0 gets the sums. Collective; ranks that wait sleep.
void sum(MPI_Comm comm, std::span<std::int64_t> values);
void sum(MPI_Comm comm, std::span<double> values);
// Finds the largest of each value over all ranks, in the same way as `sum`.
void most(MPI_Comm comm, std::span<std::int64_t> values);

// Returns the bytes of `count` elements of the type, or 0 if MPI does not know.
std::int64_t bytes_of(MPI_Count count, MPI_Datatype type);
// Returns the bytes that the data access of this status has moved. It reads the fields in which each MPI's mpi.h has
// kept them since its binary interface was fixed. MPI_Get_elements_x would take longer than all other work of libhocket
// for an access.
inline std::int64_t bytes_in(const MPI_Status& status) {
#ifdef OPEN_MPI
  return static_cast<std::int64_t>(status._ucount);
#else
  const auto high = static_cast<std::uint32_t>(status.count_hi_and_cancelled) >> 1;  // the lowest bit: cancelled
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(high) << 32 |
                                   static_cast<std::uint32_t>(status.count_lo));
#endif
}

// Returns the hint's value; nothing, or "", if the info lacks it.
std::optional<std::string> find_hint(MPI_Info info, const char* key);
std::string hint(MPI_Info info, const char* key);
// Returns all keys and values of the info.
std::vector<std::pair<std::string, std::string>> pairs(MPI_Info info);
// Returns the hint as a number of at most `most`. Returns `otherwise` if the hint is no number or less than `least`.
std::int64_t number_hint(MPI_Info info, const char* key, std::int64_t otherwise, std::int64_t least, std::int64_t most);

}  // namespace hocket::runtime::mpi
