// The few MPI functions that libhocket itself uses, as it uses them.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/mpi/pmpi.hpp"
#include "runtime/spent.hpp"

namespace hocket::runtime::mpi {

#ifdef OPEN_MPI
inline constexpr const char* name = "openmpi";
#else
inline constexpr const char* name = "mpich";
#endif

// How to wait for others who may need this core: each pause yields at first, then sleeps, longer from time to time.
class Patience {
 public:
  // For words from others.
  Patience() = default;
  // For data that need both ends' polling to flow.
  static Patience for_data() { return {50'000, 64}; }

  void pause();

 private:
  Patience(long longest_sleep_ns, int yields_between)
      : longest_sleep_ns_(longest_sleep_ns), yields_between_(yields_between) {}

  long longest_sleep_ns_ = 1'000'000;
  int yields_between_ = 0;  // two sleeps
  long sleep_ns_ = 20'000;
  int yields_left_ = 50;
};

// The MPI's words for an error code.
std::string error_text(int code);

// Waits for the request. False: the MPI says that it failed.
bool wait_asleep(MPI_Request request, Patience patience = {});

int rank_in(MPI_Comm comm);
int size_of(MPI_Comm comm);
// Whether several threads may call MPI at once.
bool has_threads();
// Whether MPI_Comm_spawn started this world.
bool is_spawned();

// A communicator of ours over the processes of `comm`, whose errors are returned. Collective. None if that fails.
MPI_Comm duplicate(MPI_Comm comm);
void free(MPI_Comm& comm);

bool is_inter(MPI_Comm comm);

// All of them get rank 0's value. Collective. Those who wait sleep: rank 0 may wait long, and others want the cores.
int agree(MPI_Comm comm, int value);
// Word to rank 0, sent without waiting for anything; and rank 0 waits, asleep, until it has received as many as it
// owes, from whichever ranks, counting down. Each must be received before the communicator is freed: MPICH takes a
// message that nobody received for an error.
void tell_root(MPI_Comm comm);
// The same with what this process has spent; without, where the word before, of whichever communicator, is still under
// way or another thread sends one.
void tell_root(MPI_Comm comm, const Spent& spent);
// What may still be under way of that is not needed any more: before MPI ends.
void forget_told();
void tell(MPI_Comm comm, int rank, int tag);
void await_word(MPI_Comm comm, int rank, int tag);
// Gives what the words say that were sent with something.
SpentByAll receive_words(MPI_Comm comm, std::int64_t& owed);
// Lets what was sent go on its way: a small message has left its call before it has left the process, and MPI moves it
// only while it is called. Costs about a microsecond.
void push(MPI_Comm comm);

// Returns when all have called it; who waits sleeps.
void meet(MPI_Comm comm);
// All of them get the bytes of `root`. Collective; who waits sleeps. False: the MPI says that it failed.
bool broadcast(MPI_Comm comm, int root, void* data, std::int64_t bytes);
// All of them get the largest (smallest) of each value. Collective; who waits sleeps. False: the MPI failed.
bool largest(MPI_Comm comm, std::span<std::int64_t> values);
bool smallest(MPI_Comm comm, std::span<std::int64_t> values);
// All of them get the values of each, as many, in the order of ranks. Collective; who waits, for data, sleeps. False:
// the MPI failed.
bool gather_all(MPI_Comm comm, std::span<const std::int64_t> own, std::int64_t* all);
// Sums over all processes, in rank 0. Collective; waits as `agree` does.
void sum(MPI_Comm comm, std::span<std::int64_t> values);
void sum(MPI_Comm comm, std::span<double> values);
// The largest of all processes, in rank 0; as `sum`.
void most(MPI_Comm comm, std::span<std::int64_t> values);

// Bytes of `count` elements of the type.
std::int64_t bytes_of(MPI_Count count, MPI_Datatype type);
// Bytes that the data access of this status has moved. Read from the fields in which each MPI's mpi.h has kept them
// since its binary interface was fixed: MPI_Get_elements_x takes longer than all the rest that we do for an access.
inline std::int64_t bytes_in(const MPI_Status& status) {
#ifdef OPEN_MPI
  return static_cast<std::int64_t>(status._ucount);
#else
  const auto high = static_cast<std::uint32_t>(status.count_hi_and_cancelled) >> 1;  // the lowest bit: cancelled
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(high) << 32 |
                                   static_cast<std::uint32_t>(status.count_lo));
#endif
}

// The hint's value; "" where the info does not have it.
std::string hint(MPI_Info info, const char* key);
// All its keys and values.
std::vector<std::pair<std::string, std::string>> pairs(MPI_Info info);
// The number that a hint gives, `most` where it gives more; `otherwise` where it gives none, or less than `least`.
std::int64_t number_hint(MPI_Info info, const char* key, std::int64_t otherwise, std::int64_t least, std::int64_t most);

}  // namespace hocket::runtime::mpi
