// Lets the processes of a step meet: each waits, asleep and within a time limit, until all have come, and they sum up
// what each of them knows. Unlike a collective function of MPI, it notices if processes have come from different
// places, and one that does not come does not block the others for ever.
//
// The messages go over a communicator of libhocket's own, along a binomial tree. After a failure this process meets no
// other one any more, so that it waits once at most. One thread at a time may use it.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "base/time.hpp"

namespace hocket::runtime {

// What the processes find out together.
struct Meeting {
  std::int64_t bytes = 0;  // moved, the sum
  bool stops = false;      // in one of them at least
};

// The result of a meeting. `unlike`: some processes have come from another place. `missing`: some have not come in
// time. `apart`: an earlier meeting has failed.
enum class Met { all, unlike, missing, apart };

// The processes of a communicator with which this one exchanges messages.
class MeetingPoint {
 public:
  MeetingPoint() = default;
  // Local. `comm` is an intracommunicator.
  explicit MeetingPoint(MPI_Comm comm);
  // Collective over the communicator. `place` stands for the calling function and level, which must be the same in all
  // processes. `known` becomes what all know if the result is `all`, and stays as it is otherwise.
  Met meet(std::int64_t place, Meeting& known, Duration limit) const;

 private:
  struct Knowledge;
  bool gather(Knowledge& known, Time until) const;

  MPI_Comm comm_{};
  std::int64_t size_ = 1;
  bool of_world_ = true;       // all processes belong to this MPI_COMM_WORLD
  int parent_ = -1;            // rank in MPI_COMM_WORLD; -1: this process is the root
  std::vector<int> children_;  // ranks in MPI_COMM_WORLD
};

// Makes the communicator for the messages. Collective over MPI_COMM_WORLD.
void open_meetings();

}  // namespace hocket::runtime
