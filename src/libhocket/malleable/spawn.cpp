#include "malleable/spawn.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <system_error>

#include "mpi_shim/calls.hpp"
#include "mpi_shim/depth.hpp"
#include "mpi_shim/signals_blocked.hpp"

namespace hocket::runtime {
namespace {

constexpr int bind_tag = 71;  // of MPI_Intercomm_create

// Returns the target of a symbolic link; "" on failure.
std::string link_target(const char* link) {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = readlink(link, path.data(), path.size());
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : "";
}

// Tests if `count` further processes can exist at once, with small ones that wait for the end of a pipe. Uses
// posix_spawn instead of fork(), which would copy the page tables of all of this process's memory.
Status can_start_processes(int count) {
  std::array<int, 2> gate{};
  if (pipe2(gate.data(), O_CLOEXEC) != 0) return Error{std::string("no pipe: ") + std::strerror(errno)};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, gate[0], STDIN_FILENO);
  std::array<char*, 2> arguments{const_cast<char*>("cat"), nullptr};
  std::array<char*, 1> environment{nullptr};
  std::vector<pid_t> children;
  int failed = 0;
  while (static_cast<int>(children.size()) < count && !failed) {
    pid_t child = 0;
    failed = posix_spawn(&child, "/bin/cat", &actions, nullptr, arguments.data(), environment.data());
    if (!failed) children.push_back(child);
  }
  posix_spawn_file_actions_destroy(&actions);
  close(gate[0]);
  close(gate[1]);
  for (const pid_t child : children)
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  if (!failed || failed == ENOENT) return success();
  return Error{"no further process can be started (" + std::to_string(children.size()) + " of " +
               std::to_string(count) + " could): " + std::strerror(failed)};
}

// Tests what can be known before a spawn: a launcher that cannot start a process ends the whole job.
Status can_start(const Launch& launch, int count) {
  if (access(launch.program.c_str(), X_OK) != 0)
    return Error{launch.program + " cannot be started: " + std::strerror(errno)};
  return can_start_processes(count);
}

// Owns an MPI_Info.
class Info {
 public:
  Info() { HOCKET_PMPI(Info_create)(&info_); }
  ~Info() { HOCKET_PMPI(Info_free)(&info_); }
  Info(const Info&) = delete;
  Info& operator=(const Info&) = delete;
  void set(const char* key, const std::string& value) { HOCKET_PMPI(Info_set)(info_, key, value.c_str()); }
  MPI_Info get() const { return info_; }

 private:
  MPI_Info info_ = mpi::no_info();
};

// Merges an intercommunicator; `newcomers` get the higher ranks.
Result<MPI_Comm> merge(MPI_Comm inter, bool newcomers) {
  MPI_Comm merged = mpi::no_comm();
  const int rc = HOCKET_PMPI(Intercomm_merge)(inter, newcomers ? 1 : 0, &merged);
  if (rc != MPI_SUCCESS) return Error{"MPI_Intercomm_merge: " + mpi::error_text(rc)};
  HOCKET_PMPI(Comm_set_errhandler)(merged, mpi::errors_return());
  return merged;
}

// Merges an intercommunicator and disconnects it: a process that leaves later would have to agree to its end.
Result<MPI_Comm> merge_and_drop(MPI_Comm inter, bool newcomers) {
  auto merged = merge(inter, newcomers);
  HOCKET_PMPI(Comm_disconnect)(&inter);
  return merged;
}

// Sends spawned processes the identity of their spawner. They may wait long for that process, and so must watch it.
// Collective over the spawning and the spawned processes.
Result<MPI_Comm> introduce(Result<MPI_Comm> merged, ProcessInfo& spawner) {
  if (merged && !mpi::broadcast(merged.value(), 0, &spawner, sizeof spawner))
    return Error{"MPI failed when the new processes received the identity of their spawner"};
  return merged;
}

// Starts one batch and merges it with `over`. Collective over `over`.
Result<MPI_Comm> spawn(MPI_Comm over, const Launch& launch, const SpawnBatch& batch, ProcessInfo own) {
  Info info;
  info.set("wdir", launch.directory);
  // Only Open MPI knows this key, and only its processes need it (watch.cpp, init_begins).
  info.set("PMIX_ENVAR", "HOCKET_SPAWNED=1");
  if (!batch.node.empty()) info.set("host", batch.node);
  // Open MPI can also use nodes of the allocation on which the application has no process yet; MPICH lists none.
  else if (batch.placement != Placement::anywhere)
    info.set("map_by", batch.placement == Placement::spread ? "node:oversubscribe" : "slot:oversubscribe");
  std::vector<char*> arguments;
  for (const std::string& argument : launch.arguments) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  MPI_Comm inter = mpi::no_comm();
  std::vector<int> codes(static_cast<std::size_t>(batch.count), MPI_SUCCESS);
  const int rc = HOCKET_PMPI(Comm_spawn)(launch.program.c_str(), arguments.data(), batch.count, info.get(), 0, over,
                                         &inter, codes.data());
  if (rc != MPI_SUCCESS) return Error{"MPI_Comm_spawn: " + mpi::error_text(rc)};
  for (const int code : codes)
    if (code != MPI_SUCCESS) return Error{"MPI_Comm_spawn: " + mpi::error_text(code)};
  return introduce(merge_and_drop(inter, false), own);
}

// Returns a duplicate of MPI_COMM_SELF, so that no message meets one of the program.
MPI_Comm self() {
  static const MPI_Comm ours = mpi::duplicate(mpi::self());
  return ours;
}

}  // namespace

