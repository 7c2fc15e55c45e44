// Growth of the application: from the decision to the merged communicator of source ranks and new processes. Also the
// sleep of processes that the application does not use.
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/clock.hpp"
#include "base/host_name.hpp"
#include "malleable/hocketd_link.hpp"
#include "malleable/job.hpp"
#include "malleable/placing.hpp"
#include "mpi_shim/calls.hpp"
#include "mpi_shim/end_job.hpp"
#include "process/identity.hpp"

namespace hocket::runtime {
namespace {

// Time limit for a process at the door: one that is ready waits there already.
constexpr Duration door_limit = std::chrono::seconds{5};

constexpr int wake_tag = 72;  // in world_
enum class Wake : std::int64_t { leave, work };

// Wakes a process that sleeps in its control point, and sends it the waking process's rank.
void wake(MPI_Comm world, int rank, Wake what, std::int64_t own_rank) {
  std::array<std::int64_t, 2> message{static_cast<std::int64_t>(what), own_rank};
  MPI_Request request = mpi::no_request();
  if (HOCKET_PMPI(Isend)(message.data(), sizeof message, mpi::byte_type(), rank, wake_tag, world, &request) ==
      MPI_SUCCESS)
    mpi::wait_asleep(request);
}

// Gathers where the processes of `comm` run, by rank. Collective.
std::vector<PlacedProcess> gather_places(MPI_Comm comm, int size) {
  constexpr std::size_t longest_name = 240;
  struct Place {
    std::array<char, longest_name> node{};
    std::int64_t cores = 0;
    std::int64_t core = -1;
  } own;
  host_name().copy(own.node.data(), longest_name - 1);
  own.cores = sysconf(_SC_NPROCESSORS_ONLN);
  own.core = own_core();
  std::vector<Place> all(static_cast<std::size_t>(size));
  MPI_Request request = mpi::no_request();
  if (HOCKET_PMPI(Iallgather)(&own, sizeof own, mpi::byte_type(), all.data(), sizeof own, mpi::byte_type(), comm,
                              &request) != MPI_SUCCESS ||
      !mpi::wait_asleep(request))
    end_job("MPI failed when the places of processes were listed", true);
  std::vector<PlacedProcess> processes;
  processes.reserve(all.size());
  for (const Place& one : all) processes.push_back({one.node.data(), one.cores, one.core});
  return processes;
}

// Ends the job on an error: ranks that are merged halfway cannot go back.
MPI_Comm must(Result<MPI_Comm> comm) {
  if (!comm) end_job("a reconfiguration cannot continue: " + comm.error().text, true);
  return comm.value();
}

}  // namespace

std::int64_t own_core() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) != 1) return -1;
  std::int64_t core = 0;
  while (!CPU_ISSET(static_cast<std::size_t>(core), &set)) ++core;
  return core;
}

// Wakes sleeping processes first, then starts as many new ones as are still needed. Collective over the source ranks.
ControlPointResult MalleableJob::start_growth() {
  OngoingReconfiguration& change = *change_;
  const bool merges = change.methods.spawn == Spawn::merge;
  const std::int64_t needed = merges ? change.targets - size_ : change.targets;
  change.woken = merges ? std::min(needed, static_cast<std::int64_t>(sleepers_.size())) : 0;
  change.started = needed - change.woken;
  const bool waits = starting_up_ || !change.methods.spawns_in_thread();
  limit_change();
  if (change.started == 0) return bring_in();
  // More or fewer processes sleep than the sender of the places knew.
  if (change.nodes.size() != static_cast<std::size_t>(change.started)) {
    change.places.clear();
    change.nodes.clear();
    change.cores.clear();
  }
  if (change.places.empty() && change.methods.placement != Placement::anywhere) place_new_processes();
  if (change.methods.spawn_strategy == SpawnStrategy::join) return ask_for_processes();
  change.start =
      std::make_unique<ProcessStart>(ours_, launch_of_this_process(), change.methods,
                                     batches_of(change.methods, size_, static_cast<int>(change.started), change.nodes),
                                     info_, [this] { watch_.done(); });
  if (waits) return unite();
  change.record.spawning_stopped += change.lap();
  return ControlPointResult::go_on;
}

