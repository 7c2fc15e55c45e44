// Request schedulers: by which the servers order accesses, to which application a client belongs, and which weight
// that has.
#include <algorithm>
#include <charconv>
#include <utility>

#include "coordinator/servers/servers.hpp"
#include "explain/words.hpp"

namespace hocket::coordinator {

using explain::number;
using explain::quoted;
using policy::ServerChange;
namespace chooser = event::chooser;

namespace {

// SET_SERVER with this word leaves the choice to policy and configuration.
constexpr std::string_view no_choice = "default";

// True if the process is a member of the application.
bool has_process(const model::Application& application, std::string_view node, std::int64_t pid) {
  return std::ranges::any_of(application.members, [&](const model::Member* member) {
    return member->peer_pid == pid && member->node == node;
  });
}

}  // namespace

// ---- schedulers ----------------------------------------------------------------------------------------------------

// The servers know the schedulers, so they check the name.
void Servers::schedule_by_hand(const Moment& moment, const event::SetServer& set) {
  const bool is_all = set.server == all_servers;
  const ServerEntry* const one = is_all ? nullptr : find(set.server);
  if (!is_all && (one == nullptr || !one->member || one->state == ServerState::hung)) {
    return refuse(moment, "no server called " + quoted(set.server.substr(0, longest_name)) +
                              " runs; 'hocket servers' lists them");
  }
  if (set.scheduler.empty() || set.scheduler.size() > longest_name) {
    return refuse(
        moment, "SET_SERVER: " + quoted(set.scheduler.substr(0, longest_name)) + " is no name of a request scheduler");
  }
  for (ServerEntry& entry : entries_) {
    const bool is_meant = is_all ? static_cast<bool>(entry.member) && entry.state != ServerState::hung : &entry == one;
    if (!is_meant) continue;
    entry.refused.clear();
    entry.scheduled.reset();
    if (set.scheduler == no_choice)
      schedule_by_default(moment, entry);
    else
      choose(moment, entry, {set.scheduler, std::string{chooser::by_operator}, {}}, set);
  }
}

void Servers::choose(const Moment& moment, ServerEntry& entry, SchedulerChoice choice,
                     const event::SetServer& numbers) {
  event::UseScheduler use{choice.name, numbers.data_servers, numbers.stripe_bytes, choice.by};
  moment.commands.push_back({entry.member, std::move(use)});
  entry.told_choice = std::move(choice);
  ++entry.unanswered;
}

void Servers::schedule_by_default(const Moment& moment, ServerEntry& entry) {
  const std::string& configured = settings_.request_scheduler;
  const std::string by{configured.empty() ? chooser::by_default : chooser::by_configuration};
  choose(moment, entry, {configured, by, {}}, {});
}

std::optional<event::Reason> Servers::obstacle_to_scheduler(const ServerEntry* entry, const ServerChange& change,
                                                            Time now) {
  if (server_step(state_of(entry), ServerInput::add).action == ServerAction::refuse)
    return event::ServerGone{change.server.substr(0, longest_name)};
  if (entry->choice().by == chooser::by_operator) return event::because(event::circumstance::scheduler_by_hand);
  if (!entry->scheduled || now - *entry->scheduled >= between_changes) return std::nullopt;
  return event::ChangedLately{to_s(now - *entry->scheduled), to_s(between_changes)};
}

void Servers::schedule(const Moment& moment, const ServerChange& change) {
  ServerEntry* const entry = find(change.server);
  SchedulerChoice wanted{change.scheduler.substr(0, longest_name), std::string{chooser::by_policy}, change.text};
  // It is so already, or cannot be.
  if (entry != nullptr && (entry->choice().name == wanted.name || entry->refused == wanted.name)) return;
  if (auto why = obstacle_to_scheduler(entry, change, moment.now))
    return ignore(moment, entry, change, *std::move(why));
  entry->scheduled = moment.now;
  entry->refused.clear();
  ignored_.erase(change.server);
  choose(moment, *entry, std::move(wanted), {});
}

void Servers::scheduler_used(const Moment& moment, const event::SchedulerUsed& used) {
  ServerEntry* const entry = find(moment.event.origin.member);
  if (entry == nullptr) return;
  const SchedulerChoice told = entry->told_choice;
  if (entry->unanswered > 0) --entry->unanswered;
  const std::string by = used.scheduler_by.substr(0, longest_name);
  const bool is_by_hand = by == chooser::by_operator;
  if (!used.error.empty()) {
    if (is_by_hand || told.by != by) return;  // the tool reads the answer itself
    entry->refused = told.name;
    return tell(moment, entry->said.server, "leave", told.text, {},
                event::SchedulerRefused{told.name, std::string{used.error}.substr(0, longest_shown)});
  }
  entry->said.scheduler = used.scheduler.substr(0, longest_name);
  entry->said.scheduler_by = by;
  event::SchedulerChanged change{entry->said.scheduler, used.previous.substr(0, longest_name), used.forward_queue, by};
  const bool is_told = told.by == by && told.name == entry->said.scheduler;
  tell(moment, entry->said.server, "schedule", is_told ? told.text : std::string{}, std::move(change), {});
}

// ---- applications --------------------------------------------------------------------------------------------------

void Servers::vouch(const Moment& moment, const event::AskApplication& asked) {
  if (find(moment.event.origin.member) == nullptr) return;
  event::ApplicationFor answer;
  answer.pids = asked.pids;
  const char* at = asked.pids.data();
  const char* const end = at + asked.pids.size();
  while (answer.pid == 0 && at < end) {
    std::int64_t pid = 0;
    const auto [after, error] = std::from_chars(at, end, pid);
    if (error != std::errc{}) break;
    at = after + (after < end ? 1 : 0);
    // A server is a member of an application for which it asks for turns, but its clients are not.
    const auto is_it = [&](const ServerEntry& one) {
      return one.said.pid == pid && one.node == moment.event.origin.node;
    };
    if (std::ranges::any_of(entries_, is_it)) continue;
    for (const auto& [id, application] : cluster_.applications()) {
      if (pid <= 0 || !has_process(application, moment.event.origin.node, pid)) continue;
      answer.pid = pid;
      answer.application = application.name;
      answer.processes = application.processes;
      answer.weight = maps_.at(id).weight;
      break;
    }
  }
  moment.commands.push_back({moment.event.origin.member, std::move(answer)});
}

void Servers::tell_weights(const Moment& moment, const ServerEntry& entry) const {
  for (const auto& [app, map] : maps_) {
    if (map.weight == 1) continue;
    moment.commands.push_back({entry.member, event::ApplicationWeight{cluster_.find(app)->name, map.weight}});
  }
}

void Servers::weigh(const Moment& moment, const model::Application& application, ApplicationMap& map,
                    std::int64_t weight, std::string_view by, std::string text) {
  map.weight_by = by;
  if (map.weight == weight) return;
  event::ApplicationWeighed change{weight, std::exchange(map.weight, weight), map.weight_by};
  for (const ServerEntry& entry : entries_) {
    if (entry.member) moment.commands.push_back({entry.member, event::ApplicationWeight{application.name, weight}});
  }
  tell(moment, application.name, "weigh-application", std::move(text), std::move(change), {});
}

void Servers::weigh_by_default(const Moment& moment, const model::Application& application, ApplicationMap& map) {
  const auto configured = settings_.application_weights.find(application.asked);
  if (configured == settings_.application_weights.end())
    return weigh(moment, application, map, 1, chooser::by_default, {});
  weigh(moment, application, map, configured->second, chooser::by_configuration, {});
}

void Servers::weigh_by_hand(const Moment& moment, const event::SetServer& set) {
  const model::Application* const application = cluster_.find_application(set.application);
  if (application == nullptr) {
    return refuse(moment, "no application " + quoted(set.application.substr(0, longest_name)) +
                              " is running: 'hocket ls' lists them");
  }
  if (set.weight < 0 || set.weight > event::most_application_weight) {
    return refuse(moment, "invalid weight " + number(set.weight) + ": must be 1 to " +
                              number(event::most_application_weight) + ", or 0 for no choice");
  }
  ApplicationMap& map = maps_.at(application->id);
  if (set.weight == 0) return weigh_by_default(moment, *application, map);
  weigh(moment, *application, map, set.weight, chooser::by_operator, {});
}

void Servers::weigh_application(const Moment& moment, const ServerChange& change) {
  const model::Application* const application = cluster_.find(change.application);
  if (application == nullptr) return;  // it has left
  ApplicationMap& map = maps_.at(change.application);
  if (map.weight == change.weight) return;  // it is so already
  std::optional<event::Reason> why;
  if (change.weight < 1 || change.weight > event::most_application_weight)
    why = event::InvalidValue{"weight", number(change.weight), 1, event::most_application_weight};
  else if (map.weight_by == chooser::by_operator)
    why = event::because(event::circumstance::weight_by_hand);
  if (why) return ignore(moment, application->name, map.ignored, change.text, *std::move(why));
  weigh(moment, *application, map, change.weight, chooser::by_policy, change.text);
}

void Servers::describe_weight(const model::Application& application, event::Application& row) const {
  const auto found = maps_.find(application.id);
  if (found == maps_.end()) return;
  row.weight = found->second.weight;
  row.weight_by = found->second.weight_by;
}

}  // namespace hocket::coordinator
