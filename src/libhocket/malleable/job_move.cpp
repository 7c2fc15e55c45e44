// Moves the application from the merged communicator to the destination ranks: new distribution, redistribution of the
// data, new communicators, and departure of the processes that are no longer needed.
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

#include "base/clock.hpp"
#include "base/node_counts.hpp"
#include "malleable/job.hpp"
#include "mpi_shim/calls.hpp"
#include "mpi_shim/depth.hpp"
#include "mpi_shim/end_job.hpp"
#include "mpi_shim/warn.hpp"

namespace hocket::runtime {
namespace {

constexpr int parting_tag = 73;  // permission of rank 0 to leave, in part_again()
// Shortest time that a control point polls for data that move.
constexpr Duration shortest_look = std::chrono::microseconds{200};

// True if constant data shall be checked for writes while they move: in debug builds by default, else on request.
bool checks_constant() {
  const char* asked = std::getenv("HOCKET_CHECK_CONSTANT");
#ifdef HOCKET_DEBUG
  return !asked || *asked != '0';
#else
  return asked && *asked == '1';
#endif
}

// Returns the numbers first … end - 1.
std::vector<int> ranks(int first, int end) {
  std::vector<int> all(static_cast<std::size_t>(end - first));
  std::iota(all.begin(), all.end(), first);
  return all;
}

// Binds this process to the core; if that fails, it runs unbound.
void run_on_core(std::int64_t core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(core), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0)
    warn("core " + std::to_string(core) + " is unavailable: this process runs unbound");
}

}  // namespace

// ---- roles -------------------------------------------------------------------------------------------------------

// Chooses the destination ranks after new processes have been merged, and who leaves.
void MalleableJob::choose_targets() {
  OngoingReconfiguration& change = *change_;
  const int everyone = mpi::size_of(change.all);
  const bool merges = change.methods.spawn == Spawn::merge;
  change.roles = {ranks(0, size_), ranks(merges ? 0 : size_, everyone)};
  if (merges) {
    change.departure = {};
    change.departure.sleepers = sleepers_;
    // A new process counts as average, since its speed is unknown.
    const std::vector<double>& speeds = change.speeds;
    const double mean = std::accumulate(speeds.begin(), speeds.end(), 0.0) / static_cast<double>(speeds.size());
    change.weights = speeds;
    change.weights.resize(static_cast<std::size_t>(everyone), mean);
  } else {
    change.departure = leave_all(processes_, sleepers_);
    change.weights.assign(change.roles.targets.size(), 1.0);
  }
}

// Shrinks without new processes: chooses those that stay, and moves the data. Collective over the source ranks.
ControlPointResult MalleableJob::shrink() {
  OngoingReconfiguration& change = *change_;
  limit_change();
  change.roles.sources = ranks(0, size_);
  // Who stays depends on the new distribution, and weighted shares depend on who stays: for this choice they are equal.
  change.weights.assign(static_cast<std::size_t>(change.targets), 1.0);
  change.roles.targets = ranks(0, static_cast<int>(change.targets));
  if (const std::string reason = why_not_movable(); !reason.empty()) {
    give_up(reason);
    return ControlPointResult::go_on;
  }
  arrays_.forget_plans();
  share_out();
  const auto leave = node_counts_of(change.leave, size_);
  change.departure = runtime::shrink(processes_, sleepers_, arrays_.overlap(size_, static_cast<int>(change.targets)),
                                     leave ? leave.value() : std::vector<NodeCount>{});
  change.roles.targets = change.departure.stay;
  change.weights.clear();
  for (const int rank : change.departure.stay) change.weights.push_back(change.speeds[static_cast<std::size_t>(rank)]);
  return move();
}

// Redistributes the data over the same processes, if the new distribution differs. Collective.
ControlPointResult MalleableJob::share_out_anew(const std::vector<double>& weights) {
  change_.emplace();
  OngoingReconfiguration& change = *change_;
  change.all = ours_;
  change.rank = rank_;
  change.began = change.mark = node_now();
  change.targets = size_;
  change.roles = {ranks(0, size_), ranks(0, size_)};
  change.departure.stay = change.roles.targets;
  change.departure.sleepers = sleepers_;
  change.weights = weights;
  change.methods = settings_.methods;
  change.methods.redistribution_strategy = Strategy::blocking;
  if (rank_ == 0) begin_record({}, change.began);
  arrays_.forget_plans();
  share_out();
  if (arrays_.all_in_place(change.roles)) {
    change_.reset();
    return ControlPointResult::go_on;
  }
  watch_.expect(text_of_change(), settings_.limit);
  return move();
}

