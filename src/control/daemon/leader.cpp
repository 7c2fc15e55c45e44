#include "daemon/leader.hpp"

#include <fmt/chrono.h>
#include <spdlog/spdlog.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <utility>

#include "base/clock.hpp"
#include "base/host_name.hpp"
#include "config/policy_file.hpp"
#include "explain/explain.hpp"

namespace hocket::daemon {
namespace {

// The trace is flushed after this time without events, or when it is due.
constexpr Duration quiet = std::chrono::milliseconds{20};

// Logs what the coordinator reports to people.
void log_report(const event::Body& command) {
  if (const auto* decision = std::get_if<event::Decision>(&command)) {
    // Waits are logged at debug level: applications that take turns cause many, and the trace has them.
    const auto level = decision->action == "wait" ? spdlog::level::debug : spdlog::level::info;
    if (!spdlog::should_log(level)) return;
    spdlog::log(level, "decision {} ({}) {} {}: {}", decision->number, decision->policy, decision->action,
                decision->decided_for, explain::sentence(*decision));
  } else if (const auto* outcome = std::get_if<event::Outcome>(&command)) {
    spdlog::info("outcome of decision {} for {}: {}", outcome->decision, outcome->decided_for,
                 explain::sentence(*outcome));
  } else if (const auto* model = std::get_if<event::Model>(&command)) {
    spdlog::info("{}", explain::sentence(*model));
  } else if (const auto* slow = std::get_if<event::SlowIoServer>(&command)) {
    spdlog::warn("{}", explain::sentence(*slow));
  } else if (const auto* hung = std::get_if<event::HungIoServer>(&command)) {
    spdlog::warn("{}", explain::sentence(*hung));
  }
}

std::int64_t unix_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Leader::Leader(const config::DaemonSettings& settings, const coordinator::CoordinatorSettings& prepared,
               const std::string& directory)
    : settings_(settings),
      socket_(bus::socket_in(directory)),
      node_(host_name()),
      started_(node_now()),
      coordinator_(prepared),
      profiles_(profile_store_path(settings.profiles)),
      last_member_(started_) {}

Result<std::unique_ptr<Leader>> Leader::start(config::DaemonSettings settings, const std::string& directory) {
  // The policy file may log at any time, hence the callback instead of a status.
  const auto prepared = config::with_policy_file(settings, [](std::string_view line) { spdlog::warn("{}", line); });
  if (!prepared) return prepared.error();
  std::unique_ptr<Leader> leader{new Leader{settings, prepared.value(), directory}};
  Status done = leader->open_trace(directory);
  if (done) done = leader->listen();
  if (done) done = leader->catch_signals();
  if (!done) return done.error();
  leader->watch_socket();
  spdlog::info("hocketd {} (pid {}) leads on {}: policy {}, trace {}", HOCKET_VERSION, getpid(), leader->node_,
               policy::text_of(prepared.value().policy), leader->trace_path_);
  return leader;
}

Status Leader::listen() {
  auto agent = bus::Agent::listen(
      socket_, node_, [this](event::Event&& e) { handle(std::move(e)); },
      [](const std::string& text) { spdlog::warn("{}", text); });
  if (!agent) return agent.error();
  agent_ = std::move(agent).value();
  agent_->watch(servers_.descriptor(), [this] { servers_.collect(); });
  return success();
}

Status Leader::open_trace(const std::string& directory) {
  trace_path_ = settings_.trace;
  if (trace_path_.empty()) {
    const std::string traces = directory + "/traces";
    mkdir(traces.c_str(), 0700);
    const std::string now = fmt::format("{:%Y%m%d-%H%M%S}", fmt::localtime(std::time(nullptr)));
    trace_path_ = fmt::format("{}/{}-{}.jsonl", traces, now, getpid());
  }
  const trace::TraceHeader header{HOCKET_VERSION, node_, unix_now_ns(), started_, config::for_trace(settings_)};
  // A trace that breaks later, on a full disk for instance, does not end the daemon. LIST reports the reason.
  const auto broken = [this](const std::string& text) {
    trace_error_ = text;
    spdlog::error("{}", text);
  };
  const trace::TraceSizes sizes{settings_.trace_part_mib << 20U, settings_.trace_most_mib << 20U};
  auto writer = trace::Writer::create(trace_path_, header, broken, sizes);
  if (writer) {
    trace_.emplace(std::move(writer).value());
  } else if (settings_.trace.empty()) {
    broken(writer.error().text);
  } else {
    // A trace that the settings name is a promise, so its failure is fatal. The default trace is a convenience.
    return writer.error();
  }
  return success();
}

Status Leader::catch_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&signals, signal);
  // signalfd merges signals into the event loop, so no handler interrupts a decision.
  signals_ = bus::Fd{signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (!signals_) return Error{"cannot wait for signals: " + bus::error_text(errno)};
  agent_->watch(signals_.get(), [this] {
    signalfd_siginfo caught{};
    if (read(signals_.get(), &caught, sizeof caught) != sizeof caught) return;
    if (caught.ssi_signo == SIGCHLD) return take_ended_processes();
    spdlog::info("stopping on signal {}; {} members continue uncoordinated", caught.ssi_signo, agent_->members());
    stopped_ = true;
  });
  return success();
}

// Ends the daemon when its socket is removed. A daemon that nobody can reach must not keep the lead: another one may
// lead in a new directory of the same name.
void Leader::watch_socket() {
  socket_changes_ = bus::Fd{inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
  if (!socket_changes_) return;  // the user has too many inotify instances: an operator must end the daemon then
  inotify_add_watch(socket_changes_.get(), socket_.c_str(), IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF);
  agent_->watch(socket_changes_.get(), [this] {
    // The events themselves do not matter; they only say when to check.
    std::array<char, 4096> ignored{};
    while (read(socket_changes_.get(), ignored.data(), ignored.size()) > 0) {
    }
    if (agent_->is_reachable()) return;
    spdlog::error("ending: {} was removed, so nothing can connect any more; {} members continue uncoordinated", socket_,
                  agent_->members());
    stopped_ = true;
  });
}

void Leader::run() {
  Time now = node_now();
  while (!stopped_) {
    const bool busy = agent_->run(longest_sleep(now));
    tell_failed_processes();
    tell_ended_servers();
    now = node_now();
    tick_if_due(now);
    tell_failed_processes();
    tell_ended_servers();
    if (trace_ && trace_->due() && (!busy || *trace_->due() <= now)) trace_->flush();
    // A last poll without sleep: a member that connects at this moment keeps the daemon alive.
    if (has_been_idle(now) && !agent_->run(Duration::zero())) {
      spdlog::info("ending: no member for {} s", settings_.exit_when_idle_s);
      stopped_ = true;
    }
  }
  if (trace_) trace_->flush();
}

// Sends TICK to the coordinator when its deadline has come: a lease or a time slice may have ended.
void Leader::tick_if_due(Time now) {
  const auto deadline = coordinator_.deadline();
  if (!deadline || *deadline > now) return;
  handle({now, {node_, {}, {}}, event::Tick{}});
  agent_->flush();
}

// Returns the time until the next TICK, the next flush of the trace, or the end for lack of members.
std::optional<Duration> Leader::longest_sleep(Time now) const {
  std::optional<Time> until = coordinator_.deadline();
  const auto at_latest = [&until](Time t) { until = until ? std::min(*until, t) : t; };
  if (trace_ && trace_->due()) at_latest(std::min(*trace_->due(), now + quiet));
  if (settings_.exit_when_idle_s > 0 && agent_->members() == 0) {
    at_latest(last_member_ + from_s(settings_.exit_when_idle_s));
  }
  if (!until) return std::nullopt;
  return std::max(*until - now, Duration::zero());
}

// True if no member was connected for the time in the settings. A member that is connected restarts the time.
bool Leader::has_been_idle(Time now) {
  if (settings_.exit_when_idle_s <= 0) return false;
  if (agent_->members() > 0) last_member_ = now;
  return now - last_member_ >= from_s(settings_.exit_when_idle_s);
}

void Leader::handle(event::Event&& event) {
  if (std::holds_alternative<event::List>(event.body)) return answer_list(event.origin.member, event.time);
  if (const auto* asked = std::get_if<event::Explain>(&event.body)) return answer_explain(event.origin.member, *asked);
  // Look the program up before the coordinator forgets a member that leaves.
  std::string program;
  std::string mpi;
  if (std::holds_alternative<event::Bye>(event.body) || std::holds_alternative<event::Lost>(event.body)) {
    if (const model::Member* leaves = coordinator_.cluster().find(event.origin.member)) {
      program = leaves->application->program;
      mpi = leaves->application->mpi;
    }
  }
  const auto& commands = coordinator_.handle(event);
  // Answer the members first; `flush` sends what is queued before anything slower begins.
  for (const coordinator::Command& command : commands) {
    if (command.to) agent_->send(command.to, command.body);
  }
  agent_->flush();
  for (const coordinator::Command& command : commands) {
    if (!command.to) carry_out(command.body);
  }
  follow_server(event);
  if (std::holds_alternative<event::Hello>(event.body)) feed_profiles(event, commands);
  if (!program.empty()) remember(program, mpi, commands);
  record(std::move(event), commands);
  // The profiles are events of their own, so they follow the record of this one.
  tell_profiles();
}

// Reads the store's points of a program when the first member of its application arrives. An application whose curve
// is already known needs none.
void Leader::feed_profiles(const event::Event& hello, const std::vector<coordinator::Command>& commands) {
  const auto* welcome = commands.empty() ? nullptr : std::get_if<event::Welcome>(&commands.front().body);
  const auto* application = welcome == nullptr ? nullptr : coordinator_.cluster().find(welcome->app);
  const auto& program = std::get<event::Hello>(hello.body).program;
  if (application == nullptr || application->members.size() != 1 || !application->curve.empty()) return;
  auto found = profiles_.find(program, welcome->app);
  if (found) {
    found_profiles_ = std::move(found).value();
    if (!found_profiles_.empty()) {
      spdlog::info("{}: {} points of {} from {}", welcome->application, found_profiles_.size(), program,
                   profile_store_path(settings_.profiles));
    }
  } else if (found.error().text != profiles_wrong_) {
    profiles_wrong_ = found.error().text;
    spdlog::warn("{}", profiles_wrong_);
  }
}

// Passes the points of the store to the coordinator as events, so the trace has them and a replay needs no store.
void Leader::tell_profiles() {
  for (const event::Profile& point : std::exchange(found_profiles_, {})) {
    handle({node_now(), {node_, {}, {}}, point});
  }
}

// Stores the points that the coordinator measured (PROFILE) in an application that has left.
void Leader::remember(const std::string& program, const std::string& mpi,
                      const std::vector<coordinator::Command>& commands) {
  std::vector<event::Profile> points;
  for (const coordinator::Command& command : commands) {
    if (const auto* point = std::get_if<event::Profile>(&command.body)) points.push_back(*point);
  }
  if (points.empty()) return;
  const Status put = profiles_.put(program, mpi, points, unix_now_ns() / 1'000'000'000);
  if (put) {
    spdlog::info("{}: {} points were measured and are remembered", program, points.size());
  } else {
    spdlog::warn("{}", put.error().text);
  }
}

void Leader::carry_out(const event::Body& command) {
  if (const auto* start = std::get_if<event::StartProcesses>(&command)) {
    const Status started = starter_.start(*start);
    if (!started) failed_processes_.push_back({start->request, start->app, started.error().text});
  } else if (const auto* stop = std::get_if<event::StopProcesses>(&command)) {
    starter_.stop(stop->app, stop->request);
  } else {
    decisions_.add(command);
    log_report(command);
    if (const auto* hung = std::get_if<event::HungIoServer>(&command)) kill_server(*hung);
  }
}

void Leader::follow_server(const event::Event& event) {
  const MemberId member = event.origin.member;
  if (const auto* lost = std::get_if<event::Lost>(&event.body)) {
    servers_.left(member, lost->reason == bus::Agent::closed_by_member);
  } else if (std::holds_alternative<event::Bye>(event.body)) {
    servers_.left(member, false);
  }
  const auto* server = std::get_if<event::Server>(&event.body);
  if (server == nullptr || !coordinator_.servers().awaits_end(server->server, server->pid)) return;  // it was refused
  const Status watched = servers_.watch(member, server->server, server->pid);
  if (!watched && server->heartbeat > Duration::zero())
    spdlog::warn("the I/O server {} cannot be killed if it hangs: {}", server->server, watched.error().text);
}

void Leader::kill_server(const event::HungIoServer& hung) {
  const Status killed = servers_.kill(hung.server, hung.pid);
  if (!killed)
    spdlog::error("{}; the map keeps the I/O server {}, and accesses that need it fail: end it", killed.error().text,
                  hung.server);
}

void Leader::tell_ended_servers() {
  for (const event::ServerEnded& ended : servers_.take_ended()) {
    // Servers that have left in order, or were lost before, need no confirmation.
    if (!coordinator_.servers().awaits_end(ended.server, ended.pid)) continue;
    handle({node_now(), {node_, {}, {}}, ended});
    agent_->flush();
    spdlog::warn("the I/O server {} (process {}) has ended", ended.server, ended.pid);
  }
}

void Leader::take_ended_processes() {
  for (event::ProcessFailed& ended : starter_.reap()) failed_processes_.push_back(std::move(ended));
}

// Call this after the event that caused the failures is recorded, so the trace keeps their order.
void Leader::tell_failed_processes() {
  const std::vector<event::ProcessFailed> failed = std::exchange(failed_processes_, {});
  for (const event::ProcessFailed& process : failed) {
    // A process that has joined, or that nobody awaits any more, is no failure.
    if (!coordinator_.awaits(process.app, process.request)) continue;
    spdlog::warn("{}", process.reason);
    handle({node_now(), {node_, {}, {}}, process});
    agent_->flush();
  }
}

void Leader::record(event::Event&& event, const std::vector<coordinator::Command>& commands) {
  const bool traced = trace_ && !trace_->is_broken();
  const bool watched = agent_->has_subscribers();
  if (!traced && !watched) return;
  const Time time = event.time;
  if (watched) agent_->publish(event);
  if (traced) trace_->add(trace::Direction::in, std::move(event));
  for (const coordinator::Command& command : commands) {
    event::Event out{time, agent_->origin_of(command.to), command.body};
    if (watched) agent_->publish(out);
    if (traced) trace_->add(trace::Direction::out, std::move(out));
  }
  // Flush inside a burst too. Otherwise events of many members would pile up until the agent returns.
  if (traced && *trace_->due() <= time) trace_->flush();
}

// Answers LIST with the state at `now`, when LIST arrived; later events are not in it. The trace is flushed first, so
// it holds everything before. A tool that subscribed earlier and then reads the trace misses nothing.
void Leader::answer_list(MemberId to, Time now) {
  if (trace_) trace_->flush();
  const auto& applications = coordinator_.cluster().applications();
  for (const auto& [id, application] : applications) agent_->send(to, coordinator_.describe(application, now));
  for (const event::IoServer& server : coordinator_.servers().describe(now)) agent_->send(to, server);
  agent_->send(to, describe_daemon(now));
}

void Leader::answer_explain(MemberId to, const event::Explain& asked) {
  for (const event::Body& answer : decisions_.answer(asked)) agent_->send(to, answer);
  agent_->send(to, describe_daemon(node_now()));
}

// Returns the last line of the answers to LIST and EXPLAIN, by which a tool knows that the answer is complete.
event::Daemon Leader::describe_daemon(Time now) const {
  event::Daemon daemon;
  daemon.node = node_;
  daemon.version = HOCKET_VERSION;
  daemon.policy = policy::text_of(coordinator_.policies());
  daemon.metric = coordinator_.metric().text();
  for (const auto& [target, set] : coordinator_.access_policies().targets()) {
    daemon.target_policies.append(daemon.target_policies.empty() ? "" : "\n")
        .append(target)
        .append("=")
        .append(set.policy->name);
    if (set.allows) daemon.target_policies.append("?");
  }
  daemon.trace = trace_ ? trace_->path() : trace_path_;  // the present part, which names the earlier ones
  daemon.pid = getpid();
  daemon.applications = static_cast<std::int64_t>(coordinator_.cluster().applications().size());
  daemon.events = coordinator_.events();
  daemon.started = started_;
  daemon.now = now;
  daemon.trace_error = trace_error_;
  daemon.cores = settings_.cores;
  daemon.map_epoch = coordinator_.servers().epoch();
  return daemon;
}

}  // namespace hocket::daemon