Launch launch_of_this_process() {
  // File accesses here are not the program's own.
  const Inside inside;
  Launch launch{link_target("/proc/self/exe"), {}, link_target("/proc/self/cwd")};
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string argument;
  while (std::getline(file, argument, '\0')) launch.arguments.push_back(argument);
  if (!launch.arguments.empty()) launch.arguments.erase(launch.arguments.begin());
  return launch;
}

std::vector<SpawnBatch> batches_of(const Methods& methods, int sources, int count,
                                   const std::vector<std::string>& nodes) {
  const bool parallel =
      methods.spawn_strategy == SpawnStrategy::parallel || methods.spawn_strategy == SpawnStrategy::parallel_async;
  const int leaders = parallel ? std::min(sources, count) : 1;
  std::vector<SpawnBatch> batches;
  for (int i = 0; i < count; ++i) {
    const std::string node = nodes.empty() ? "" : nodes[static_cast<std::size_t>(i)];
    if (methods.worlds == Worlds::node && !batches.empty() && batches.back().node == node)
      ++batches.back().count;
    else  // the leaders take turns
      batches.push_back({static_cast<int>(batches.size()) % leaders, 1, node, methods.placement});
  }
  return batches;
}

ProcessStart::ProcessStart(MPI_Comm over, Launch launch, const Methods& methods, std::vector<SpawnBatch> batches,
                           const ProcessInfo& own, std::function<void()> when_done)
    : launch_(std::move(launch)),
      batches_(std::move(batches)),
      own_(own),
      when_done_(std::move(when_done)),
      together_(methods.spawn_strategy == SpawnStrategy::plain || methods.spawn_strategy == SpawnStrategy::async),
      rank_(mpi::rank_in(over)),
      started_(batches_.size(), mpi::no_comm()) {
  comm_ = mpi::duplicate(together_ ? over : mpi::self());
  int count = 0;
  for (const SpawnBatch& batch : batches_) count += batch.count;
  prepare(count, methods.spawns_in_thread());
  // All ranks learn of a failure, because they spawn together or not at all.
  std::array<std::int64_t, 1> possible{failure_.empty()};
  const bool starts = mpi::smallest(over, possible) && possible[0];
  order_ = starts ? Order::start : Order::drop;
  order_.notify_one();
  if (!starts)
    end_own_part();
  else if (!thread_.joinable())
    run();
}

ProcessStart::~ProcessStart() {
  wait();
  mpi::free(comm_);
}

// Tests what this rank's part needs, and makes its thread, which waits for the order. Sets failure_.
void ProcessStart::prepare(int count, bool in_thread) {
  if (rank_ == 0) {
    if (const Status possible = can_start(launch_, count); !possible) failure_ = possible.error().text;
  }
  if (!in_thread || !failure_.empty()) return;
  try {
    const SignalsBlocked blocked;
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error& error) {
    failure_ = std::string("no thread can be started to spawn processes: ") + error.what();
  }
}