// ---- the briefing ------------------------------------------------------------------------------------------------

bool MalleableJob::is_source() const { return rank_ >= 0; }

// Broadcasts all that new processes need to take part. Collective over the merged communicator.
void MalleableJob::brief_all() {
  OngoingReconfiguration& change = *change_;
  Blob blob;
  if (change.rank == 0) {
    blob.put(change.roles.sources);
    blob.put(change.roles.targets);
    blob.put(change.methods);
    blob.put(change.weights);
    blob.put(change.cores);
    blob.put(change.woken);
    blob.put(balanced_by_program_);
    blob.put(arrays_.registry());
    arrays_.brief(blob);
  }
  if (!blob.broadcast(change.all, 0)) end_job("MPI failed when the new processes were informed", true);
  if (is_source()) return;
  std::uint64_t registry = 0;
  blob.take(change.roles.sources);
  blob.take(change.roles.targets);
  blob.take(change.methods);
  blob.take(change.weights);
  blob.take(change.cores);
  blob.take(change.woken);
  blob.take(balanced_by_program_);
  blob.take(registry);
  change.same_arrays = registry == arrays_.registry();
  if (change.same_arrays) arrays_.take_briefing(blob);
  // Woken processes keep their core; only started ones are bound to the core of their place.
  const auto started_before = static_cast<std::int64_t>(change.roles.sources.size()) + change.woken;
  const std::int64_t index = change.rank - started_before;
  if (index >= 0 && index < static_cast<std::int64_t>(change.cores.size()) &&
      change.cores[static_cast<std::size_t>(index)] >= 0)
    run_on_core(change.cores[static_cast<std::size_t>(index)]);
  info_.core = own_core();
}

// Returns why the arrays cannot move, the same in all ranks; "" if they can. Collective over the merged communicator.
std::string MalleableJob::why_not_movable() {
  OngoingReconfiguration& change = *change_;
  const Status owners =
      change.same_arrays ? arrays_.check_owners(static_cast<int>(change.roles.targets.size())) : success();
  std::array<std::int64_t, 2> here{change.same_arrays, owners.ok()};
  if (!mpi::smallest(change.all, here)) end_job("MPI failed when arrays were compared", true);
  if (!here[0]) return "the new processes registered different arrays than the old ones";
  if (!here[1]) return owners ? "a function of owners is wrong in another process" : owners.error().text;
  return {};
}

// Computes the new distribution. Collective over the merged communicator.
void MalleableJob::share_out() {
  OngoingReconfiguration& change = *change_;
  if (!arrays_.share_out(change.all, change.roles.sources, change.rank, change.weights))
    end_job("MPI failed when shares were planned", true);
}

// Gives the parts of the new distribution to the processes so that as many bytes as possible stay in place. Only a
// growth by merge leaves a choice: shrink() has chosen who stays, and in a baseline all destinations are new. All ranks
// compute the same.
void MalleableJob::order_targets() {
  OngoingReconfiguration& change = *change_;
  const auto sources = change.roles.sources.size();
  if (change.methods.spawn != Spawn::merge || change.roles.targets.size() <= sources) return;
  const redistribute::Overlap overlap =
      arrays_.overlap(static_cast<int>(sources), static_cast<int>(change.roles.targets.size()));
  const std::vector<redistribute::Fate> all_stay(sources, redistribute::Fate::stays);
  const std::vector<double> speeds = change.weights;  // by rank of the merged communicator
  int next_new = static_cast<int>(sources);
  const std::vector<int> order = redistribute::order_of_parts(overlap, all_stay);
  for (std::size_t part = 0; part < order.size(); ++part) {
    const int rank = order[part] == redistribute::newcomer ? next_new++ : order[part];
    change.roles.targets[part] = rank;
    change.weights[part] = speeds[static_cast<std::size_t>(rank)];
  }
  if (change.weights != speeds) share_out();
}

// Plans the move of all arrays. Collective over the merged communicator.
void MalleableJob::plan_move() {
  OngoingReconfiguration& change = *change_;
  arrays_.forget_plans();
  share_out();
  order_targets();
  arrays_.plan(change.roles, change.rank);
}