// Chooses places by the methods of the reconfiguration, from where the source ranks run. Those of baseline leave, and
// so occupy nothing. Collective over the source ranks.
void MalleableJob::place_new_processes() {
  OngoingReconfiguration& change = *change_;
  const Placement placement = change.methods.placement;
  const std::vector<PlacedProcess> processes = gather_places(ours_, size_);
  std::vector<OccupiedNode> nodes = nodes_of(processes, placement);
  if (change.methods.spawn == Spawn::baseline) {
    for (OccupiedNode& node : nodes) node = {node.name, std::vector<bool>(node.cores.size())};
  }
  std::vector<ProcessPlace> places = place(nodes, change.started, placement);
  // Those of a node can share a world only if they follow each other.
  std::stable_sort(places.begin(), places.end(),
                   [](const auto& one, const auto& other) { return one.node < other.node; });
  for (const ProcessPlace& one : places) {
    const std::string core = one.core >= 0 ? ":" + std::to_string(one.core) : "";
    change.places += (change.places.empty() ? "" : " ") + one.node + core;
    // One node needs no name, and an MPI may know it by another one.
    change.nodes.push_back(nodes.size() > 1 ? one.node : "");
    change.cores.push_back(one.core);
  }
}

// Describes the reconfiguration in a message of Watch.
std::string MalleableJob::text_of_change() const {
  return "the reconfiguration from " + std::to_string(size_) + " to " + std::to_string(change_->targets) +
         " processes at iteration " + std::to_string(iteration_);
}

// Opens door and port, and sends START_PROCESSES. In rank 0.
Status MalleableJob::ask_hocketd() {
  OngoingReconfiguration& change = *change_;
  auto door = Door::open(identity().settings.socket);
  if (!door) return Error{"no hocketd to start processes for 'join': " + door.error().text};
  change.door.emplace(std::move(door).value());
  auto port = open_port();
  if (!port) return port.error();
  change.port = port.value();
  event::StartProcesses start;
  start.request = RequestId{static_cast<std::uint64_t>(change.processes_asked)};
  start.count = change.started;
  start.port = std::to_string(getpid()) + " " + change.port + " " + change.door->path();
  start.places = change.places;
  return hocketd::tell(start) ? success() : Error{"there is no hocketd to start processes for 'join'"};
}

// Asks hocketd to start processes (strategy *join*). Before the first iteration the application has nothing else to do,
// so it waits here; later it continues to compute.
ControlPointResult MalleableJob::ask_for_processes() {
  OngoingReconfiguration& change = *change_;
  if (rank_ == 0) {
    change.processes_asked = ++processes_asked_;
    change.asked_on = hocketd::number_of_connection();
    if (const Status asked = ask_hocketd(); !asked) change.failure = asked.error().text;
  }
  watch_.done();
  change.record.spawning_stopped += change.lap();
  if (!starting_up_) return ControlPointResult::go_on;
  ControlPointDecision decision{ControlPointDecision::none};
  for (; decision.kind == ControlPointDecision::none; decision = decide()) {
    const timespec pause{0, 1'000'000};
    if (rank_ == 0) nanosleep(&pause, nullptr);
  }
  change.mark = node_now();
  return follow(decision);
}

// ---- all new processes are there ---------------------------------------------------------------------------------

// Continues when all new processes are there: merges them, or gives up if a start failed. Collective.
ControlPointResult MalleableJob::unite() {
  OngoingReconfiguration& change = *change_;
  if (change.start) change.start->wait();  // its time limit runs since the start
  limit_change();
  if (!change.start) accept_all();
  std::string failure;
  if (agree_that_started(failure)) return bring_in();
  std::vector<MPI_Comm> met = std::move(change.met);
  dismiss(met);
  give_up(failure);
  return ControlPointResult::go_on;
}

// Accepts the processes of a join one by one, since MPICH loses connections that arrive while it accepts one.
void MalleableJob::accept_all() {
  OngoingReconfiguration& change = *change_;
  change.met.assign(static_cast<std::size_t>(change.started), mpi::no_comm());
  if (rank_ != 0) return;
  for (MPI_Comm& met : change.met) {
    const Status came = change.door->let_in(door_limit);
    auto accepted = came ? accept_process(change.port) : Result<MPI_Comm>(came.error());
    if (!accepted) {
      change.failure = accepted.error().text;
      return;
    }
    met = accepted.value();
  }
  close_port(change.port);
  change.port.clear();
  change.door.reset();
}

// Returns true if all ranks started their processes; else `failure` is the reason of the lowest rank that failed.
// Collective.
bool MalleableJob::agree_that_started(std::string& failure) {
  OngoingReconfiguration& change = *change_;
  if (change.start) {
    change.met = change.start->started();
    change.failure = change.start->failure();
  }
  std::array<std::int64_t, 1> failed{change.failure.empty() ? size_ : rank_};  // the lowest rank with a failure
  if (!mpi::smallest(ours_, failed)) end_job("MPI failed when new processes were counted", true);
  if (failed[0] == size_) return true;
  Blob blob;
  blob.put(change.failure);
  if (!blob.broadcast(ours_, static_cast<int>(failed[0]))) end_job("MPI failed when a spawn had failed", true);
  blob.take(failure);
  return false;
}

