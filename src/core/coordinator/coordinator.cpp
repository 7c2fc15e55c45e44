#include "coordinator/coordinator.hpp"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

#include "base/saturating.hpp"
#include "model/prediction.hpp"

namespace hocket::coordinator {
namespace {

// Upper bound of all times (146 years of uptime), so that sums of times and settings fit into int64.
constexpr Time latest = time_from_ns(std::int64_t{1} << 62);

// Largest number of unfinished requests of a member. A member with more never finishes its requests.
constexpr std::size_t most_requests = 1024;

// The policy name that ends what was set for one application or target.
constexpr std::string_view default_policy = "default";
constexpr std::size_t longest_quoted = 64;
// Most bytes of the nodes in the description of an application: a frame holds 64 KiB.
constexpr std::size_t longest_nodes = 8192;

// True for a tool. It states neither processes nor an MPI, observes, and does no I/O.
bool is_tool(const event::Hello& hello) { return hello.processes <= 0 && hello.mpi.empty(); }

template <class E, class... Types>
constexpr bool is_one_of = (std::is_same_v<E, Types> || ...);

// True if the servers policy is asked after such an event (policy/server_policy.hpp).
bool concerns_servers(const event::Body& body) {
  using namespace event;  // NOLINT(google-build-using-namespace): the list below
  return std::visit(
      []<class E>(const E&) {
        return is_one_of<E, Server, ServerLoad, ServerEnded, SetServer, SlowIoServer, MapAdopted, Hello, IoPhase, Bye,
                         Lost, SetPolicy>;
      },
      body);
}

// Returns the targets that are delegated to members of the application, "nfs:home, lustre:scratch".
std::string delegated_targets(const model::Application& application) {
  std::string names;
  for (const auto holder : application.held) {
    bool delegated = false;
    for (const model::Member* member : application.members) {
      for (const auto request : member->requests) delegated |= request->delegation && request->target == holder->target;
    }
    if (delegated) names += (names.empty() ? "" : ", ") + holder->target->name;
  }
  return names;
}

// Returns the age of an event that its member has sent in a batch, or after one (RETURN_IO); nothing for others.
std::optional<Duration> age_in_batch(const event::Body& body) {
  return std::visit(
      []<class E>(const E& e) -> std::optional<Duration> {
        if constexpr (std::is_same_v<E, event::ReturnIo>) return Duration{};
        if constexpr (requires { e.ago; }) {
          bool batched = e.ago != Duration{};
          if constexpr (requires { e.delegation; }) batched |= static_cast<bool>(e.delegation);
          if (batched) return e.ago;
        }
        return std::nullopt;
      },
      body);
}

// Returns how long ago an event happened that is handled in the order of time, if it is one. RENEW_IO of a request
// that the coordinator does not know yet follows START_IO in a batch: it says what the operation had moved at a recall.
std::optional<Duration> age_of(const event::Body& body, const model::Member& member) {
  const auto* const renew = std::get_if<event::RenewIo>(&body);
  if (renew != nullptr && renew->request > member.last_request) return Duration{};
  return age_in_batch(body);
}

// True for an event that was not in a batch, before which what its application did earlier has to be known.
bool follows_batches(const event::Body& body) {
  using namespace event;  // NOLINT(google-build-using-namespace): the list below
  if (age_in_batch(body)) return false;
  return std::visit(
      []<class E>(const E&) { return is_one_of<E, StartIo, InformIo, FinishIo, PausedIo, IoPhase, Bye, Lost>; }, body);
}

// Returns an event of the backlog as if it was sent now.
event::Event aged(event::Event late, Time now) {
  const Duration waited = now - late.time;
  std::visit(
      [&](auto& e) {
        if constexpr (requires { e.ago; }) e.ago = saturating_sum(std::max(e.ago, Duration{}), waited);
      },
      late.body);
  return late;
}

}  // namespace

const std::vector<Command>& Coordinator::handle(const event::Event& event) {
  commands_.clear();
  ++events_;
  now_ = std::clamp(event.time, now_, latest);
  take_late(event);
  if (!keep_for_later(event)) take(event);
  return commands_;
}

void Coordinator::take(const event::Event& event) {
  const Moment moment{event, now_, commands_};
  std::visit([&](const auto& body) { on(moment, body); }, event.body);
  if (concerns_servers(event.body) || servers_.must_arbitrate()) servers_.decide(moment);
}

// ---- events of batches -------------------------------------------------------------------------------------------

void Coordinator::take_late(const event::Event& event) {
  if (backlog_.empty()) return;
  while (const auto late = backlog_.next_due(now_)) take(aged(*late, now_));
  const model::Member* member = cluster_.find(event.origin.member);
  // I/O servers, which have no delegations, do not report what the program does.
  if (member && member->delegations && follows_batches(event.body)) take_all_of(member->application->id);
}

void Coordinator::take_all_of(AppId app) {
  while (const auto late = backlog_.next_of(app)) take(aged(*late, now_));
}

bool Coordinator::keep_for_later(const event::Event& event) {
  model::Member* const member = cluster_.find(event.origin.member);
  if (!member || (member->application->delegations < 2 && backlog_.empty())) return false;
  const std::optional<Duration> age = age_of(event.body, *member);
  if (!age) return false;
  const model::Application& application = *member->application;
  const Backlog::EventCount before = backlog_.count_of(application.id);
  if (application.delegations < 2 && before.events == 0) return false;
  // An age has the time that its batch was on the way, so a batch that was fast may seem to come before the last one.
  // The events of one member keep their order.
  member->batched = std::max(member->batched, now_ - std::clamp(*age, Duration{}, now_ - Time{}));
  backlog_.add(application.id, member->batched, event);
  // With the last answer to RECALL_IO everything is known.
  const auto* const is_return = std::get_if<event::ReturnIo>(&event.body);
  if (is_return) access_.answered(*member, *is_return);
  if ((is_return && before.returns + 1 >= application.recalled) || before.events >= Backlog::most_of_one)
    take_all_of(application.id);
  return true;
}

void Coordinator::on(const Moment& moment, const event::Hello& hello) {
  const event::Origin& origin = moment.event.origin;
  event::Welcome welcome{{}, {}, std::string{policies_.access->name}, settings_.lease, access_.policies().held()};
  model::Member* member = cluster_.find(origin.member);
  const bool joins = !member && !is_tool(hello);
  if (joins) member = &cluster_.join(origin, hello, moment.now);
  if (member) {
    welcome.app = member->application->id;
    welcome.application = member->application->name;
  }
  moment.commands.push_back({origin.member, std::move(welcome)});
  if (member) servers_.welcome(moment, *member);
  if (joins) steering_.joined(moment, *member->application);
}

void Coordinator::on(const Moment& moment, const event::StartIo& start) {
  model::Member* member = cluster_.find(moment.event.origin.member);
  if (!member) {
    return refuse(moment, "START_IO of a member that belongs to no application: send HELLO with 'mpi' before it");
  }
  const std::string number = std::to_string(start.request.value);
  if (start.request <= member->last_request) {
    return refuse(moment, "START_IO: request " + number + " is not above " +
                              std::to_string(member->last_request.value) + ", the last one: count requests upwards");
  }
  if (member->requests.size() >= most_requests) {
    return refuse(moment, "START_IO: request " + number + " is one too many, " + std::to_string(most_requests) +
                              " of the member are not finished: send FINISH_IO after each operation");
  }
  if (start.delegation) return access_.begun(moment, *member, start);
  access_.start(moment, *member, start);
}

void Coordinator::on(const Moment& moment, const event::InformIo& inform) {
  if (model::Member* member = cluster_.find(moment.event.origin.member)) access_.inform(moment, *member, inform);
}

void Coordinator::on(const Moment& moment, const event::FinishIo& finish) {
  if (model::Member* member = cluster_.find(moment.event.origin.member)) access_.finish(moment, *member, finish);
}

void Coordinator::on(const Moment& moment, const event::RenewIo& renew) {
  if (model::Member* member = cluster_.find(moment.event.origin.member)) access_.renew(moment, *member, renew);
}

void Coordinator::on(const Moment& moment, const event::PausedIo& paused) {
  if (model::Member* member = cluster_.find(moment.event.origin.member)) access_.paused(moment, *member, paused);
}

void Coordinator::on(const Moment& moment, const event::ReturnIo& returned) {
  if (model::Member* member = cluster_.find(moment.event.origin.member)) access_.returned(moment, *member, returned);
}

void Coordinator::on(const Moment& moment, const event::AskWait& asked) {
  const model::Member* member = cluster_.find(moment.event.origin.member);
  access_.expect_wait(moment, member ? member->application : nullptr, asked);
}

void Coordinator::on(const Moment& moment, const event::IoPhase& phase) {
  model::Member* member = cluster_.find(moment.event.origin.member);
  if (!member || phase.index <= member->last_phase) return;
  member->last_phase = phase.index;
  member->application->add_phase(phase, moment.now, member);
  if (phase.of_one_process) return;  // other processes may still be in the application's I/O phase
  tell_model(moment, *member->application);
  access_.end_phase(moment, *member, phase);
  steering_.phase(moment, *member->application, phase);
}

// Only changes are published, not each phase.
void Coordinator::tell_model(const Moment& moment, const model::Application& application) {
  const model::Fit fit = model::fit(application);
  const bool irregular = fit == model::Fit::irregular;
  if (fit == model::Fit::learning || irregular_.contains(application.id) == irregular) return;
  if (irregular) {
    irregular_.insert(application.id);
  } else {
    irregular_.erase(application.id);
  }
  const model::MeanSpread period = application.history.period();
  moment.commands.push_back(
      {{}, event::Model{application.name, std::string{model::name_of(fit)}, {}, period.mean, period.spread}});
}

void Coordinator::on(const Moment& moment, const event::Bye&) {
  servers_.leave(moment, remove(moment));
  steering_.asker_left(moment);
  end_waits(moment, {});
}

void Coordinator::on(const Moment& moment, const event::Lost&) {
  servers_.leave(moment, remove(moment));
  resizing_.withdraw(moment);
  steering_.asker_left(moment);
  end_waits(moment, {});
}

void Coordinator::on(const Moment& moment, const event::Tick&) {
  access_.tick(moment);
  joining_.tick(moment);
  steering_.tick(moment);
  servers_.tick(moment);
}

std::optional<Time> Coordinator::deadline() const {
  std::optional<Time> next = access_.deadline();
  for (const std::optional<Time> other :
       {joining_.deadline(), steering_.deadline(), servers_.deadline(), backlog_.deadline()}) {
    if (other) next = std::min(next.value_or(Time::max()), *other);
  }
  return next;
}

void Coordinator::on(const Moment& moment, const event::Malleable& said) {
  const model::Member* member = cluster_.find(moment.event.origin.member);
  if (!member) {
    return refuse(moment, "MALLEABLE of a member that belongs to no application: send HELLO with 'mpi' before it");
  }
  resizing_.malleable(*member, said);
  steering_.malleable(moment, *member->application, said);
}

void Coordinator::on(const Moment& moment, const event::Iterations& said) {
  const model::Member* member = cluster_.find(moment.event.origin.member);
  if (!member) return;
  member->application->add_iterations(said);
  steering_.iterations(moment, *member->application);
}

void Coordinator::on(const Moment& moment, const event::Reconfiguration& record) {
  const model::Member* member = cluster_.find(moment.event.origin.member);
  if (!member) return;
  resizing_.ended(moment, *member, record);
  joining_.ended(moment, *member->application);
  steering_.ended(moment, *member->application, record);
}

void Coordinator::on(const Moment& moment, const event::StartProcesses& start) {
  const model::Member* member = cluster_.find(moment.event.origin.member);
  if (!member) {
    return refuse(moment,
                  "START_PROCESSES of a member that belongs to no application: send HELLO with 'mpi' before it");
  }
  joining_.start(moment, *member, start);
}

void Coordinator::on(const Moment& moment, const event::ProcessReady& ready) {
  if (const model::Member* member = cluster_.find(moment.event.origin.member)) joining_.ready(moment, *member, ready);
}

void Coordinator::on(const Moment& moment, const event::StopProcesses& stop) {
  if (const model::Member* member = cluster_.find(moment.event.origin.member)) joining_.stop(moment, *member, stop);
}

void Coordinator::on(const Moment& moment, const event::ProcessFailed& failed) { joining_.failed(moment, failed); }

void Coordinator::on(const Moment& moment, const event::Resize& resize) {
  const model::Application* subject = resizing_.subject_of(moment.event.origin.member, resize);
  const bool may_grow = subject != nullptr && resizing_.gives_out();
  if (may_grow && steering_.allocations().ask(moment, *subject, resize)) return;
  event::Resize placed = resize;
  if (may_grow) steering_.place(*subject, placed);
  if (may_grow && steering_.lacks_places(*subject, placed)) {
    steering_.refused(*subject);
    const std::string why = "cannot resize: the allocation of '" + subject->name + "' has no such cores left";
    return resizing_.refuse_to(moment, moment.event.origin.member, why);
  }
  if (model::Application* asked = resizing_.resize(moment, placed)) {
    steering_.resized_by_tool(moment, *asked);
  } else if (subject != nullptr) {
    steering_.refused(*subject);
  }
}

void Coordinator::on(const Moment& moment, const event::HeldNodes& held) {
  steering_.held_nodes(moment, held);
  end_waits(moment, held.text);
  steering_.shared_out(moment);
}

void Coordinator::end_waits(const Moment& moment, const std::string& refusal) {
  for (Allocations::WaitingResize& waiting : steering_.allocations().answered()) {
    const Moment then{waiting.event, moment.now, moment.commands};
    const MemberId asking = waiting.event.origin.member;
    const model::Application* subject = resizing_.subject_of(asking, waiting.resize);
    if (subject != nullptr && !refusal.empty()) {
      resizing_.refuse_to(then, asking, "cannot resize: the resource manager gives no more cores: " + refusal);
      continue;
    }
    on(then, waiting.resize);
    if (subject != nullptr && subject->malleability.resizing_to == 0)
      steering_.allocations().unused(then, *subject, waiting.fresh);
  }
}

// Only the daemon may send profiles. Others measure a member's times.
void Coordinator::on(const Moment& moment, const event::Profile& profile) {
  if (!moment.event.origin.member) steering_.profile(moment, profile);
}

// Only the daemon knows nodes.
void Coordinator::on(const Moment& moment, const event::NodeCores& told) {
  if (!moment.event.origin.member) steering_.node_cores(moment, told);
}

void Coordinator::on(const Moment& moment, const event::WithdrawResize& withdraw) {
  const model::Member* member = cluster_.find(moment.event.origin.member);
  if (member && withdraw.begun) return resizing_.begun(moment, *member, withdraw);
  if (steering_.allocations().withdraw(moment.event.origin.member)) {
    return resizing_.refuse_to(moment, moment.event.origin.member, "the resource manager has not given the cores yet");
  }
  if (!resizing_.withdraw(moment)) refuse(moment, "no resize that you requested is under way: nothing to withdraw");
}

void Coordinator::on(const Moment& moment, const event::SetPolicy& set) {
  if (!set.application.empty() || !set.target.empty()) return set_policy_for(moment, set);
  if (set.policy.empty() && set.metric.empty()) return refuse(moment, "SET_POLICY without 'policy' and 'metric'");
  const auto metric = set.metric.empty() ? access_.metric() : policy::Metric::parse(set.metric);
  if (!metric) return refuse(moment, metric.error().text);
  const auto parsed =
      set.policy.empty() ? policies_ : policy::parse_combination(set.policy, settings_.loaded, policies_);
  if (!parsed) return refuse(moment, parsed.error().text);
  policies_ = parsed.value();
  access_.set_policy(moment, *policies_.access, metric.value());
  if (set.policy.empty()) return;
  steering_.set_policies(moment, policies_);
  servers_.set_policy(moment, policies_.for_servers());
}

void Coordinator::set_policy_for(const Moment& moment, const event::SetPolicy& set) {
  const auto quoted = [](const std::string& text) { return "'" + text.substr(0, longest_quoted) + "'"; };
  if (!set.application.empty() && !set.target.empty()) {
    return refuse(moment, "SET_POLICY for an application and for a target: send two");
  }
  if (!set.metric.empty()) return refuse(moment, "a metric holds for the whole daemon: set it without --app, --target");
  const policy::Policy* access = nullptr;  // "default": none of its own
  if (set.policy != default_policy) {
    const auto parsed = policy::parse_combination(set.policy, settings_.loaded);
    if (!parsed) return refuse(moment, parsed.error().text);
    if (parsed.value().has_others()) {
      const char* what = parsed.value().servers != nullptr ? "I/O servers" : "cores";
      return refuse(moment, quoted(set.policy) + " decides about " + what +
                                ", which all applications share: name a policy for " +
                                "access to targets, or set it for the daemon");
    }
    access = parsed.value().access;
  }
  if (set.target.size() > PoliciesInForce::longest_target) {
    return refuse(moment, "the name of target " + quoted(set.target) + "… has " + std::to_string(set.target.size()) +
                              " bytes: at most " + std::to_string(PoliciesInForce::longest_target) + " may be");
  }
  if (!set.target.empty()) {
    const auto& targets = access_.policies().targets();
    if (targets.size() >= PoliciesInForce::most_targets && !targets.contains(set.target)) {
      return refuse(moment, std::to_string(targets.size()) + " targets have policies of their own, no more may: set " +
                                "'default' for some");
    }
    return access_.set_target_policy(moment, set.target, {access, set.allow});
  }
  const model::Application* application = cluster_.find_application(set.application);
  if (application == nullptr) {
    return refuse(moment, "no application " + quoted(set.application) + " is running: 'hocket ls' lists them");
  }
  access_.set_application_policy(moment, application->id, access);
}

void Coordinator::on(const Moment& moment, const event::SlowAggregator& slow) {
  const model::Member* member = cluster_.find(moment.event.origin.member);
  if (member == nullptr) return;
  event::Decision record;
  record.number = ++decisions_;
  record.policy = "set-aside";  // whose rule for slow servers a file applies to its ranks
  record.decided_for = member->application->name;
  record.action = "aggregate";
  record.from = record.to = member->application->computing_processes();
  record.reason = event::AggregatorSlow{slow.rank, slow.file.substr(0, longest_shown), to_s(slow.service),
                                        to_s(slow.peers), to_s(slow.hold_off)};
  moment.commands.push_back({{}, std::move(record)});
}

// Another leader may give out the same cores, and knows the same servers. A later place counts for good: whoever found
// this leader there may have talked to the other one.
void Coordinator::on(const Moment& moment, const event::LeaderPlace& told) {
  if (moment.event.origin.member || told.place <= leader_place_) return;  // only the daemon knows it
  leader_place_ = told.place;
  resizing_.only_grant();
  servers_.only_grant();
}

void Coordinator::on(const Moment& moment, const event::MapAdopted& said) {
  if (model::Member* member = cluster_.find(moment.event.origin.member)) servers_.adopted(moment, *member, said);
}

AppId Coordinator::remove(const Moment& moment) {
  model::Member* member = cluster_.find(moment.event.origin.member);
  if (!member) return {};
  access_.leave(moment, *member);
  resizing_.leave(moment, *member, std::holds_alternative<event::Bye>(moment.event.body));
  joining_.leave(moment, *member);
  model::Application& application = *member->application;
  const AppId app = application.id;
  const std::string name = application.name;
  const std::string job = application.job;
  if (application.members.size() == 1) Steering::leaves(moment, application);
  cluster_.leave(*member);
  if (cluster_.find(app) != nullptr) {
    steering_.member_left(moment, application);
  } else {
    irregular_.erase(app);
    steering_.gone(moment, app, name, job);
  }
  return app;
}

void Coordinator::refuse(const Moment& moment, std::string text) {
  moment.commands.push_back({moment.event.origin.member, event::Refused{std::move(text)}});
}

event::Application Coordinator::describe(const model::Application& application, Time now) const {
  event::Application row;
  row.app = application.id;
  row.application = application.name;
  row.job = application.job;
  row.program = application.program;
  row.mpi = application.mpi;
  row.node = application.node;
  row.pid = application.pid;
  row.user = application.user;
  row.slurm_step = application.slurm_step;
  row.processes = application.computing_processes();
  row.state = model::name_of(application.activity);
  row.since = application.since;
  row.target = application.target;
  row.parts = application.parts;

  const model::IoHistory& history = application.history;
  row.phases = history.phases();
  row.period = history.period().mean;
  row.period_spread = history.period().spread;
  row.duration = history.duration().mean;
  row.duration_spread = history.duration().spread;
  row.io_ratio = history.io_ratio();
  row.io = application.totals.io;
  row.wait = application.waited_until(now);
  const model::SpentTimes spent = application.spent();
  row.told_processes = spent.processes;
  row.cpu = spent.cpu / std::max<std::int64_t>(1, spent.processes);
  row.cpu_most = spent.cpu_most;
  row.comm = spent.comm / std::max<std::int64_t>(1, spent.processes);
  row.comm_most = spent.comm_most;
  row.bytes_read = application.totals.bytes_read;
  row.bytes_written = application.totals.bytes_written;
  if (const model::PhaseRecord* last = history.last()) {
    row.last_io_start = last->start;
    row.last_io_end = last->end;
  }
  for (const model::PredictedPhase& next : history.predict(now, 1)) {
    row.next_start = next.start;
    row.next_uncertainty = next.uncertainty;
  }
  row.malleable = application.malleability.malleable;
  row.sleeping = application.malleability.sleeping;
  row.resizing_to = application.malleability.resizing_to;
  row.reconfigurations = application.malleability.reconfigurations;
  row.flop_per_iteration = application.flop_per_iteration;
  row.flop_source = model::name_of(application.flop_source);
  row.map_epoch = servers_.epoch_of(application);
  row.servers = servers_.own_servers_of(application);
  row.assigned_servers = servers_.assigned_to(application);
  row.forwards = application.forwards;
  row.given_servers = servers_.given_to(application);
  row.expected_bytes_per_s = servers_.expected_of(application);
  servers_.describe_weight(application, row);
  row.model = model::name_of(model::fit(application));
  row.policy = access_.policies().of(application.id, application.target).name;
  row.nodes = text_of(application.runs_on(), longest_nodes);
  row.delegated = delegated_targets(application);
  row.phases_in_period = history.phases() > 0 ? static_cast<std::int64_t>(history.cycle_length()) : 0;
  return row;
}

}  // namespace hocket::coordinator