// Briefs new processes, plans the redistribution and moves the constant data, or begins to. Collective over the merged
// communicator.
ControlPointResult MalleableJob::move() {
  OngoingReconfiguration& change = *change_;
  if (change.all != ours_) {
    brief_all();
    if (const std::string reason = why_not_movable(); !reason.empty()) return part_again(reason);
  }
  plan_move();
  count_bytes();
  if (!change.methods.moves_in_background()) {
    move_blocking(true);
    change.record.constant_stopped += change.lap();
    change.record.constant = change.record.constant_stopped;
    return complete(true);
  }
  change.processes = gather_processes(change.all);
  watch_all();
  start_moving();
  if (!is_source()) return complete(true);
  watch_.done();
  change.record.constant_stopped += change.lap();
  return ControlPointResult::go_on;
}

// Gives the merged communicator up: all continue as before, and woken processes sleep again. No process leaves before
// all have ended its collective calls: hocketd kills all processes of a join as soon as one of them has gone.
ControlPointResult MalleableJob::part_again(const std::string& reason) {
  MPI_Comm all = change_->all;
  const int everyone = mpi::size_of(all);
  if (change_->rank == 0) {
    std::int64_t owed = everyone - 1;
    mpi::receive_words(all, owed);
    for (int rank = size_; rank < everyone; ++rank) mpi::tell(all, rank, parting_tag);
    owed = everyone - size_;  // no message is in flight to them when they leave
    mpi::receive_words(all, owed);
  } else {
    mpi::tell_root(all);
  }
  if (!is_source()) {
    mpi::await_word(all, 0, parting_tag);
    mpi::tell_root(all);
  }
  mpi::free(all);
  if (is_source()) {
    sleepers_ = change_->sleepers_before;
    watch_others();
    give_up(reason);
    return ControlPointResult::go_on;
  }
  const bool slept = change_->rank < static_cast<int>(change_->roles.sources.size()) + static_cast<int>(change_->woken);
  change_.reset();
  if (slept) return sleep();
  left_ = true;
  return ControlPointResult::leave;
}

// Adds up the bytes that move and stay, for the record. Collective.
void MalleableJob::count_bytes() {
  OngoingReconfiguration& change = *change_;
  std::array<std::int64_t, 2> bytes{arrays_.bytes_sent(), arrays_.bytes_kept()};
  mpi::sum(change.all, bytes);
  change.record.bytes_moved = bytes[0];
  change.record.bytes_kept = bytes[1];
}

// ---- redistribution ----------------------------------------------------------------------------------------------

// Moves the arrays one after the other while the application waits, which bounds the memory in use. Collective.
void MalleableJob::move_blocking(bool constant) {
  const OngoingReconfiguration& change = *change_;
  const Status moved = arrays_.move_each(constant, [&change](std::vector<ArrayTransfer> arrays) -> Status {
    auto moving =
        Redistribution::start(change.all, std::move(arrays), change.methods.redistribution, Strategy::blocking);
    return moving ? moving.value()->finish() : Status(moving.error());
  });
  if (!moved) end_job("the data could not be redistributed: " + moved.error().text, true);
}

// Begins to move the constant data, while the sources continue to compute. Collective.
void MalleableJob::start_moving() {
  OngoingReconfiguration& change = *change_;
  change.moving_since = node_now();
  if (checks_constant()) change.check = arrays_.constant_check();
  auto arrays = arrays_.pending(true);
  if (!arrays) end_job(arrays.error().text, true);
  auto moving = Redistribution::start(change.all, std::move(arrays.value()), change.methods.redistribution,
                                      change.methods.redistribution_strategy);
  if (!moving) end_job("the data could not be redistributed: " + moving.error().text, true);
  change.moving = std::move(moving.value());
  change.in_background = true;
}

// Performs a control point while constant data move. The move is over when it is over for all sources. Collective.
ControlPointResult MalleableJob::follow_moving() {
  OngoingReconfiguration& change = *change_;
  // The transfer makes progress only while both ends poll. Polls may take a tenth of the time since the last control
  // point.
  const Time now = node_now();
  const Time until = now + std::max(shortest_look, (now - point_since_) / 10);
  std::array<std::int64_t, 1> over{!change.moving || change.moving->test()};
  while (!over[0] && node_now() < until) {
    sched_yield();
    over[0] = change.moving->test();
  }
  if (!mpi::smallest(ours_, over)) end_job("MPI failed at a control point", true);
  change.record.constant_stopped += change.lap();
  if (!over[0]) return ControlPointResult::go_on;
  // All source ranks are here. None leaves before this one takes part in the next steps.
  watch_.expect(text_of_change(), settings_.limit);
  return complete(true);
}

