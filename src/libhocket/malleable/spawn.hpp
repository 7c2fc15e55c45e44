// Starts new processes and merges them with the source ranks into one communicator, the *merged communicator* (Proteo,
// section 4.2, "Process management").
//
// A batch is what one MPI_Comm_spawn starts: one MPI world. Each batch shares a communicator with its spawner(s), over
// which it is instructed to join the merged communicator, or to leave. Batches join one after the other: the ranks
// merged so far and the batch make an intercommunicator through their leaders, and merge it. Errors are texts of MPI
// errors.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "malleable/methods.hpp"
#include "malleable/worlds.hpp"

namespace hocket::runtime {

// Program, arguments and working directory of this process, to start it again.
struct Launch {
  std::string program;
  std::vector<std::string> arguments;
  std::string directory;
};
Launch launch_of_this_process();

// One MPI_Comm_spawn.
struct SpawnBatch {
  int leader = 0;                             // source rank that communicates with it
  int count = 0;                              // processes
  std::string node;                           // node to start on; "": anywhere
  Placement placement = Placement::anywhere;  // among the nodes that only the MPI knows, if it has no node
};

// Divides `count` new processes into batches. `nodes` has one entry for each process, or none at all.
std::vector<SpawnBatch> batches_of(const Methods& methods, int sources, int count,
                                   const std::vector<std::string>& nodes);

// Starts the batches; every source rank has one. Asynchronous strategies use a thread of its own. It stays until
// wait(), because MPI moves messages only inside calls: those that the new processes wait for must not stay behind here
// while the program computes.
class ProcessStart {
 public:
  // Begins the start. `over` holds the source ranks. Collective. An asynchronous strategy needs MPI_THREAD_MULTIPLE.
  // `own` identifies this process to those that it starts. `when_done` is called once, by the thread that did this
  // rank's part, just before ready() becomes true. If a rank can start nothing, all fail.
  ProcessStart(MPI_Comm over, Launch launch, const Methods& methods, std::vector<SpawnBatch> batches,
               const ProcessInfo& own, std::function<void()> when_done);
  ~ProcessStart();
  ProcessStart(const ProcessStart&) = delete;
  ProcessStart& operator=(const ProcessStart&) = delete;

  // True if this rank's part is done; always true for strategies that are not asynchronous.
  bool ready() const { return ready_; }
  // Blocks until this rank's part is done, and ends the thread.
  void wait();

  // Returns the communicator of each batch, by number. no_comm() for batches of other ranks, and for those that failed.
  // Call it after wait().
  std::vector<MPI_Comm>& started() { return started_; }
  const std::vector<SpawnBatch>& batches() const { return batches_; }
  // Returns the error of this rank's part; "" if there is none.
  const std::string& failure() const { return failure_; }
  // True if all source ranks are in each batch's communicator; else its leader alone is.
  bool together() const { return together_; }

 private:
  enum class Order { hold, start, drop };
  void prepare(int count, bool in_thread);
  void work();
  void run();
  void end_own_part();

  MPI_Comm comm_;  // private: of all source ranks, or of this process alone
  const Launch launch_;
  const std::vector<SpawnBatch> batches_;
  const ProcessInfo own_;
  const std::function<void()> when_done_;
  const bool together_;
  const int rank_;
  std::vector<MPI_Comm> started_;
  std::string failure_;
  std::atomic<Order> order_ = Order::hold;  // to the thread
  std::atomic<bool> awaited_ = false;       // the thread may end
  std::atomic<bool> ready_ = false;
  std::thread thread_;
};

// Open and close a port for the spawn strategy *join*, and accept one process there; called by rank 0 of the
// application. accept_process() blocks until a process connects.
Result<std::string> open_port();
void close_port(const std::string& port);
Result<MPI_Comm> accept_process(const std::string& port);

// A communicator that a new process shares with the rank that communicates with it.
struct Met {
  MPI_Comm comm;
  int leader = 0;  // rank of that process in `comm`
};
// Merges with the processes that started this one by MPI_Comm_spawn; `spawner` receives rank 0 of them. Collective with
// their part.
Result<Met> meet_parent(ProcessInfo& spawner);
// Connects to a port of the application (strategy *join*). Blocks until it is accepted.
Result<Met> connect_to(const std::string& port);

// ---- into the merged communicator --------------------------------------------------------------------------------

// Instruction to a new process: leave; use the common communicator as the merged one; or be bound to it.
enum class Summons : std::int64_t { dismissed, is_union, bind };

// Sends an instruction from `leader` to the others of `met`. Collective over `met`. Returns false if MPI failed.
bool summon(MPI_Comm met, int leader, Summons& summons);

// Merges a batch into `all`, the ranks merged so far. Their rank `leader` reaches the batch's leader as rank `remote`
// of `met`; the other ranks may pass any communicator. Collective over `all`, together with bind_to_union() of the
// batch.
Result<MPI_Comm> bind_newcomers(MPI_Comm all, int leader, MPI_Comm met, int remote);
// Merges the new processes of `own`, whose rank 0 reaches the leader as rank `remote` of `met`. Collective over `own`.
Result<MPI_Comm> bind_to_union(MPI_Comm own, MPI_Comm met, int remote);

}  // namespace hocket::runtime
