#include "malleable/job.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <utility>

#include "base/clock.hpp"
#include "base/host_name.hpp"
#include "base/node_counts.hpp"
#include "base/places.hpp"
#include "malleable/hocketd_link.hpp"
#include "mpi_shim/calls.hpp"
#include "mpi_shim/end_job.hpp"
#include "mpi_shim/warn.hpp"
#include "process/reporter.hpp"

namespace hocket::runtime {
namespace {

// Time between two attempts of rank 0 to reach a lost hocketd.
constexpr Duration between_retries = std::chrono::seconds{1};

// Replaces methods that need something that this MPI library or this program does not have, with a warning for each.
Methods possible(Methods methods, const std::function<void(std::string_view)>& complain) {
  if (!mpi::has_threads() && methods.spawns_in_thread()) {
    complain("HOCKET_SPAWN_STRATEGY=" + std::string(name_of(methods.spawn_strategy)) +
             " needs MPI_Init_thread with MPI_THREAD_MULTIPLE: the application waits for the spawn instead");
    methods.spawn_strategy = methods.foreground();
  }
  if (!mpi::has_threads() && methods.redistribution_strategy == Strategy::thread) {
    complain(
        "HOCKET_REDISTRIBUTION_STRATEGY=thread needs MPI_Init_thread with MPI_THREAD_MULTIPLE: using wait-targets");
    methods.redistribution_strategy = Strategy::wait_targets;
  }
#ifdef OPEN_MPI
  if (methods.spawn_strategy == SpawnStrategy::join) {
    complain("HOCKET_SPAWN_STRATEGY=join: Open MPI cannot connect processes that it did not start: using plain");
    methods.spawn_strategy = SpawnStrategy::plain;
  }
  if (methods.redistribution == Method::rma_lock || methods.redistribution == Method::rma_lock_all) {
    complain("HOCKET_REDISTRIBUTION=" + std::string(Names::of(methods.redistribution)) +
             ": Open MPI hangs when it makes a window over old and new processes: using p2p");
    methods.redistribution = Method::p2p;
  }
  const char* collectives = std::getenv("OMPI_MCA_coll");
  if (!collectives || std::string_view(collectives).find("^han") == std::string_view::npos)
    complain("Open MPI may hang in collectives after a resize unless OMPI_MCA_coll=^han is set (hocket run does)");
#endif
  return methods;
}

// Splits a text of places into nodes and cores. The sender has checked the text and their number.
void take_places(const std::string& text, std::vector<std::string>& nodes, std::vector<std::int64_t>& cores) {
  const auto places = places_of(text);
  if (!places) return;
  for (const ProcessPlace& place : places.value()) {
    nodes.push_back(place.node);
    cores.push_back(place.core);
  }
}

}  // namespace

bool MalleableJob::is_joining() { return std::getenv("HOCKET_JOIN") || mpi::is_spawned(); }

std::unique_ptr<MalleableJob> MalleableJob::create(MPI_Comm comm) {
  std::unique_ptr<MalleableJob> job(new MalleableJob);
  job->given_ = comm;
  job->world_ = mpi::duplicate(comm);
  job->ours_ = job->programs_ = mpi::no_comm();
  if (job->world_ == mpi::no_comm()) return nullptr;
  const int rank = mpi::rank_in(job->world_);
  const int size = mpi::size_of(job->world_);
  const char* join = std::getenv("HOCKET_JOIN");
  job->joined_ = is_joining();
  const auto complain = [&](std::string_view line) {
    if (rank == 0 && !job->joined_) warn(line);
  };
  job->settings_ = read_resize_settings(std::getenv, complain);
  job->settings_.methods = possible(job->settings_.methods, complain);

  const auto host = static_cast<std::int64_t>(std::hash<std::string>{}(host_name()) >> 1);
  std::int64_t world =
      static_cast<std::int64_t>(std::hash<std::string>{}(std::to_string(host) + " " + std::to_string(getpid()) + " " +
                                                         std::to_string(to_ns(node_now()))) >>
                                1);
  // All processes of one world get rank 0's number, which differs from every other world's.
  if (!mpi::broadcast(job->world_, 0, &world, sizeof world)) return nullptr;
  job->info_ = {getpid(), host, world, rank, size, join ? 1 : 0, own_core()};
  host_name().copy(job->info_.node.data(), job->info_.node.size() - 1);
  if (join) {
    // hocketd sets HOCKET_JOIN to "REQUEST PID PORT DOOR".
    std::istringstream words(join);
    words >> job->join_request_.value >> job->join_pid_ >> job->join_port_;
    std::getline(words >> std::ws, job->join_door_);
  }
  if (!job->joined_) {
    job->rank_ = rank;
    job->size_ = size;
    job->ours_ = mpi::duplicate(job->world_);
  }
  return job;
}

MalleableJob::~MalleableJob() { watch_.stop(); }

Duration OngoingReconfiguration::lap() {
  const Time now = node_now();
  return now - std::exchange(mark, now);
}

MPI_Comm MalleableJob::comm() const { return programs_ == mpi::no_comm() ? given_ : programs_; }

// ---- the start ---------------------------------------------------------------------------------------------------

Result<ControlPointResult> MalleableJob::begin(std::int64_t first) {
  begun_ = true;
  arrays_.begin();
  point_since_ = node_now();
  if (!joined_) {
    iteration_ = first;
    return begin_as_first();
  }
  const ControlPointResult state = join_others();
  control_point_ = iteration_;
  tell_progress();
  return state;
}

Result<ControlPointResult> MalleableJob::begin_as_first() {
  std::array<std::int64_t, 1> filled{arrays_.wrongly_filled().empty()};
  if (!mpi::smallest(ours_, filled)) end_job("MPI failed when processes were compared", true);
  if (!filled[0]) {
    begun_ = false;
    arrays_.resume_registration();
    // All ranks fail alike; only the ranks concerned can say what is wrong.
    const std::string here = arrays_.wrongly_filled();
    return Error{here.empty() ? "a matrix is wrongly filled in another process" : here};
  }
  if (!arrays_.count_nonzeros(ours_, rank_, size_)) end_job("MPI failed when the nonzeros were counted", true);
  processes_ = gather_processes(ours_);
  weights_.assign(static_cast<std::size_t>(size_), 1.0);
  renew_programs_communicator();
  announce();
  // `hocket run --malleable -n` may ask for another number of processes than the launcher has started.
  if (settings_.processes == 0 || settings_.processes == size_) return share_out_anew(weights_);
  wanted_.emplace();
  wanted_->processes = settings_.processes;
  asked_ = node_now();
  starting_up_ = true;
  const ControlPointResult state = start_reconfiguration(false);
  starting_up_ = false;
  if (state != ControlPointResult::go_on) return state;
  // The application could not grow; arrays whose distribution differs from the initial one must still be redistributed.
  return share_out_anew(weights_);
}

// ---- control points ----------------------------------------------------------------------------------------------

// A process enters the loop without a control point: the first iteration has none before it, and one that joins or is
// woken comes out of that of the others. One follows the last iteration only if it waits for a resize.
LoopStep MalleableJob::next(std::int64_t last) {
  ControlPointResult state = left_ ? ControlPointResult::leave : ControlPointResult::resized;
  last_ = last;
  if (iterating_ && ++iteration_ < last) state = point();
  if (state != ControlPointResult::leave && iteration_ >= last && finish_at_end() == ControlPointResult::leave)
    state = ControlPointResult::leave;
  iterating_ = state != ControlPointResult::leave && iteration_ < last;
  if (!iterating_) return LoopStep::end;
  return state == ControlPointResult::resized ? LoopStep::resized : LoopStep::iterate;
}

ControlPointResult MalleableJob::point() {
  control_every_ = control_point_ >= 0 ? iteration_ - control_point_ : 0;
  control_point_ = iteration_;
  note_busy_time();
  if (change_) change_->mark = node_now();
  const bool moves = change_ && change_->in_background;  // the new distribution is settled already
  if (balance_ && !moves) weights_ = told_speeds();      // also used by a resize that begins at this control point
  const Duration limit = std::exchange(wait_, {});
  ControlPointResult state = limit > Duration{} ? finish_pending(limit) : moves ? follow_moving() : follow(decide());
  if (state == ControlPointResult::go_on && balance_ && !change_) state = share_out_anew(weights_);
  balance_ = false;
  tell_progress();
  point_since_ = node_now();
  elsewhere_since_ = time_elsewhere();
  return state;
}

// Gives the monitor the progress of the program, which its reports of I/O phases contain.
void MalleableJob::tell_progress() {
  if (Reporter* const reporter = Reporter::find())
    reporter->control_point({control_point_, size_, control_every_, composition_}, rank_ == 0);
}

// Rank 0 decides, and all computing ranks learn the decision by one broadcast. Collective.
MalleableJob::ControlPointDecision MalleableJob::decide() {
  // No state but rank 0's takes part: commands of hocketd and the schedule may differ elsewhere.
  ControlPointDecision decision{ControlPointDecision::none};
  if (rank_ == 0) {
    decision = decide_about_resize();
    if (decision.kind == ControlPointDecision::none && !change_ && settings_.balance == Balance::always &&
        balances_itself() && rebalancing_.is_look_due())
      decision = {ControlPointDecision::look};
  }
  if (HOCKET_PMPI(Bcast)(&decision, sizeof decision, mpi::byte_type(), 0, ours_) != MPI_SUCCESS)
    end_job("MPI failed at a control point", true);
  // Without it, MPI may send the decision only in its next call, after the program has computed.
  mpi::push(ours_);
  return decision;
}

// Decides if a resize begins, continues, or is given up. In rank 0.
MalleableJob::ControlPointDecision MalleableJob::decide_about_resize() {
  take_commands();
  if (change_) return decide_about_start();
  if (is_start_due()) return {ControlPointDecision::start, balances_itself()};
  return {};
}

// Decides about a start of processes in progress: whether they are ready, late or lost. In rank 0.
MalleableJob::ControlPointDecision MalleableJob::decide_about_start() {
  if (!change_->start && change_->failure.empty()) {
    if (hocketd::is_lost() || hocketd::number_of_connection() != change_->asked_on)
      change_->failure = "hocketd was lost while it started processes";
    else if (!change_->ready && node_now() - change_->began > settings_.limit)
      change_->failure = "the joining processes did not arrive within " +
                         std::to_string(static_cast<int>(to_s(settings_.limit))) + " s (HOCKET_RESIZE_MAX_S)";
  }
  if (!change_->failure.empty()) return {ControlPointDecision::cancel};
  const bool started = change_->start ? change_->start->ready() : change_->ready;
  return {started ? ControlPointDecision::unite : ControlPointDecision::none};
}

// Takes all commands of hocketd that have come, and reconnects if it was lost. In rank 0.
void MalleableJob::take_commands() {
  const Time now = node_now();
  if (hocketd::is_lost() && now - looked_ > between_retries) {
    looked_ = now;
    connection()->reconnect();
  }
  if (hocketd::number_of_connection() != announced_) announce();
  // A new connection means another hocketd, or one that has forgotten the request.
  const bool is_lost = hocketd::is_lost() || wanted_on_ != hocketd::number_of_connection();
  if (wanted_ && wanted_->request && is_lost)
    refuse_wanted("the connection to hocketd ended, and the requester was informed");
  if (requested_ != 0 && (hocketd::is_lost() || requested_on_ != hocketd::number_of_connection()))
    drop_request("the connection to hocketd ended before it answered");
  while (const auto command = hocketd::next_command()) take_command(*command, now);
}

void MalleableJob::take_command(const event::Body& command, Time now) {
  if (const auto* reconfigure = std::get_if<event::Reconfigure>(&command)) {
    wanted_ = *reconfigure;
    wanted_on_ = hocketd::number_of_connection();
    wanted_here_ = requested_ == reconfigure->processes;
    wanted_methods_ = wanted_here_ ? requested_methods_ : reconfigure->methods;
    if (wanted_here_) requested_ = 0;
    asked_ = reconfigure->asked.time_since_epoch().count() ? reconfigure->asked : now;
  }
  if (const auto* withdrawn = std::get_if<event::WithdrawResize>(&command)) withdraw(withdrawn->request);
  // hocketd answers the program's own request, too; one that was carried out has been reported by this process.
  if (const auto* refused = std::get_if<event::Reconfiguration>(&command);
      refused && !refused->done && !refused->request && requested_ != 0)
    drop_request(refused->reason);
  if (const auto* ready = std::get_if<event::ProcessesReady>(&command);
      ready && change_ && ready->request.value == static_cast<std::uint64_t>(change_->processes_asked)) {
    change_->ready = ready->failed.empty();
    change_->failure = ready->failed;
  }
}

// Forgets the program's request, which hocketd has not granted. In rank 0.
void MalleableJob::drop_request(const std::string& reason) {
  warn("not resized from " + std::to_string(size_) + " to " + std::to_string(requested_) + " processes: " + reason);
  requested_ = 0;
}

// hocketd must know of a resize before it begins, since other applications may need the cores. Without hocketd the next
// control point begins it.
void MalleableJob::request(std::int64_t processes, const std::string& methods) {
  if (rank_ != 0) return;
  if (hocketd::tell(event::Resize{"", processes, false, 0, ""})) {
    requested_ = processes;
    requested_methods_ = methods;
    requested_on_ = hocketd::number_of_connection();
    return;
  }
  if (wanted_) refuse_wanted("the program has requested " + std::to_string(processes) + " processes");
  wanted_.emplace();
  wanted_->processes = processes;
  wanted_methods_ = methods;
  wanted_here_ = true;
  asked_ = node_now();
}

// True if a resize must begin at this control point; refuses one that is impossible. In rank 0.
bool MalleableJob::is_start_due() {
  if (!wanted_) {
    const auto next = settings_.schedule.begin();
    if (next == settings_.schedule.end() || next->first > iteration_) return false;
    wanted_.emplace();
    wanted_->processes = next->second.processes;
    wanted_methods_ = next->second.methods;
    asked_ = node_now();
    scheduled_ = next->first;
    settings_.schedule.erase(next);
  }
  std::string refusal;
  if (wanted_->at_iteration > 0 && wanted_->at_iteration < iteration_ && !wanted_late_)
    refusal = "iteration " + std::to_string(wanted_->at_iteration) + " is past, the application has done " +
              std::to_string(iteration_);
  else if (wanted_->processes == size_)
    refusal = "it has " + std::to_string(size_) + " processes already";
  else if (wanted_->processes < 1)
    refusal = std::to_string(wanted_->processes) + " processes: it needs at least one";
  else if (const auto named = parse_methods(wanted_methods_, settings_.methods); !named)
    refusal = named.error().text;
  wanted_late_ = true;  // it came in time: its control point may come after its iteration
  if (refusal.empty()) return wanted_->at_iteration <= iteration_;
  refuse_wanted(refusal);
  return false;
}

// Withdraws a requested resize. One that has begun continues, which hocketd learns.
void MalleableJob::withdraw(RequestId request) {
  if (wanted_ && wanted_->request == request) return refuse_wanted("it was withdrawn before it began");
  if (change_ && change_->record.request == request) hocketd::tell(event::WithdrawResize{request, true});
}

// Refuses the requested resize, and reports the reason to hocketd, or on stderr if there is no hocketd.
void MalleableJob::refuse_wanted(const std::string& reason) {
  event::Reconfiguration record;
  record.request = wanted_->request;
  record.reason = reason;
  record.sources = size_;
  record.targets = wanted_->processes;
  record.iteration = iteration_;
  record.start = node_now();
  wanted_.reset();
  wanted_late_ = false;
  const bool told = tell_record(record, wanted_on_);
  if (std::exchange(wanted_here_, false) || !told) warn("not resized: " + reason);
}

// Sends the record to hocketd; returns false if there is none. A hocketd other than the one that requested the resize
// counts its requests anew; to it, the resize is reported as nobody's.
bool MalleableJob::tell_record(event::Reconfiguration record, std::int64_t wanted_on) {
  if (wanted_on != hocketd::number_of_connection()) record.request = {};
  return hocketd::tell(record);
}

// Carries out rank 0's decision. Collective.
ControlPointResult MalleableJob::follow(ControlPointDecision decision) {
  switch (decision.kind) {
    case ControlPointDecision::start: return start_reconfiguration(decision.by_speed != 0);
    case ControlPointDecision::look: return look_at_balance();
    case ControlPointDecision::unite: return unite();
    case ControlPointDecision::cancel: give_up(change_->failure); return ControlPointResult::go_on;
    default: return ControlPointResult::go_on;
  }
}

// Begins a reconfiguration at this control point. A merge with fewer processes needs no new ones and moves data at
// once. `by_speed`: weighted arrays are shared out by the speeds of now. Collective.
ControlPointResult MalleableJob::start_reconfiguration(bool by_speed) {
  change_.emplace();
  change_->speeds = by_speed ? speeds_now() : weights_;
  change_->all = ours_;
  change_->rank = rank_;
  change_->began = change_->mark = node_now();
  // Kept to restore the state if the reconfiguration is given up.
  change_->sleepers_before = sleepers_;
  brief_sources();
  const bool shrinks = change_->targets < size_ && change_->methods.spawn == Spawn::merge;
  return shrinks ? shrink() : start_growth();
}

// Returns the methods of the requested resize: those that the request names, and otherwise those of the job's settings.
// In rank 0.
Methods MalleableJob::methods_wanted() const {
  auto methods = parse_methods(wanted_methods_, settings_.methods);
  if (!methods) warn(methods.error().text + ": using " + settings_.methods.text());
  return methods ? possible(methods.value(), warn) : settings_.methods;
}

// Tells all source ranks what rank 0 wants, and its methods. Collective.
void MalleableJob::brief_sources() {
  OngoingReconfiguration& change = *change_;
  Blob blob;
  if (rank_ == 0) {
    change.methods = methods_wanted();
    if (starting_up_) {
      change.methods.spawn_strategy = change.methods.foreground();
      change.methods.redistribution_strategy = Strategy::blocking;
    }
    change.places = wanted_->places;
    change.leave = wanted_->leave;
    take_places(change.places, change.nodes, change.cores);
    change.targets = wanted_->processes;
    change.wanted_on = wanted_on_;
    change.wanted_here = std::exchange(wanted_here_, false);
    begin_record(wanted_->request, asked_);
    blob.put(change.targets);
    blob.put(change.methods);
    blob.put(change.places);
    blob.put(change.leave);
    wanted_.reset();
    wanted_late_ = false;
  }
  if (!blob.broadcast(ours_, 0)) end_job("MPI failed at a control point", true);
  if (rank_ == 0) return;
  blob.take(change.targets);
  blob.take(change.methods);
  blob.take(change.places);
  blob.take(change.leave);
  take_places(change.places, change.nodes, change.cores);
}

// Fills the first part of the record, which describes the reconfiguration for hocketd. In rank 0.
void MalleableJob::begin_record(RequestId request, Time asked) {
  event::Reconfiguration& record = change_->record;
  const Methods& methods = change_->methods;
  record.request = request;
  record.sources = size_;
  record.targets = change_->targets;
  record.iteration = iteration_;
  record.spawn = name_of(methods.spawn);
  record.spawn_strategy = name_of(methods.spawn_strategy);
  record.redistribution = Names::of(methods.redistribution);
  record.redistribution_strategy = Names::of(methods.redistribution_strategy);
  record.start = change_->began;
  record.wait = change_->began - asked;
}

// Starts the time limit of a reconfiguration when all source ranks are in this control point: until then some compute,
// and the program itself decides how long. Collective.
void MalleableJob::limit_change() {
  mpi::meet(ours_);
  watch_.expect(text_of_change(), settings_.limit);
}

// Gives up the reconfiguration before anything has changed, and reports the reason to hocketd.
void MalleableJob::give_up(const std::string& reason) {
  watch_.done();
  if (rank_ == 0) {
    event::Reconfiguration& record = change_->record;
    record.reason = reason;
    record.stopped = record.spawning_stopped + record.constant_stopped + (node_now() - change_->mark);
    const bool told = tell_record(record, change_->wanted_on);
    if (!told || starting_up_ || change_->wanted_here)
      warn("not resized from " + std::to_string(record.sources) + " to " + std::to_string(record.targets) +
           " processes: " + reason);
    if (!change_->port.empty()) close_port(change_->port);
  }
  change_.reset();
}

// Sends MALLEABLE, which makes this member the one that hocketd resizes. In rank 0.
void MalleableJob::announce() {
  if (rank_ != 0) return;
  announced_ = hocketd::number_of_connection();
  event::Malleable malleable;
  malleable.processes = size_;
  malleable.iteration = iteration_;
  malleable.sleeping = static_cast<std::int64_t>(sleepers_.size());
  malleable.method = settings_.methods.text();
  malleable.flop_per_iteration = flop_per_iteration_;
  malleable.nodes = text_of(counts_by_node(processes_), longest_nodes);
  hocketd::tell(malleable);
}

void MalleableJob::declare_flop(double per_iteration) {
  if (flop_per_iteration_ == per_iteration) return;
  flop_per_iteration_ = per_iteration;
  announced_ = -1;  // sends it at the next control point
}

// ---- the end -----------------------------------------------------------------------------------------------------

// Waits until all ranks are here, so that no process that others watch ends early, and last messages have arrived.
void MalleableJob::part_at_the_end() {
  watch_.need({});
  MPI_Request request = mpi::no_request();
  if (HOCKET_PMPI(Ibarrier)(ours_, &request) == MPI_SUCCESS) mpi::wait_asleep(request);
}

// A reconfiguration in progress is given up, so that its new processes end as well.
void MalleableJob::end() {
  if (begun_ && !left_) {
    if (change_ && change_->in_background)
      complete(false);
    else if (change_)
      give_up_starting("the application ended first");
    release_sleepers(sleepers_, {});
    part_at_the_end();
    if (rank_ == 0) note_unfinished(false);
  }
  watch_.stop();
  arrays_.free();
  mpi::free(programs_);
  mpi::free(ours_);
  mpi::free(world_);
}

}  // namespace hocket::runtime