// Ends the move of constant data, and checks that the program has not written into them.
void MalleableJob::finish_moving() {
  OngoingReconfiguration& change = *change_;
  if (!change.moving) return;
  const Status moved = change.moving->finish();
  if (!moved) end_job("the data could not be redistributed: " + moved.error().text, true);
  change.moving.reset();
  arrays_.arrived(true);
  if (change.check != 0 && is_source() && change.check != arrays_.constant_check())
    end_job("constant data were written while they moved, before iteration " + std::to_string(iteration_) +
                ": register what changes as HOCKET_MALLEABLE_VARIABLE",
            true);
  change.record.constant_stopped += change.lap();
  change.record.constant = node_now() - change.moving_since;
}

// Performs the last step, during which the application waits: the variable data move. `commit` is false if the
// application ends instead. Collective over the merged communicator.
ControlPointResult MalleableJob::complete(bool commit) {
  OngoingReconfiguration& change = *change_;
  finish_moving();
  std::int64_t committed = 1;
  Blob blob;
  put_record(blob);
  if (change.all != ours_) {
    blob.put(static_cast<std::int64_t>(commit));
    blob.put(iteration_);
    blob.put(scheduled_);
    blob.put(wait_);
    blob.put(change.departure.sleepers);
    const bool changed = change.rank == 0 && arrays_.changed();
    blob.put(changed);
    if (changed) arrays_.brief(blob);
  }
  if (!blob.broadcast(change.all, 0)) end_job("MPI failed at the end of a reconfiguration", true);
  take_record(blob);
  if (change.all != ours_) {
    blob.take(committed);
    blob.take(iteration_);
    blob.take(scheduled_);
    blob.take(wait_);
    blob.take(change.departure.sleepers);
    bool arrays_changed = false;
    blob.take(arrays_changed);
    if (arrays_changed && !is_source()) arrays_.take_briefing(blob);
    settings_.schedule.erase(settings_.schedule.begin(), settings_.schedule.upper_bound(scheduled_));
  }
  watch_.need({});  // from here on processes may end as planned
  if (!committed) return part_again("the application ended first");
  // Arrays that came, or got another length, while constant data moved have no plan yet.
  share_out();
  arrays_.plan(change.roles, change.rank);
  move_blocking(true);
  move_blocking(false);
  change.record.variable = change.lap();
  return resume();
}

// Put and take what rank 0 has measured so far, so that all processes know it afterwards.
void MalleableJob::put_record(Blob& blob) const {
  const event::Reconfiguration& record = change_->record;
  blob.put(last_resize_.number);
  blob.put(node_now() - change_->began);
  for (const Duration time :
       {record.wait, record.spawning, record.spawning_stopped, record.constant, record.constant_stopped})
    blob.put(time);
  for (const std::int64_t number : {record.bytes_moved, record.bytes_kept, change_->started, change_->woken})
    blob.put(number);
}

void MalleableJob::take_record(Blob& blob) {
  event::Reconfiguration& record = change_->record;
  Duration elapsed{};
  blob.take(last_resize_.number);
  blob.take(elapsed);
  for (Duration* time :
       {&record.wait, &record.spawning, &record.spawning_stopped, &record.constant, &record.constant_stopped})
    blob.take(*time);
  for (std::int64_t* number : {&record.bytes_moved, &record.bytes_kept, &change_->started, &change_->woken})
    blob.take(*number);
  if (is_source()) return;
  // The clocks of a new process begin here.
  change_->mark = node_now();
  change_->began = change_->mark - elapsed;
}

// Makes or removes the file by which `hocket run` sees that the processes which replaced those of the launcher have not
// finished (python/hocket/supervise.py).
void MalleableJob::note_unfinished(bool unfinished) {
  const char* file = std::getenv("HOCKET_UNFINISHED");
  if (!file) return;
  const Inside inside;
  if (unfinished)
    close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  else
    unlink(file);
}

// ---- resuming ----------------------------------------------------------------------------------------------------