void ProcessStart::wait() {
  awaited_ = true;
  if (thread_.joinable()) thread_.join();
}

void ProcessStart::work() {
  constexpr timespec between_pushes{0, 1'000'000};
  const Inside inside;
  order_.wait(Order::hold);
  if (order_ == Order::drop) return;
  run();
  while (!awaited_) {
    for (const MPI_Comm comm : started_)  // a call on another communicator need not reach the network
      if (comm != mpi::no_comm()) mpi::push(comm);
    nanosleep(&between_pushes, nullptr);
  }
}

void ProcessStart::run() {
  for (std::size_t i = 0; i < batches_.size() && failure_.empty(); ++i) {
    // Together, all ranks call MPI_Comm_spawn for every batch; otherwise each leader calls it alone for its own.
    if (!together_ && batches_[i].leader != rank_) continue;
    auto started = spawn(comm_, launch_, batches_[i], own_);
    if (started)
      // A batch that has started is kept even if a later one fails, so that it can be dismissed.
      started_[i] = started.value();
    else
      failure_ = started.error().text;
  }
  end_own_part();
}

// Ends the time limit of the start before the source ranks see that it is ready.
void ProcessStart::end_own_part() {
  when_done_();
  ready_ = true;
}

Result<std::string> open_port() {
  std::array<char, MPI_MAX_PORT_NAME> port{};
  const int rc = HOCKET_PMPI(Open_port)(mpi::no_info(), port.data());
  if (rc != MPI_SUCCESS) return Error{"MPI_Open_port: " + mpi::error_text(rc)};
  return std::string(port.data());
}

void close_port(const std::string& port) { HOCKET_PMPI(Close_port)(port.c_str()); }

Result<MPI_Comm> accept_process(const std::string& port) {
  MPI_Comm inter = mpi::no_comm();
  const int rc = HOCKET_PMPI(Comm_accept)(port.c_str(), mpi::no_info(), 0, self(), &inter);
  if (rc != MPI_SUCCESS) return Error{"MPI_Comm_accept: " + mpi::error_text(rc)};
  return merge_and_drop(inter, false);
}

Result<Met> connect_to(const std::string& port) {
  MPI_Comm inter = mpi::no_comm();
  const int rc = HOCKET_PMPI(Comm_connect)(port.c_str(), mpi::no_info(), 0, self(), &inter);
  if (rc != MPI_SUCCESS) return Error{"MPI_Comm_connect: " + mpi::error_text(rc)};
  auto merged = merge_and_drop(inter, true);
  if (!merged) return merged.error();
  return Met{merged.value(), 0};
}

Result<Met> meet_parent(ProcessInfo& spawner) {
  MPI_Comm parent = mpi::no_comm();
  HOCKET_PMPI(Comm_get_parent)(&parent);
  HOCKET_PMPI(Comm_set_errhandler)(parent, mpi::errors_return());
  auto merged = introduce(merge_and_drop(parent, true), spawner);
  if (!merged) return merged.error();
  return Met{merged.value(), 0};
}

bool summon(MPI_Comm met, int leader, Summons& summons) {
  return mpi::broadcast(met, leader, &summons, sizeof summons);
}

Result<MPI_Comm> bind_newcomers(MPI_Comm all, int leader, MPI_Comm met, int remote) {
  MPI_Comm inter = mpi::no_comm();
  const int rc = HOCKET_PMPI(Intercomm_create)(all, leader, met, remote, bind_tag, &inter);
  if (rc != MPI_SUCCESS) return Error{"MPI_Intercomm_create: " + mpi::error_text(rc)};
  auto merged = merge(inter, false);
  mpi::free(inter);
  return merged;
}

Result<MPI_Comm> bind_to_union(MPI_Comm own, MPI_Comm met, int remote) {
  MPI_Comm inter = mpi::no_comm();
  const int rc = HOCKET_PMPI(Intercomm_create)(own, 0, met, remote, bind_tag, &inter);
  if (rc != MPI_SUCCESS) return Error{"MPI_Intercomm_create: " + mpi::error_text(rc)};
  auto merged = merge(inter, true);
  mpi::free(inter);
  return merged;
}

}  // namespace hocket::runtime
