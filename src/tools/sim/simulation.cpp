#include "sim/simulation.hpp"

#include <algorithm>
#include <utility>

#include "allocation/choices.hpp"
#include "event/part_names.hpp"

namespace hocket::sim {
namespace {

// The names of the calls that requests announce.
constexpr const char* writing = "MPI_File_write_all";
constexpr const char* reading = "MPI_File_read_all";
constexpr double page_cache = 1e18;  // bytes per second: so fast that no access slows down another
// Smallest bandwidth share of a grant that is obeyed; with 0 a transfer would never end.
constexpr double least_share = 1e-6;
constexpr Duration longest_answer = std::chrono::seconds{5};  // that `hocket run` waits for CORES_FOR beyond its bound
constexpr const char* resize_method = "merge plain, collective blocking";

double seconds_at(Time t) { return to_s(t - Simulation::start); }
Time time_at(double s) { return Simulation::start + from_s(s); }

// Returns the job of an application, as its HELLO names it.
std::string job_of(std::size_t i) { return "job" + std::to_string(i + 1); }

std::int64_t share_of_a_process(double bytes, std::int64_t processes) {
  return static_cast<std::int64_t>(bytes / static_cast<double>(processes));
}

}  // namespace

Simulation::Simulation(const Scenario& scenario, std::unique_ptr<Controller> controller)
    : scenario_(scenario),
      controller_(std::move(controller)),
      members_(scenario.applications.size()),
      servers_(scenario, start),
      forwarded_(scenario),
      free_nodes_(scenario.nodes) {
  daemon_.node = "node1";
  for (const TargetSpec& target : scenario.targets) {
    targets_.emplace_back(target.bandwidth, target.interference, target.sharing, target.cache,
                          std::max<std::size_t>(1, target.parts.size()));
  }
  targets_.emplace_back(page_cache);
  users_.resize(targets_.size());
  bytes_.resize(targets_.size());
  applications_.reserve(scenario.applications.size());
  std::int64_t cores_before = 0;
  for (const ApplicationSpec& spec : scenario.applications) {
    const auto i = static_cast<QueueNumber>(applications_.size());
    applications_.emplace_back(spec, scenario.targets, scenario.seed);
    // Place the applications on the nodes one after the other, in the order of the scenario.
    const std::int64_t node = cores_before / scenario.cores_per_node % scenario.nodes + 1;
    members_[i].self = {MemberId{i + 1}, "node" + std::to_string(node), {}};
    cores_before += spec.processes;
    queue_.set(i, time_at(spec.start_s));
  }
  if (controller_) controller_->watch(applications_);
}

SimulationReport Simulation::run(const bool& stop) {
  join_servers();
  for (const TargetSpec& target : scenario_.targets) {
    if (target.policy.empty() || !controller_) continue;
    send(daemon_, event::SetPolicy{target.policy, {}, {}, target.name, target.policy_allows});
  }
  // Queue entries carry no payload: the number says whose state to look at.
  const Time until = scenario_.until_s > 0 ? time_at(scenario_.until_s) : Time::max();
  while (!stop && !queue_.empty() && queue_.top_key() <= until) {
    now_ = queue_.top_key();
    ++events_;
    happen(queue_.top());
  }
  if (until != Time::max()) now_ = std::max(now_, std::min(until, queue_.empty() ? now_ : until));
  cut_off();
  return report();
}

void Simulation::happen(QueueNumber number) {
  if (number < applications_.size()) return application_event(number);
  if (number < number_of_tick()) return target_event(static_cast<QueueNumber>(number - applications_.size()));
  if (number == number_of_servers()) return servers_event();
  if (number > number_of_tick()) return tell_phase(number - number_of_tick() - 1);
  // A coordinator whose deadline has already passed would ask for a TICK at once, again and again. Time must advance.
  send(daemon_, event::Tick{});
  if (queue_.contains(number_of_tick())) {
    queue_.set(number_of_tick(), std::max(*controller_->deadline(), now_ + Duration{1}));
  }
}

void Simulation::application_event(QueueNumber i) {
  SimulatedApplication& application = applications_[i];
  switch (application.state) {
    case ApplicationState::not_started: return arrive(i);
    case ApplicationState::asking: return begin(i);
    // An entry in these states means that HOCKET_MAX_WAIT_S is over.
    case ApplicationState::waiting:
    case ApplicationState::paused: return give_up_waiting(i);
    case ApplicationState::io: return members_[i].pauses_now ? pause(i) : renew(i);
    case ApplicationState::between: application.gap_done(members_[i].gap); return start_operation(i);
    case ApplicationState::stopped: return end_resize(i);
    case ApplicationState::ended: return;
    case ApplicationState::computing: break;
  }
  // The application computed, so its entry means that it reached next_stop().
  const std::int64_t reached = application.next_stop();
  application.compute_until(now_, reached);
  if (application.dies_at(reached)) return die(i);
  if (application.is_phase_due()) return approach_operation(i);
  application.state = ApplicationState::stopped;
  control_point(i);
}

// ---- beginning, computing, ending ----------------------------------------------------------------------------------

void Simulation::arrive(QueueNumber i) {
  members_[i].since = now_;
  if (!scenario_.fifo) return ask_or_begin(i);
  applications_[i].state = ApplicationState::asking;
  queue_.erase(i);
  waiting_for_nodes_.push_back(i);
  start_queued();
}

// Asks for cores first if the scenario says so, as `hocket run` does. CORES_FOR lets the application begin. If it does
// not come, the application begins nevertheless.
void Simulation::ask_or_begin(QueueNumber i) {
  SimulatedApplication& application = applications_[i];
  const ApplicationSpec& spec = application.spec();
  if (!controller_ || spec.wait_for_cores_s <= 0) return begin(i);
  application.state = ApplicationState::asking;
  const Duration longest = from_s(spec.wait_for_cores_s);
  queue_.set(i, now_ + longest + longest_answer);
  send(members_[i].self, event::AskCores{job_of(i), spec.name, spec.processes, longest});
}

void Simulation::start_queued() {
  while (!waiting_for_nodes_.empty()) {
    const QueueNumber first = waiting_for_nodes_.front();
    const std::int64_t nodes = applications_[first].spec().nodes;
    if (nodes > free_nodes_) return;
    waiting_for_nodes_.pop_front();
    free_nodes_ -= nodes;
    ask_or_begin(first);
  }
}

void Simulation::give_nodes_back(QueueNumber i) {
  if (!scenario_.fifo) return;
  free_nodes_ += applications_[i].spec().nodes;
  start_queued();
}

void Simulation::begin(QueueNumber i) {
  SimulatedApplication& application = applications_[i];
  const ApplicationSpec& spec = application.spec();
  if (application.state == ApplicationState::asking) application.result.cores_wait_s = to_s(now_ - members_[i].since);
  application.state = ApplicationState::stopped;
  if (controller_) {
    event::Hello hello{job_of(i), spec.name, spec.program, "mpich", {}, 0, spec.processes};
    if (forwarded_.forwards(i)) {
      hello.mpi.clear();
      hello.forwards = true;
      hello.compute_nodes = spec.nodes;
      if (spec.measured) hello.curve = allocation::text_of(spec.bandwidths);
    }
    send(members_[i].self, std::move(hello));
    if (!spec.policy.empty()) send(daemon_, event::SetPolicy{spec.policy, {}, members_[i].self.application});
    // The daemon sends the profile points, as it does from its store in a real run.
    for (event::Profile& point : application.profile()) {
      point.app = members_[i].app;
      send(daemon_, point);
    }
    if (spec.malleable) {
      send(members_[i].self, event::Malleable{spec.processes, 0, 0, resize_method, spec.flop_per_iteration});
    }
  }
  go_on(i);
}

void Simulation::go_on(QueueNumber i) {
  SimulatedApplication& application = applications_[i];
  if (application.is_done()) return end(i);
  if (application.is_period_over()) application.begin_period();
  if (application.is_phase_due()) return approach_operation(i);
  application.compute(now_);
  schedule(i);
}

void Simulation::schedule(QueueNumber i) { queue_.set(i, applications_[i].time_of(applications_[i].next_stop())); }

void Simulation::end(QueueNumber i) {
  SimulatedApplication& application = applications_[i];
  const ApplicationResult& result = application.result;
  application.state = ApplicationState::ended;
  application.result.end_s = seconds_at(now_);
  queue_.erase(i);
  count_served(i);
  if (!controller_) {
    give_nodes_back(i);
    return end_with_applications();
  }
  // A real application closes its open phase before BYE.
  if (members_[i].phase_open) tell_phase(i);
  const auto processes = static_cast<double>(application.processes());
  event::Bye bye;
  bye.cpu = from_s(application.process_seconds());
  bye.io = from_s(result.io_s * processes);
  bye.wait = from_s(result.wait_s * processes);
  bye.io_calls = result.operations * application.processes();
  bye.bytes_read = static_cast<std::int64_t>(result.bytes_read);
  bye.bytes_written = static_cast<std::int64_t>(result.bytes_written);
  send(members_[i].self, bye);
  give_nodes_back(i);
  end_with_applications();
}

// The kernel closes the socket of a dead application, so the coordinator receives LOST at once.
void Simulation::die(QueueNumber i) {
  applications_[i].state = ApplicationState::ended;
  applications_[i].result.end_s = seconds_at(now_);
  queue_.erase(i);
  queue_.erase(number_of_monitor(i));
  count_served(i);
  if (controller_) send(members_[i].self, event::Lost{"its process died, as the scenario says"});
  give_nodes_back(i);
  end_with_applications();
}

// ---- control points ------------------------------------------------------------------------------------------------

// Stops the application at the end of an iteration, after the iteration's I/O phase.
void Simulation::control_point(QueueNumber i) {
  SimulatedApplication& application = applications_[i];
  application.pass_control_point();
  if (!application.is_wanted_now()) return go_on(i);
  const std::string refusal = application.refusal();
  if (!refusal.empty()) {
    tell_given_up(i, {application.drop_wanted(), now_, 0, false}, refusal);
    return go_on(i);
  }
  SimulatedResize& resize = members_[i].resize = application.take_wanted(now_);
  queue_.set(i, now_ + application.cost(resize, scenario_.reconfiguration));
}

// Reports a reconfiguration that was refused or failed (RECONFIGURATION without `done`).
void Simulation::tell_given_up(QueueNumber i, const SimulatedResize& resize, const std::string& reason) {
  event::Reconfiguration record;
  record.request = resize.command.request;
  record.reason = reason;
  record.sources = applications_[i].processes();
  record.targets = resize.command.processes;
  record.iteration = applications_[i].iteration();
  record.start = resize.start;
  record.stopped = now_ - resize.start;
  send(members_[i].self, std::move(record));
}

// Reports the end of a reconfiguration. MALLEABLE follows, because the size in the application's declaration changed.
void Simulation::end_resize(QueueNumber i) {
  SimulatedApplication& application = applications_[i];
  const SimulatedResize resize = members_[i].resize;
  const std::int64_t sources = application.processes();
  application.resized(now_, resize);
  if (!resize.succeeds) {
    tell_given_up(i, resize, "its processes could not be started, as the scenario says");
    return go_on(i);
  }
  event::Reconfiguration record;
  record.request = resize.command.request;
  record.done = true;
  record.sources = sources;
  record.targets = application.processes();
  record.iteration = application.iteration();
  record.spawn = "merge";
  record.spawn_strategy = "plain";
  record.redistribution = "collective";
  record.redistribution_strategy = "blocking";
  record.start = resize.start;
  record.wait = resize.start - resize.command.asked;
  record.stopped = now_ - resize.start;
  record.started = resize.started;
  record.ended = std::max<std::int64_t>(0, record.sources - record.targets);
  send(members_[i].self, std::move(record));
  send(members_[i].self, event::Malleable{application.processes(), application.iteration(), 0, resize_method,
                                          application.spec().flop_per_iteration});
  go_on(i);
}

// ---- I/O phases ----------------------------------------------------------------------------------------------------

// Brings the application to its next operation; some computing may come first.
void Simulation::approach_operation(QueueNumber i) {
  SimulatedApplication& application = applications_[i];
  SimulatedMember& member = members_[i];
  member.gap = application.gap();
  if (member.gap == Duration{}) return start_operation(i);
  application.state = ApplicationState::between;
  member.since = now_;
  queue_.set(i, now_ + member.gap);
}

// Requests the operation. The target serves it at once if there is no controller.
void Simulation::start_operation(QueueNumber i) {
  SimulatedApplication& application = applications_[i];
  SimulatedMember& member = members_[i];
  const PhaseSpec& phase = application.phase();
  application.state = ApplicationState::waiting;
  member.since = now_;
  member.io_before = {};
  member.rest = application.operation_bytes();
  member.share = 1;
  member.target = static_cast<QueueNumber>(phase.cached ? targets_.size() - 1 : phase.target_index);
  if (!tells_operations(i)) return transfer(i);
  open_phase(i);
  wait(i);
  ++member.request.value;
  event::StartIo asked{member.request, phase.target, {}, phase.reads ? reading : writing};
  asked.bytes = static_cast<std::int64_t>(member.rest);
  asked.phase_bytes = application.announced();
  if (!phase.cached) asked.parts = event::text_of_parts(phase.parts);
  const SimulatedApplication::Parts parts = application.announced_parts();
  asked.files = parts.files;
  asked.rounds = parts.rounds;
  asked.bytes_per_round = parts.bytes_per_round;
  send(member.self, std::move(asked));
}

// An operation that begins within the gap belongs to the phase of the previous one, as in libhocket's monitor.
void Simulation::open_phase(QueueNumber i) {
  SimulatedMember& member = members_[i];
  queue_.erase(number_of_monitor(i));
  const Duration gap = from_s(applications_[i].spec().phase_gap_s);
  if (member.phase_open && gap > Duration{} && now_ - member.phase.end > gap) tell_phase(i);
  if (std::exchange(member.phase_open, true)) return;
  const std::int64_t index = member.phase.index;
  member.phase = {};
  member.phase.index = index;
  member.phase.start = now_;
}

// Bounds the wait by HOCKET_MAX_WAIT_S.
void Simulation::wait(QueueNumber i) {
  if (scenario_.max_wait_s > 0) {
    queue_.set(i, now_ + from_s(scenario_.max_wait_s));
  } else {
    queue_.erase(i);
  }
}

// Continues uncoordinated after the longest wait; FINISH_IO withdraws the request.
void Simulation::give_up_waiting(QueueNumber i) {
  SimulatedMember& member = members_[i];
  send(member.self, event::FinishIo{member.request, member.io_before, 0, false});
  member.share = 1;
  transfer(i);
}

// Transfers the rest of the operation, with or without a grant.
void Simulation::transfer(QueueNumber i) {
  SimulatedApplication& application = applications_[i];
  SimulatedMember& member = members_[i];
  const Duration waited = now_ - member.since;
  member.phase.wait += waited;
  application.result.wait_s += to_s(waited);
  // Waiting between two operations of a phase counts as an interruption of the phase.
  const bool between_operations = application.state == ApplicationState::waiting && application.operation() > 0;
  if (application.state == ApplicationState::paused || between_operations) application.result.paused_s += to_s(waited);
  application.result.interruptions += between_operations && waited > Duration{};
  const bool at_control_point = application.state == ApplicationState::waiting;
  application.state = ApplicationState::io;
  member.io_start = now_;
  begin_at_servers(i, at_control_point);
  start_transfer(i, std::exchange(member.rest, 0));
  if (member.coordinated) {
    queue_.set(i, now_ + renewal_);
  } else {
    queue_.erase(i);
  }
}

// Starts a transfer. `bytes_` counts it whole; a pause subtracts what it did not transfer.
void Simulation::start_transfer(QueueNumber i, double bytes) {
  SimulatedMember& member = members_[i];
  const QueueNumber target = member.target;
  const bool cached = target == scenario_.targets.size();
  const StripedBandwidth::PartNumbers all;
  member.most = most_rate(i);
  member.transfer = targets_[target].start(now_, bytes, member.most, weight_of(i),
                                           cached ? all : applications_[i].phase().part_numbers);
  bytes_[target] += bytes;
  auto& users = users_[target];
  if (member.transfer >= users.size()) users.resize(member.transfer + 1);
  users[member.transfer] = i;
  set_target_event(target);
}

// Returns the transfer's weight: the bandwidth share, at proportional targets times the number of writers.
double Simulation::weight_of(QueueNumber i) const {
  const SimulatedApplication& application = applications_[i];
  const SimulatedMember& member = members_[i];
  const bool cached = member.target == scenario_.targets.size();
  if (cached || scenario_.targets[member.target].sharing != BandwidthSharing::proportional) return member.share;
  return member.share * static_cast<double>(application.writers());
}

// Returns the transferred bytes of the present operation.
double Simulation::bytes_done(QueueNumber i) {
  const SimulatedApplication& application = applications_[i];
  const SimulatedMember& member = members_[i];
  double left = member.rest;
  if (member.transfer != no_transfer) left += targets_[member.target].left(now_, member.transfer);
  return std::max(0.0, application.operation_bytes() - left);
}

void Simulation::renew(QueueNumber i) {
  queue_.set(i, now_ + renewal_);
  send(members_[i].self, event::RenewIo{members_[i].request, static_cast<std::int64_t>(bytes_done(i))});
}

void Simulation::target_event(QueueNumber target) {
  ended_.clear();
  targets_[target].take_ended(now_, ended_);
  set_target_event(target);
  for (auto& number : ended_) {
    number = users_[target][number];
    members_[number].transfer = no_transfer;
  }
  // Transfers that ended together end in the order of applications, so the result does not depend on their numbers.
  std::sort(ended_.begin(), ended_.end());
  // Handling an ended transfer may start others, but ends none.
  for (const QueueNumber i : ended_) {
    if (members_[i].pausing) {
      pause(i);
    } else {
      end_operation(i);
    }
  }
}

void Simulation::set_target_event(QueueNumber target) {
  const Time next = targets_[target].next_end();
  const QueueNumber number = number_of_target(target);
  if (next != Time::max()) {
    queue_.set(number, next);
  } else {
    queue_.erase(number);
  }
}

// ---- pauses --------------------------------------------------------------------------------------------------------

// Takes a grant in. The application may wait for it, or already transfer, and then only its share changes.
void Simulation::obey(QueueNumber i, const event::GrantIo& grant) {
  const ApplicationState state = applications_[i].state;
  SimulatedMember& member = members_[i];
  if (grant.request != member.request) return;
  member.share = std::clamp(grant.share, least_share, 1.0);
  if (state == ApplicationState::waiting || state == ApplicationState::paused) {
    member.coordinated = true;
    transfer(i);
  } else if (state == ApplicationState::io && member.coordinated && member.transfer != no_transfer) {
    targets_[member.target].set_weight(now_, member.transfer, weight_of(i));
    set_target_event(member.target);
  }
}

// Prepares a pause. If the operation can stop before its end, its transfer ends with the present round or file.
// Otherwise FINISH_IO is the answer.
void Simulation::obey(QueueNumber i, const event::PauseIo& pause) {
  const SimulatedApplication& application = applications_[i];
  SimulatedMember& member = members_[i];
  const bool running =
      application.state == ApplicationState::io && member.coordinated && member.transfer != no_transfer;
  if (!running || pause.request != member.request || member.pausing) return;
  const QueueNumber target = member.target;
  const bool cached = target == scenario_.targets.size();
  const double rate = cached ? application.bandwidth() : scenario_.targets[target].most_bandwidth();
  const double nothing = rate * 1e-9;  // bytes that take less than a nanosecond
  const double done = bytes_done(i);
  const double stop = application.stop_after(done);
  const double most = application.operation_bytes() - nothing;
  member.unstopped = application.spec().grain == Grain::operation;
  if (done >= most || stop >= most) return;
  member.pausing = true;
  if (stop <= done + nothing) {
    member.pauses_now = true;
    queue_.set(i, now_);  // later, because this may be inside the answer to another application's event
    return;
  }
  bytes_[target] -= targets_[target].stop(now_, member.transfer);
  start_transfer(i, stop - done);
  member.rest = application.operation_bytes() - stop;
}

// Suspends the operation. PAUSED_IO reports its progress, and the application waits for another grant.
void Simulation::pause(QueueNumber i) {
  SimulatedApplication& application = applications_[i];
  SimulatedMember& member = members_[i];
  const QueueNumber target = member.target;
  if (member.transfer != no_transfer) {
    member.rest = targets_[target].stop(now_, member.transfer);
    bytes_[target] -= member.rest;
    member.transfer = no_transfer;
    set_target_event(target);
  }
  application.state = ApplicationState::paused;
  ++application.result.interruptions;
  member.io_before += now_ - member.io_start;
  member.since = now_;
  member.coordinated = member.pausing = member.pauses_now = false;
  end_at_servers(i);
  wait(i);
  const double done = bytes_done(i);
  send(member.self, event::PausedIo{member.request, static_cast<std::int64_t>(done), application.round_at(done)});
}

// ---- the ends of operations and I/O phases --------------------------------------------------------------------------

void Simulation::end_operation(QueueNumber i) {
  SimulatedApplication& application = applications_[i];
  SimulatedMember& member = members_[i];
  const bool last = application.operation() + 1 == application.phase().operations;
  const Duration io = member.io_before + (now_ - member.io_start);
  queue_.erase(i);
  end_at_servers(i);
  if (tells_operations(i)) add_to_phase(i, io);
  const double bytes = application.operation_bytes();
  application.operation_done(io);
  // The coordinator may answer these reports at once, so the state must be that of the next operation already.
  application.state = application.is_phase_due() ? ApplicationState::between : ApplicationState::stopped;
  if (tells_operations(i)) tell_operation(i, {io, share_of_a_process(bytes, application.processes()), last});
  if (application.is_phase_due()) return approach_operation(i);
  control_point(i);
}

// Adds an operation to the report of its phase. It uses the state at the end of the operation, before the next
// begins.
void Simulation::add_to_phase(QueueNumber i, Duration io) {
  const SimulatedApplication& application = applications_[i];
  const PhaseSpec& spec = application.phase();
  SimulatedMember& member = members_[i];
  event::IoPhase& phase = member.phase;
  phase.end = now_;
  phase.io += io;
  phase.cpu = from_s(application.result.compute_s - member.compute_before);
  ++phase.operations;
  const std::int64_t bytes = share_of_a_process(application.operation_bytes(), application.processes());
  (spec.reads ? phase.bytes_read : phase.bytes_written) += bytes;
  phase.target = spec.target;
  member.compute_s = application.result.compute_s;
  if (!application.spec().malleable) return;
  phase.iteration = application.last_control_point();
  phase.processes = application.processes();
  phase.control_every = application.spec().control_every;
}

// Reports the end of an operation. If a gap ends phases, the monitor reports the phase when the gap has passed.
void Simulation::tell_operation(QueueNumber i, const OperationResult& done) {
  const double gap_s = applications_[i].spec().phase_gap_s;
  SimulatedMember& member = members_[i];
  const bool over = gap_s == 0 && done.last;
  const bool unstopped = std::exchange(member.unstopped, false);
  if (std::exchange(member.coordinated, false)) {
    send(member.self, event::FinishIo{member.request, done.io, done.bytes, over, {}, unstopped});
  }
  if (over) return tell_phase(i);
  if (gap_s > 0) queue_.set(number_of_monitor(i), now_ + from_s(gap_s) + Duration{1});
}

// Reports the phase that has ended (IO_PHASE) and counts it.
void Simulation::tell_phase(QueueNumber i) {
  SimulatedMember& member = members_[i];
  queue_.erase(number_of_monitor(i));
  member.phase_open = false;
  member.compute_before = member.compute_s;
  send(member.self, member.phase);
  ++member.phase.index;
}

// ---- the coordinator -----------------------------------------------------------------------------------------------

// Obeying a command must not send an event: the commands are valid until the next one. The trace is written
// afterwards, when WELCOME has given the member its name.
void Simulation::send(const Controller::MemberIdentity& from, event::Body body) {
  const auto& commands = controller_->send(now_, from, std::move(body));
  for (const coordinator::Command& command : commands) obey(command);
  controller_->record(commands, [this](MemberId to) -> const Controller::MemberIdentity& {
    if (!to) return daemon_;
    const std::size_t number = to.value - 1;
    return number < members_.size() ? members_[number].self : server_members_[number - members_.size()];
  });
  set_tick();
}

void Simulation::obey(const coordinator::Command& command) {
  decisions_ += std::holds_alternative<event::Decision>(command.body);
  slow_servers_ += std::holds_alternative<event::SlowIoServer>(command.body);
  if (!command.to) return;
  const auto i = static_cast<QueueNumber>(command.to.value - 1);
  if (i >= members_.size()) return;  // I/O servers write through, so nothing is asked of them
  SimulatedApplication& application = applications_[i];
  SimulatedMember& member = members_[i];
  if (const auto* grant = std::get_if<event::GrantIo>(&command.body)) {
    obey(i, *grant);
  } else if (const auto* pause = std::get_if<event::PauseIo>(&command.body)) {
    obey(i, *pause);
  } else if (const auto* reconfigure = std::get_if<event::Reconfigure>(&command.body)) {
    if (application.state == ApplicationState::ended) return;
    application.want(now_, *reconfigure);
    if (application.state == ApplicationState::computing) schedule(i);
  } else if (const auto* cores = std::get_if<event::CoresFor>(&command.body)) {
    // Later, because this may be inside the answer to another application's event.
    if (application.state == ApplicationState::asking && !cores->wait) queue_.set(i, now_);
  } else if (const auto* map = std::get_if<event::NewServerMap>(&command.body)) {
    if (forwarded_.forwards(i)) {
      use_map(i, *map);
    } else {
      servers_.receive(i, *map);
    }
  } else if (const auto* welcome = std::get_if<event::Welcome>(&command.body)) {
    member.app = welcome->app;
    member.self.application = welcome->application;
    renewal_ = welcome->lease / 3;
  }
}

// Schedules the TICK for the coordinator's next deadline.
void Simulation::set_tick() {
  const auto deadline = controller_->deadline();
  if (deadline) {
    queue_.set(number_of_tick(), std::max(*deadline, now_));
  } else {
    queue_.erase(number_of_tick());
  }
}

// ---- the end -------------------------------------------------------------------------------------------------------

// The simulation may end in the middle of everything; unfinished activities count up to now.
void Simulation::cut_off() {
  for (QueueNumber i = 0; i < applications_.size(); ++i) {
    SimulatedApplication& application = applications_[i];
    ApplicationResult& result = application.result;
    if (application.state != ApplicationState::ended) count_served(i);
    result.start_s = application.spec().start_s + result.cores_wait_s;
    switch (application.state) {
      case ApplicationState::ended: continue;
      case ApplicationState::computing: application.compute_until(now_, application.iterations_done(now_)); break;
      case ApplicationState::paused:
        result.paused_s += to_s(now_ - members_[i].since);
        result.io_s += to_s(members_[i].io_before);
        [[fallthrough]];
      case ApplicationState::waiting: result.wait_s += to_s(now_ - members_[i].since); break;
      case ApplicationState::between: application.gap_done(now_ - members_[i].since); break;
      case ApplicationState::io: result.io_s += to_s(members_[i].io_before + (now_ - members_[i].io_start)); break;
      case ApplicationState::stopped: result.stopped_s += to_s(now_ - members_[i].resize.start); break;
      case ApplicationState::asking: result.cores_wait_s = to_s(now_ - members_[i].since); [[fallthrough]];
      case ApplicationState::not_started: result.start_s = std::max(result.start_s, seconds_at(now_)); break;
    }
    result.end_s = std::max(result.start_s, seconds_at(now_));
  }
}

SimulationReport Simulation::report() const {
  SimulationReport report;
  report.scenario = scenario_.name;
  report.seed = scenario_.seed;
  report.simulated_s = seconds_at(now_);
  for (const SimulatedApplication& application : applications_) {
    ApplicationResult result = application.result;
    result.alone_s += result.io_alone_s;
    result.forwards = !application.spec().bandwidths.empty();
    if (result.forwards) report.forwarded_bandwidth += result.bandwidth();
    if (result.total_s() > 0) report.flops += result.flop / result.total_s();
    report.applications.push_back(std::move(result));
  }
  for (std::size_t t = 0; t < scenario_.targets.size(); ++t) {
    report.targets.push_back(
        {scenario_.targets[t].name, to_s(targets_[t].busy()), to_s(targets_[t].overlap()), bytes_[t]});
  }
  report.slow_servers = slow_servers_;
  report.decisions = decisions_;
  report.events = events_;
  return report;
}

}  // namespace hocket::sim