// Lets each process continue in its new role: compute, sleep or leave. Collective over the merged communicator.
ControlPointResult MalleableJob::resume() {
  OngoingReconfiguration& change = *change_;
  // The role of this process from now on: it computes, sleeps or leaves.
  const bool stays =
      std::find(change.roles.targets.begin(), change.roles.targets.end(), change.rank) != change.roles.targets.end();
  const bool was_source = is_source();
  if (change.roles.sources != change.roles.targets) ++composition_;
  const bool sleeps = was_source && std::find(change.departure.sleep.begin(), change.departure.sleep.end(), rank_) !=
                                        change.departure.sleep.end();
  if (was_source) release_sleepers(sleepers_, change.departure.sleepers);
  const MPI_Comm targets = communicator_of_targets();
  const bool reports = was_source && rank_ == 0;
  std::string left = reports ? places_left() : std::string{};
  if (stays)
    go_to_targets(targets);
  else
    leave_sources();
  if (stays && !was_source && rank_ == 0) note_unfinished(true);
  watch_.done();
  finish_record(reports, std::move(left));
  change_.reset();
  if (stays) {
    announce();
    return ControlPointResult::resized;
  }
  if (sleeps) return sleep();
  left_ = true;
  return ControlPointResult::leave;
}

// Makes the communicator of the destination ranks, and frees the older ones. Collective over the merged communicator.
MPI_Comm MalleableJob::communicator_of_targets() {
  OngoingReconfiguration& change = *change_;
  const auto& targets = change.roles.targets;
  const auto place = std::find(targets.begin(), targets.end(), change.rank);
  MPI_Comm of_targets = change.all;
  const bool everyone =
      static_cast<int>(targets.size()) == mpi::size_of(change.all) && std::is_sorted(targets.begin(), targets.end());
  if (!everyone) {
    const int color = place != targets.end() ? 0 : MPI_UNDEFINED;
    if (HOCKET_PMPI(Comm_split)(change.all, color, static_cast<int>(place - targets.begin()), &of_targets) !=
        MPI_SUCCESS)
      end_job("MPI failed at the end of a reconfiguration", true);
    if (change.all != ours_) mpi::free(change.all);
  }
  if (ours_ != of_targets) mpi::free(ours_);
  mpi::free(programs_);
  return of_targets;
}

// Makes this process one of the computing ones, with the new communicator and data. Collective over `targets`.
void MalleableJob::go_to_targets(MPI_Comm targets) {
  OngoingReconfiguration& change = *change_;
  ours_ = targets;
  HOCKET_PMPI(Comm_set_errhandler)(ours_, mpi::errors_return());
  rank_ = mpi::rank_in(ours_);
  size_ = mpi::size_of(ours_);
  arrays_.adopt();
  weights_ = change.weights;
  measure_anew(change.roles.sources != change.roles.targets);
  sleepers_ = change.departure.sleepers;
  renew_programs_communicator();
  processes_ = gather_processes(ours_);
  open_connections();
  watch_others();
}

// Opens the connections between all ranks. MPICH over TCP opens one with the first message, and only while both ends
// are in MPI: otherwise the decision of the next control point would not leave rank 0 while it computes. Collective.
void MalleableJob::open_connections() {
  constexpr int pushes = 50;
  std::int64_t word = 0;
  MPI_Request request = mpi::no_request();
  if (!mpi::broadcast(ours_, 0, &word, sizeof word) || HOCKET_PMPI(Ibarrier)(ours_, &request) != MPI_SUCCESS ||
      !mpi::wait_asleep(request))
    end_job("MPI failed when the communicator of the destination ranks was made", true);
  for (int i = 0; i < pushes; ++i) {
    mpi::push(ours_);
    sched_yield();
  }
}

// Makes this process one that does not compute: it holds no data, and no other process matters to it.
void MalleableJob::leave_sources() {
  ours_ = mpi::no_comm();
  rank_ = -1;
  size_ = 0;
  arrays_.forget();
  watch_.need({});
}

// Duplicates the communicator for the program, with the error handler that it set for MPI_COMM_WORLD. hocket's own
// communicator returns errors, which the program may not expect.
void MalleableJob::renew_programs_communicator() {
  if (HOCKET_PMPI(Comm_dup)(ours_, &programs_) != MPI_SUCCESS)
    end_job("MPI failed when the program's communicator was made", true);
  MPI_Errhandler handler;
  if (HOCKET_PMPI(Comm_get_errhandler)(mpi::world(), &handler) != MPI_SUCCESS) return;
  HOCKET_PMPI(Comm_set_errhandler)(programs_, handler);
  HOCKET_PMPI(Errhandler_free)(&handler);
}