// Makes the processes that did start leave.
void MalleableJob::dismiss(std::vector<MPI_Comm>& met) {
  for (MPI_Comm& comm : met) {
    if (comm == mpi::no_comm()) continue;
    Summons dismissed = Summons::dismissed;
    summon(comm, 0, dismissed);
    mpi::free(comm);
  }
}

// Gives up a reconfiguration whose processes are still being started.
void MalleableJob::give_up_starting(const std::string& reason) {
  if (change_->start) {
    change_->start->wait();
    limit_change();
    dismiss(change_->start->started());
  }
  give_up(reason);
}

// ---- into the merged communicator, on the side of the sources ----------------------------------------------------

// Merges sleeping processes, then new ones, and continues with the redistribution. Collective over the source ranks.
ControlPointResult MalleableJob::bring_in() {
  OngoingReconfiguration& change = *change_;
  MPI_Comm all = bring_in_sleepers(ours_);
  all = bring_in_batches(all);
  change.start.reset();
  change.all = all;
  change.rank = mpi::rank_in(all);
  choose_targets();
  change.record.spawning_stopped += change.lap();
  change.record.spawning = node_now() - change.began;
  return move();
}

// Tells the ranks merged so far how many sleepers and batches are still to come, and which rank leads the next merge.
// Collective over `all`.
void MalleableJob::tell_remaining(MPI_Comm all, std::int64_t remaining, std::int64_t next_leader) {
  std::array<std::int64_t, 2> message{remaining, next_leader};
  if (!mpi::broadcast(all, 0, message.data(), sizeof message)) end_job("MPI failed when processes were merged", true);
}

// Returns the lowest computing rank of the sleeper's world, the only ranks that can reach it.
int MalleableJob::leader_of_sleeper(const ProcessInfo& sleeper) const {
  for (std::size_t rank = 0; rank < processes_.size(); ++rank)
    if (processes_[rank].world == sleeper.world) return static_cast<int>(rank);
  return 0;  // not reached: a sleeper's world has a computing process (worlds.hpp)
}

// Returns the source rank that communicates with the batch; rank 0 for a join.
int MalleableJob::leader_of_batch(std::size_t batch) const {
  return change_->start ? change_->start->batches()[batch].leader : 0;
}

// Merges sleeping processes one by one: each can be reached only by a rank of its own world.
MPI_Comm MalleableJob::bring_in_sleepers(MPI_Comm all) {
  OngoingReconfiguration& change = *change_;
  const auto batches = static_cast<std::int64_t>(change.met.size());
  for (std::int64_t i = 0; i < change.woken; ++i) {
    const ProcessInfo& sleeper = sleepers_[static_cast<std::size_t>(i)];
    const int leader = leader_of_sleeper(sleeper);
    if (rank_ == leader) wake(world_, static_cast<int>(sleeper.world_rank), Wake::work, info_.world_rank);
    MPI_Comm with = must(bind_newcomers(all, leader, world_, static_cast<int>(sleeper.world_rank)));
    if (all != ours_) mpi::free(all);
    all = with;
    const std::int64_t remaining = change.woken - i - 1 + batches;
    const bool sleeper_next = i + 1 < change.woken;
    tell_remaining(all, remaining,
                   remaining == 0 ? 0
                   : sleeper_next ? leader_of_sleeper(sleepers_[static_cast<std::size_t>(i) + 1])
                                  : leader_of_batch(0));
  }
  sleepers_.erase(sleepers_.begin(), sleepers_.begin() + change.woken);
  return all;
}

// Merges the batches one by one, each through its leader.
MPI_Comm MalleableJob::bring_in_batches(MPI_Comm all) {
  OngoingReconfiguration& change = *change_;
  const bool together = change.start && change.start->together();
  for (std::size_t i = 0; i < change.met.size(); ++i) {
    MPI_Comm& met = change.met[i];
    // If all source ranks spawned the first batch together, its communicator is the merged one already.
    const bool is_union = together && all == ours_;
    Summons summons = is_union ? Summons::is_union : Summons::bind;
    if (met != mpi::no_comm()) summon(met, 0, summons);
    MPI_Comm with = met;
    if (!is_union) {
      with = must(bind_newcomers(all, leader_of_batch(i), met, together ? size_ : 1));
      mpi::free(met);
    }
    if (all != ours_) mpi::free(all);
    all = with;
    const std::size_t remaining = change.met.size() - i - 1;
    tell_remaining(all, static_cast<std::int64_t>(remaining), remaining ? leader_of_batch(i + 1) : 0);
  }
  return all;
}

