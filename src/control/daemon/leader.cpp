#include "daemon/leader.hpp"

#include <fmt/chrono.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <utility>

#include "base/clock.hpp"
#include "base/host_name.hpp"
#include "config/policy_file.hpp"
#include "daemon/introduction.hpp"
#include "daemon/relaying.hpp"
#include "daemon/users.hpp"
#include "explain/explain.hpp"
#include "link/tcp.hpp"

namespace hocket::daemon {
namespace {

// The trace is flushed after this time without events, or when it is due.
constexpr Duration quiet = std::chrono::milliseconds{20};

// The longest that LIST waits for the trace.
constexpr Duration longest_list_wait = std::chrono::seconds{1};

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
      elsewhere_([this](const std::string& identity,
                        const event::Body& order) { return node_agents_ && node_agents_->order(identity, order); },
                 [this](const std::string& identity) { return node_agents_ && node_agents_->hears(identity); },
                 [this](const event::Server& one) {
                   return coordinator_.servers().may_still_write(one.server, one.pid, one.instance);
                 },
                 [this](const event::Server& one) {
                   return coordinator_.servers().awaits_end(one.server, one.pid, one.instance);
                 }),
      started_servers_(directory, settings.target_names),
      profiles_(profile_store_path(settings.profiles)),
      last_member_(started_) {}

Result<std::unique_ptr<Leader>> Leader::start(config::DaemonSettings settings, const std::string& directory,
                                              std::unique_ptr<link::Tls> tls) {
  // The policy file may log at any time, hence the callback instead of a status.
  const auto prepared = config::with_policy_file(settings, [](std::string_view line) { spdlog::warn("{}", line); });
  if (!prepared) return prepared.error();
  std::unique_ptr<Leader> leader{new Leader{settings, prepared.value(), directory}};
  Status done = leader->open_trace(directory);
  if (done) done = leader->listen();
  if (done && tls) done = leader->take_agents(std::move(tls));
  if (done) {
    Leader& self = *leader;
    const auto watch = [&self](int fd, DaemonEnd::Call ready) { self.agent_->watch(fd, std::move(ready)); };
    done = self.ending_.catch_signals(
        watch, [&self] { return self.agent_->members(); }, [&self] { self.take_ended_processes(); });
    self.ending_.watch_socket(self.socket_, watch, [&self] { return self.agent_->is_reachable(); });
  }
  if (done) done = leader->open_metrics();
  if (!done) return done.error();
  spdlog::info("hocketd {} (pid {}) leads on {}: policy {}, trace {}", HOCKET_VERSION, getpid(), leader->node_,
               policy::text_of(prepared.value().policy), leader->trace_path_);
  return leader;
}

Status Leader::listen() {
  const auto users = users_of(settings_);
  if (!users) return users.error();
  auto agent = bus::Agent::listen(
      socket_, node_, [this](event::Event&& e) { handle(std::move(e)); },
      [](const std::string& text) { spdlog::warn("{}", text); }, users.value());
  if (!agent) return agent.error();
  agent_ = std::move(agent).value();
  agent_->watch(servers_.descriptor(), [this] { servers_.collect(); });
  agent_->watch(profiles_.descriptor(), [this] { take_profiles(); });
  agent_->watch(started_servers_.descriptor(), [this] { take_started_servers(); });
  agent_->watch(starter_.descriptor(),
                [this] { std::ranges::move(starter_.collect(), std::back_inserter(failed_processes_)); });
  if (trace_) agent_->watch(trace_->descriptor(), [this] { follow_trace(); });
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
  const trace::TraceSizes sizes{settings_.trace_part_mib << 20U, settings_.trace_most_mib << 20U,
                                from_s(settings_.trace_part_h * 3600), settings_.trace_compress};
  auto recorder = trace::Recorder::create(trace_path_, header, sizes);
  if (recorder) {
    trace_ = std::move(recorder).value();
  } else if (settings_.trace.empty()) {
    trace_error_ = recorder.error().text;
    spdlog::error("{}", trace_error_);
  } else {
    // A trace that the settings name is a promise, so its failure is fatal. The default trace is a convenience.
    return recorder.error();
  }
  return success();
}

// A trace that breaks later, on a full disk for instance, does not end the daemon. LIST reports the reason.
void Leader::follow_trace() {
  trace_->clear();
  if (trace_->is_broken() && trace_error_.empty()) {
    trace_error_ = trace_->error();
    spdlog::error("{}", trace_error_);
  }
  answer_lists(node_now());
}

void Leader::report_gap() {
  if (trace_->lost() == 0 || !trace_error_.empty()) return;
  trace_error_ = "the trace " + trace_->path() +
                 " lacks records, because its disk is slower than they come: EVENTS_LOST says where and how many; a "
                 "replay ends there";
  spdlog::warn("{}", trace_error_);
}

Status Leader::take_agents(std::unique_ptr<link::Tls> tls) {
  auto agents = link::NodeAgents::listen(settings_.listen, std::move(tls), *agent_, introduction(settings_, node_),
                                         [](const std::string& text) { spdlog::warn("{}", text); });
  if (!agents) return agents.error();
  node_agents_ = std::move(agents).value();
  node_agents_->tell(
      {.joined = [this](const link::Introduction& node) { take_joined_node(node); },
       .reported = [this](const link::Introduction& node, event::Body&& body) { take_report(node, std::move(body)); },
       .cores = [this](const std::string& node, std::int64_t cores) { tell_cores(node, cores); },
       .found_at = [this](const std::string& node, std::int64_t place) { take_place(place, node); }});
  take_place(link::place_in(words_of(settings_.leaders), settings_.listen), {});
  agent_->watch(node_agents_->descriptor(), [this] { node_agents_->serve(); });
  tell_cores(node_, settings_.cores);
  return success();
}

// An operator who has named cores or nodes has decided which ones are given out.
void Leader::tell_cores(const std::string& node, std::int64_t cores) {
  if (settings_.counts_nodes) handle({node_now(), {node_, {}, {}}, event::NodeCores{node, cores}});
}

void Leader::take_place(std::int64_t place, const std::string& told_by) {
  if (place <= coordinator_.leader_place()) return;
  spdlog::warn("this leader is at place {} of the list of leaders{}: from now on it only grants turns", place,
               told_by.empty() ? "" : " of node " + told_by);
  handle({node_now(), {node_, {}, {}}, event::LeaderPlace{place, told_by}});
}

Status Leader::open_metrics() {
  if (settings_.metrics.empty()) return success();
  auto metrics = MetricsEndpoint::start(settings_.metrics, coordinator_, [this](metrics::Facts& facts) {
    facts.connections = static_cast<std::int64_t>(agent_->members());
    facts.agents = node_agents_ ? static_cast<std::int64_t>(node_agents_->count()) : 0;
    facts.trace_broken = !trace_error_.empty();
  });
  if (!metrics) return metrics.error();
  metrics_ = std::move(metrics).value();
  agent_->watch(metrics_->descriptor(), [this] { metrics_->serve(); });
  return success();
}

void Leader::run() {
  Time now = node_now();
  while (!ending_.is_over()) {
    const bool busy = agent_->run(longest_sleep(now));
    tell_profiles();
    tell_failed_processes();
    tell_ended_servers();
    now = node_now();
    tick_if_due(now);
    tell_failed_processes();
    tell_ended_servers();
    if (trace_ && trace_->due() && (!busy || *trace_->due() <= now)) trace_->flush();
    if (!lists_.empty()) answer_lists(now);
    if (metrics_) metrics_->count_pass(agent_->woke());
    // A last poll without sleep: a member that connects at this moment keeps the daemon alive.
    if (has_been_idle(now) && !agent_->run(Duration::zero())) {
      spdlog::info("ending: no member for {} s", settings_.exit_when_idle_s);
      ending_.end();
    }
  }
  if (trace_) trace_->flush();
}

// Sends TICK to the coordinator when its deadline has come: a lease or a time slice may have ended.
void Leader::tick_if_due(Time now) {
  elsewhere_.tick(now);
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
  if (!lists_.empty()) at_latest(lists_.front().until);
  if (const auto due = elsewhere_.deadline()) at_latest(*due);
  if (settings_.exit_when_idle_s > 0 && agent_->members() == 0) {
    at_latest(last_member_ + from_s(settings_.exit_when_idle_s));
  }
  if (!until) return std::nullopt;
  return std::max(*until - now, Duration::zero());
}

// True if no member was connected for the time in the settings. A member that is connected restarts the time.
bool Leader::has_been_idle(Time now) {
  if (settings_.exit_when_idle_s <= 0) return false;
  if (agent_->members() > 0 || (node_agents_ && node_agents_->count() > 0)) last_member_ = now;
  return now - last_member_ >= from_s(settings_.exit_when_idle_s);
}

void Leader::handle(event::Event&& event) {
  if (std::holds_alternative<event::List>(event.body)) return take_list(event.origin.member, event.time);
  if (const auto* asked = std::get_if<event::Explain>(&event.body)) return answer_explain(event.origin.member, *asked);
  if (std::holds_alternative<event::StartServer>(event.body)) return start_server(event);
  if (std::holds_alternative<event::StopServer>(event.body)) return stop_server(event);
  // The books have one node without a name if there are no agents. The nodes of an allocation are to count beside it.
  const bool names_nodes = std::holds_alternative<event::HeldNodes>(event.body);
  if (names_nodes && !coordinator_.cores().is_told()) tell_cores(node_, settings_.cores);
  const bool foreign = is_foreign(event);  // its program is not to be read here
  // Look the program up before the coordinator forgets a member that leaves.
  MeasuredProgram measured;
  AppId app{};
  if (std::holds_alternative<event::Bye>(event.body) || std::holds_alternative<event::Lost>(event.body)) {
    if (const model::Member* leaves = coordinator_.cluster().find(event.origin.member)) {
      app = leaves->application->id;
      measured = {leaves->application->program, leaves->application->mpi, {}};
      if (const auto told = fingerprints_.find(app); told != fingerprints_.end()) measured.sha256 = told->second;
      if (foreign && measured.sha256.empty()) measured.program.clear();
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
  if (std::holds_alternative<event::Hello>(event.body)) look_up(event, commands, foreign);
  if (!measured.program.empty()) remember(measured, commands);
  if (app && coordinator_.cluster().find(app) == nullptr) fingerprints_.erase(app);
  if (metrics_) metrics_->count(event, commands);
  record(event, commands);
}

// Asks for the store's points of a program when the first member of its application arrives. An application whose
// curve is already known needs none.
void Leader::look_up(const event::Event& hello, const std::vector<coordinator::Command>& commands, bool foreign) {
  // Commands about late events of others may precede it.
  const auto answer = std::ranges::find_if(commands, [&](const coordinator::Command& one) {
    return one.to == hello.origin.member && std::holds_alternative<event::Welcome>(one.body);
  });
  const auto* welcome = answer == commands.end() ? nullptr : &std::get<event::Welcome>(answer->body);
  const auto* application = welcome == nullptr ? nullptr : coordinator_.cluster().find(welcome->app);
  const auto& program = std::get<event::Hello>(hello.body).program;
  if (application == nullptr || application->members.size() != 1 || !application->curve.empty()) return;
  if (program.empty() || profiles_.path().empty()) return;
  if (!foreign) return profiles_.find(program, welcome->app);
  // Another user's program is not read at all.
  if (node_agents_) node_agents_->order_about(hello.origin.member, event::AskFingerprint{welcome->app, program});
}

void Leader::take_profiles() {
  for (ProfileWorker::ProfileAnswer& answer : profiles_.take()) {
    if (!answer.error.empty()) {
      if (!answer.app || answer.error != profiles_wrong_) spdlog::warn("{}", answer.error);
      profiles_wrong_ = answer.error;
    } else if (!answer.app && !answer.points.empty()) {
      spdlog::info("{}: {} points were measured and are remembered", answer.program, answer.points.size());
    } else if (const auto* application = coordinator_.cluster().find(answer.app);
               application && !answer.points.empty()) {
      spdlog::info("{}: {} points of {} from {}", application->name, answer.points.size(), answer.program,
                   profiles_.path());
      found_profiles_.insert(found_profiles_.end(), answer.points.begin(), answer.points.end());
    }
  }
}

// The points are events of their own, so the trace has them and a replay needs no store.
void Leader::tell_profiles() {
  for (const event::Profile& point : std::exchange(found_profiles_, {})) {
    handle({node_now(), {node_, {}, {}}, point});
    agent_->flush();
  }
}

// Stores the points that the coordinator measured (PROFILE) in an application that has left.
void Leader::remember(const MeasuredProgram& measured, const std::vector<coordinator::Command>& commands) {
  std::vector<event::Profile> points;
  for (const coordinator::Command& command : commands) {
    if (const auto* point = std::get_if<event::Profile>(&command.body)) points.push_back(*point);
  }
  if (!points.empty())
    profiles_.put(measured.program, measured.mpi, std::move(points), unix_now_ns() / 1'000'000'000, measured.sha256);
}

void Leader::carry_out(const event::Body& command) {
  if (const auto* start = std::get_if<event::StartProcesses>(&command)) {
    const std::string wrong = start_processes(*start);
    if (!wrong.empty()) failed_processes_.push_back({start->request, start->app, wrong});
  } else if (const auto* stop = std::get_if<event::StopProcesses>(&command)) {
    starter_.stop(stop->app, stop->request);
    if (node_agents_) node_agents_->order_all(*stop);
  } else {
    decisions_.add(command);
    log_report(command);
    if (const auto* hung = std::get_if<event::HungIoServer>(&command)) kill_server(*hung);
  }
}

bool Leader::is_foreign(const event::Event& event) {
  const MemberId member = event.origin.member;
  if (std::holds_alternative<event::Hello>(event.body)) {
    if (!agent_->is_foreign(member)) return false;
    foreign_.insert(member);
    return true;
  }
  const bool leaves = std::holds_alternative<event::Bye>(event.body) || std::holds_alternative<event::Lost>(event.body);
  return leaves && foreign_.erase(member) > 0;
}

void Leader::follow_server(const event::Event& event) {
  const MemberId member = event.origin.member;
  if (const auto* lost = std::get_if<event::Lost>(&event.body)) {
    servers_.left(member, lost->reason == bus::Agent::closed_by_member);
  } else if (std::holds_alternative<event::Bye>(event.body)) {
    servers_.left(member, false);
  }
  const auto* server = std::get_if<event::Server>(&event.body);
  if (server == nullptr || !coordinator_.servers().awaits_end(server->server, server->pid, server->instance))
    return;  // it was refused
  starting_.erase(server->server);
  if (const std::string node = node_agents_ ? node_agents_->identity_of(member) : std::string{}; !node.empty()) {
    elsewhere_.follow(node, *server);
    node_agents_->order_about(member, *server);
    return;
  }
  started_servers_.joined(server->server, server->pid);
  const Status watched = servers_.watch(member, *server);
  if (!watched && server->heartbeat > Duration::zero())
    spdlog::warn("the I/O server {} cannot be killed if it hangs: {}", server->server, watched.error().text);
}

void Leader::kill_server(const event::HungIoServer& hung) {
  if (elsewhere_.kill(hung, node_now())) return;
  const Status killed = servers_.kill(hung.server, hung.pid);
  if (!killed)
    spdlog::error("{}; the map keeps the I/O server {}, and accesses that need it fail: end it", killed.error().text,
                  hung.server);
}

void Leader::tell_ended_servers() {
  for (const event::ServerEnded& ended : servers_.take_ended()) tell_ended_server(ended);
}

// Servers that have left in order, or were lost before, need no confirmation.
void Leader::tell_ended_server(const event::ServerEnded& ended) {
  if (!coordinator_.servers().awaits_end(ended.server, ended.pid, ended.instance)) return;
  handle({node_now(), {node_, {}, {}}, ended});
  agent_->flush();
  spdlog::warn("the I/O server {} (process {}) has ended", ended.server, ended.pid);
}

void Leader::take_ended_processes() {
  started_servers_.reap();
  std::ranges::move(starter_.reap(), std::back_inserter(failed_processes_));
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

void Leader::record(const event::Event& event, const std::vector<coordinator::Command>& commands) {
  if (agent_->has_subscribers()) {
    agent_->publish(event);
    for (const coordinator::Command& command : commands)
      agent_->publish({event.time, agent_->origin_of(command.to), command.body});
  }
  if (!trace_ || trace_->is_broken()) return;
  trace_->add_event(event);
  for (const coordinator::Command& command : commands)
    trace_->add_command(event.time, agent_->application_of(command.to), command.to, command.body);
  // Flush inside a burst too. Otherwise events of many members would pile up until the agent returns.
  if (trace_->due() && *trace_->due() <= event.time) trace_->flush();
  report_gap();
}

// The trace must hold everything before the answer: a tool that subscribed earlier and then reads the trace misses
// nothing. A disk that hangs does not keep the answer back for long.
void Leader::take_list(MemberId from, Time now) {
  constexpr std::size_t most_lists = 1024;
  if (!trace_ || lists_.size() >= most_lists) return answer_list(from, now);
  lists_.push_back({from, trace_->flush(), now + longest_list_wait});
  answer_lists(now);
}

void Leader::answer_lists(Time now) {
  while (!lists_.empty() && (trace_->is_written(lists_.front().flushed) || lists_.front().until <= now)) {
    answer_list(lists_.front().from, now);
    lists_.pop_front();
  }
  agent_->flush();
  if (!lists_.empty()) trace_->notify_when_written(lists_.front().flushed);
}

// Answers LIST with the state at `now`; later events are not in it.
void Leader::answer_list(MemberId to, Time now) {
  const auto& applications = coordinator_.cluster().applications();
  for (const auto& [id, application] : applications) agent_->send(to, coordinator_.describe(application, now));
  for (const event::IoServer& server : coordinator_.servers().describe(now)) agent_->send(to, server);
  for (const model::NodeUse& node : coordinator_.cores().nodes()) {
    if (!node.name.empty()) agent_->send(to, event::Node{node.name, node.cores, node.taken});
  }
  agent_->send(to, describe_daemon(now));
}

void Leader::answer_explain(MemberId to, const event::Explain& asked) {
  for (const event::Body& answer : decisions_.answer(asked)) {
    if (agent_->may_hear(to, answer)) agent_->send(to, answer);
  }
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
  daemon.cores = coordinator_.most_cores();
  daemon.map_epoch = coordinator_.servers().epoch();
  daemon.leader_place = coordinator_.leader_place();
  daemon.agents = node_agents_ ? static_cast<std::int64_t>(node_agents_->count()) : 0;
  return daemon;
}

}  // namespace hocket::daemon