// Gathers the identities of all processes of `comm`, by rank. Collective; sleeps while it waits.
std::vector<ProcessInfo> MalleableJob::gather_processes(MPI_Comm comm) const {
  std::vector<ProcessInfo> all(static_cast<std::size_t>(mpi::size_of(comm)));
  MPI_Request request = mpi::no_request();
  if (HOCKET_PMPI(Iallgather)(&info_, sizeof info_, mpi::byte_type(), all.data(), sizeof info_, mpi::byte_type(), comm,
                              &request) != MPI_SUCCESS ||
      !mpi::wait_asleep(request))
    end_job("MPI failed when processes were listed", true);
  return all;
}

// Watches the processes that the launcher does not: rank 0 and the joined processes watch each other.
void MalleableJob::watch_others() {
  watch(processes_, [this](std::size_t rank) {
    return rank_ == 0 ? processes_[rank].joined != 0 : info_.joined != 0 && rank == 0;
  });
}

// Watches processes while data move and the application computes. Nothing else bounds the wait for one that has died: a
// launcher of Open MPI does not always end the others if they were spawned. New processes watch rank 0, which tells
// them when the move is over.
void MalleableJob::watch_all() {
  watch(change_->processes, [this](std::size_t rank) { return is_source() || rank == 0; });
}

// Watches those processes of this node for which `matters(rank)` is true; on other nodes /proc shows nothing of them.
void MalleableJob::watch(const std::vector<ProcessInfo>& processes, const std::function<bool(std::size_t)>& matters) {
  std::vector<std::pair<int, std::string>> needed;
  for (std::size_t rank = 0; rank < processes.size(); ++rank) {
    const ProcessInfo& other = processes[rank];
    if (other.host == info_.host && other.pid != info_.pid && matters(rank))
      needed.emplace_back(static_cast<int>(other.pid), "rank " + std::to_string(rank));
  }
  watch_.need(std::move(needed));
}

// Returns the places that processes have left, while `processes_` still are the sources; "" if that is too long.
std::string MalleableJob::places_left() const {
  std::string left;
  for (const auto* ranks : {&change_->departure.end, &change_->departure.sleep}) {
    for (const int rank : *ranks) {
      const ProcessInfo& process = processes_[static_cast<std::size_t>(rank)];
      left.append(left.empty() ? "" : " ").append(process.node_name());
      if (process.core >= 0) left.append(":").append(std::to_string(process.core));
      if (left.size() > longest_nodes) return {};
    }
  }
  return left;
}

// Completes the record with the times and numbers of the reconfiguration. Rank 0 of the sources also sends it.
void MalleableJob::finish_record(bool reports, std::string left) {
  OngoingReconfiguration& change = *change_;
  event::Reconfiguration& record = change.record;
  const auto sleepers_before = static_cast<std::int64_t>(change.sleepers_before.size());
  record.done = true;
  record.sources = static_cast<std::int64_t>(change.roles.sources.size());
  record.targets = static_cast<std::int64_t>(change.roles.targets.size());
  record.iteration = iteration_;
  record.resuming = change.lap();
  record.stopped = record.spawning_stopped + record.constant_stopped + record.variable + record.resuming;
  record.started = change.started;
  record.woken = change.woken;
  record.put_to_sleep = static_cast<std::int64_t>(change.departure.sleep.size());
  const auto sleepers_after = static_cast<std::int64_t>(change.departure.sleepers.size());
  // Sleepers end when the last computing process of their world has gone.
  const std::int64_t released = sleepers_before - change.woken + record.put_to_sleep - sleepers_after;
  record.ended = static_cast<std::int64_t>(change.departure.end.size()) + std::max<std::int64_t>(0, released);
  if (change.roles.sources != change.roles.targets)
    last_resize_ = {last_resize_.number + 1, record, node_now() - change.began, change.methods};
  if (!reports) return;
  // In a baseline this process is none of the destination ranks: their first one reports where they run (MALLEABLE).
  if (rank_ >= 0) record.nodes = text_of(counts_by_node(processes_), longest_nodes);
  record.left = std::move(left);
  move_cost_.learn(static_cast<double>(record.bytes_moved), to_s(record.constant_stopped + record.variable),
                   to_s(record.resuming));
  tell_record(record, change.wanted_on);
}

}  // namespace hocket::runtime
