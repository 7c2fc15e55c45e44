// New processes, from the start of each to one communicator with the sources, the union (Proteo, section 4.2, "Process
// management").
//
// A batch is what one MPI_Comm_spawn starts, one MPI world. Each leads to a communicator of its spawner(s) and the new
// processes, over which they are told to come into the union, or to go again. They come one batch after the other: the
// union so far and the batch make an intercommunicator through their leaders and merge it.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "runtime/malleable/methods.hpp"
#include "runtime/malleable/worlds.hpp"

namespace hocket::runtime {

// How this program was started, so that it can be started again.
struct Launch {
  std::string program;
  std::vector<std::string> arguments;
  std::string directory;
};
Launch launch_of_this_process();

struct Batch {
  int leader = 0;    // rank of the sources that speaks with it
  int count = 0;     // processes
  std::string node;  // where; "": anywhere
};

// The batches of `count` new processes. `nodes`: one for each process, or none at all.
std::vector<Batch> batches_of(const Methods& methods, int sources, int count, const std::vector<std::string>& nodes);

// Starts the batches; in every source. Its own thread, where the strategy is asynchronous.
class Start {
 public:
  // `over`: the sources. Collective. Where it is asynchronous, MPI must allow several threads. `own`: this process, as
  // it is told to those that it starts. `when_done`: called once, by who did this process's part, just before it is
  // `ready`.
  Start(MPI_Comm over, Launch launch, const Methods& methods, std::vector<Batch> batches, const ProcessInfo& own,
        std::function<void()> when_done);
  ~Start();
  Start(const Start&) = delete;
  Start& operator=(const Start&) = delete;

  // Whether this process has done its part. Always, where it is not asynchronous.
  bool ready() const { return ready_; }
  // Waits for the own part.
  void wait();

  // After `wait`: what came of the own batches, by number; no_comm() for those of others, and those that failed.
  std::vector<MPI_Comm>& started() { return started_; }
  const std::vector<Batch>& batches() const { return batches_; }
  // "" while nothing failed here.
  const std::string& failure() const { return failure_; }
  // Whether all sources are in the communicator of each batch, not its leader alone.
  bool together() const { return together_; }

 private:
  void run();
  void end_own_part();

  MPI_Comm comm_;  // of our own: of all sources, or of this process alone
  const Launch launch_;
  const std::vector<Batch> batches_;
  const ProcessInfo own_;
  const std::function<void()> when_done_;
  const bool together_;
  const int rank_;
  std::vector<MPI_Comm> started_;
  std::string failure_;
  std::atomic<bool> ready_ = false;
  std::thread thread_;
};

// Strategy join, on the side of the application: a port, and one connection.
Result<std::string> open_port();
void close_port(const std::string& port);
Result<MPI_Comm> accept_process(const std::string& port);

// On the side of the new process: a communicator in which the one that speaks with it is `leader`.
struct Met {
  MPI_Comm comm;
  int leader = 0;
};
// Into `spawner`: rank 0 of those that started this process.
Result<Met> meet_parent(ProcessInfo& spawner);
Result<Met> connect_to(const std::string& port);

// ---- into the union ----------------------------------------------------------------------------------------------

// What a new process is told by the one that speaks with it.
enum class Summons : std::int64_t { dismissed, is_union, bind };

bool summon(MPI_Comm met, int leader, Summons& summons);

// Those that are in the union so far, led by rank `leader`, who reaches the newcomers' leader as rank `remote` of `met`
// (its alone). Collective over `all`.
Result<MPI_Comm> bind_newcomers(MPI_Comm all, int leader, MPI_Comm met, int remote);
// The newcomers, over `own`, whose rank 0 reaches the leader as rank `remote` of `met`.
Result<MPI_Comm> bind_to_union(MPI_Comm own, MPI_Comm met, int remote);

}  // namespace hocket::runtime