// ---- into the merged communicator, on the side of the new processes ----------------------------------------------

// Meets the processes that spawned this one. They are in MPI during the start; afterwards they may compute for long
// before they call this process, so it watches their rank 0: a launcher of Open MPI does not always end a process whose
// spawner has died.
Result<Met> MalleableJob::meet_spawner() {
  ProcessInfo spawner;
  watch_.expect("the start of a joining process", settings_.limit);
  auto met = meet_parent(spawner);
  watch_.done();
  if (met && spawner.host == info_.host)
    watch_.need({{static_cast<int>(spawner.pid), "the process that started this one"}});
  return met;
}

// Enters the application: by its door (strategy *join*) or through the spawning processes. Returns `leave` if this
// process is no longer wanted.
ControlPointResult MalleableJob::join_others() {
  auto met = Result<Met>(Error{});
  if (!join_port_.empty()) {
    watch_.need({{join_pid_, "rank 0 of the application that this process joins"}});
    auto waiter = Waiter::at(join_door_);
    if (waiter) hocketd::tell(event::ProcessReady{join_request_});
    if (!waiter || !waiter.value().wait()) {
      watch_.need({});
      left_ = true;
      return ControlPointResult::leave;
    }
    met = connect_to(join_port_);
  } else {
    met = meet_spawner();
  }
  if (!met) end_job("this process cannot join the application: " + met.error().text, true);
  Summons summons = Summons::dismissed;
  if (!summon(met.value().comm, met.value().leader, summons) || summons == Summons::dismissed) {
    watch_.need({});
    mpi::free(met.value().comm);
    left_ = true;
    return ControlPointResult::leave;
  }
  MPI_Comm all = met.value().comm;
  if (summons == Summons::bind) {
    all = must(bind_to_union(world_, met.value().comm, met.value().leader));
    mpi::free(met.value().comm);
  }
  return come_in(all);
}

// Takes part in the remaining merges, until no further process is to come, then in the redistribution.
ControlPointResult MalleableJob::come_in(MPI_Comm all) {
  change_.emplace();
  OngoingReconfiguration& change = *change_;
  watch_.expect("the reconfiguration that this process joins", settings_.limit);
  std::array<std::int64_t, 2> message{};
  while (true) {
    if (!mpi::broadcast(all, 0, message.data(), sizeof message)) end_job("MPI failed when processes were merged", true);
    if (message[0] == 0) break;
    MPI_Comm with = must(bind_newcomers(all, static_cast<int>(message[1]), mpi::no_comm(), 0));
    mpi::free(all);
    all = with;
  }
  watch_.done();  // from here on it waits for control points of the sources, which may be far apart
  change.all = all;
  change.rank = mpi::rank_in(all);
  return move();
}

// ---- sleep -------------------------------------------------------------------------------------------------------

// Ends the sleepers of `before` that are not in `after`. The lowest computing rank of its world wakes each.
void MalleableJob::release_sleepers(const std::vector<ProcessInfo>& before, const std::vector<ProcessInfo>& after) {
  for (const ProcessInfo& sleeper : before) {
    const bool stays = std::any_of(after.begin(), after.end(), [&](const ProcessInfo& other) {
      return other.world == sleeper.world && other.world_rank == sleeper.world_rank;
    });
    if (!stays && rank_ == leader_of_sleeper(sleeper) && sleeper.world == info_.world)
      wake(world_, static_cast<int>(sleeper.world_rank), Wake::leave, info_.world_rank);
  }
}

// Sleeps in the control point until this process is used again or shall leave. MPI has no wait that sleeps, so the
// process polls, at least every 20 ms.
ControlPointResult MalleableJob::sleep() {
  arrays_.forget();
  watch_.need({});
  std::array<std::int64_t, 2> message{};
  if (!mpi::await_from_any(world_, wake_tag, std::as_writable_bytes(std::span(message)), mpi::Patience::for_hours()))
    end_job("MPI failed while a process slept", true);
  if (message[0] == static_cast<std::int64_t>(Wake::leave)) {
    left_ = true;
    return ControlPointResult::leave;
  }
  // Made once and kept: a process may sleep several times.
  static const MPI_Comm alone = mpi::duplicate(mpi::self());
  return come_in(must(bind_to_union(alone, world_, static_cast<int>(message[1]))));
}

}  // namespace hocket::runtime
