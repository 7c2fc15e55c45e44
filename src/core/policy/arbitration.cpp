// Each application that forwards gets a number of I/O servers (GekkoFWD, section 3): zero, one, static, size, process,
// mckp and oracle. allocation/allocation.hpp has the numbers, allocation/seating.hpp the servers behind them.
//
// The numbers are decided anew when the set of applications or of servers changes. `static` never changes a running
// job, but for a server that has gone. Applications to which servers were assigned by hand keep them for themselves.
// Servers of one file system are a pool for the applications that forward its files. An application or a server that
// has not said its file system fits all, so that such a server may be in several pools.
//
// An application that nobody has measured gets the number of `static` (section 3.1). Servers that are slower than
// their peers are set aside, as by `set-aside`.
#include <algorithm>
#include <cmath>
#include <optional>

#include "allocation/choices.hpp"
#include "allocation/seating.hpp"
#include "policy/server_policy.hpp"

namespace hocket::policy {
namespace {

using allocation::Allocation;
using allocation::Job;

// Steps of the knapsack that are spent on the next best allocations of one decision, which only people read.
constexpr std::size_t most_steps_for_next = 20'000'000;

const AssignedServers* assigned_to(const ServersView& view, AppId application) {
  const auto found = std::ranges::find(view.assigned, application, &AssignedServers::application);
  return found == view.assigned.end() ? nullptr : &*found;
}

// What is given out of one file system, and to whom.
struct Arbitration {
  std::string_view file_system;  // "": there is no other
  std::vector<const model::Application*> applications;
  std::vector<const AssignedServers*> before;  // of each application; nullptr: none
  std::vector<Job> jobs;                       // the same, as the numbers are decided
  std::vector<std::string_view> servers;       // of the pool, in order of arrival
  allocation::Pool pool;
  bool assumes_nodes = false;  // nobody has said how many nodes the system has
};

bool is_up_for(const ServerStatus& server, const model::Application& application) {
  return server.state == "up" && fits(server.file_system, server.node, application);
}

// The servers that are up and fit the application, but for those that others have by hand, as long as more are left.
std::vector<std::string_view> servers_of(const ServersView& view, const model::Application& application) {
  std::vector<std::string_view> up, left;
  for (const ServerStatus& server : view.servers) {
    if (!is_up_for(server, application)) continue;
    up.push_back(server.name);
    const bool is_taken = std::ranges::any_of(view.assigned, [&](const AssignedServers& one) {
      return one.by_hand && std::ranges::count(one.servers, server.name) > 0;
    });
    if (!is_taken) left.push_back(server.name);
  }
  return left.empty() ? up : left;
}

// The number of `static` for a job, at most that of the pool, and one that the rules allow.
int default_number(const Job& job, const allocation::Pool& pool, const allocation::AllocationRules& rules) {
  const std::int64_t product = std::int64_t{job.nodes} * pool.system_servers;
  const std::int64_t by_ratio = (product + pool.system_nodes - 1) / pool.system_nodes;
  int number = static_cast<int>(std::clamp<std::int64_t>(by_ratio, 1, std::max(pool.servers, 1)));
  while (rules.divides_evenly && job.nodes % number != 0) --number;
  return number;
}

bool is_measured(const model::Application& application) {
  return !allocation::parse_choices(application.bandwidth_curve).empty();
}

// Returns true if the application was given a number of servers, 0 included.
bool has_number(const AssignedServers* before) { return before != nullptr && !before->none_fits; }

// Leaves a job the number of servers that it has.
void keep_number(Job& job, const AssignedServers& before) {
  const auto servers = static_cast<int>(before.servers.size());
  std::int64_t bandwidth = 0;
  for (const allocation::Choice& choice : job.choices)
    if (choice.servers <= servers) bandwidth = choice.bandwidth;
  job.choices = {{servers, bandwidth}};
}

using Applications = std::vector<const model::Application*>;

// True if the applications share a pool of servers: they are on one file system, and on one node unless servers can be
// reached from each node (those of which no node is known).
bool share_pool(const ServersView& view, const model::Application& one, const model::Application& other) {
  const auto has_node = [](const ServerStatus& server) { return !server.node.empty(); };
  return one.file_system == other.file_system &&
         (node_of(one) == node_of(other) || std::ranges::none_of(view.servers, has_node));
}

// Returns the applications whose servers the policy decides about: those of each pool, in order of arrival.
std::vector<Applications> by_pool(const ServersView& view) {
  std::vector<Applications> all;
  for (const auto& [id, application] : view.cluster.applications()) {
    const AssignedServers* const before = assigned_to(view, id);
    if (!application.forwards || (before != nullptr && before->by_hand)) continue;
    const auto same = std::ranges::find_if(
        all, [&view, &one = application](const Applications& some) { return share_pool(view, *some.front(), one); });
    (same == all.end() ? all.emplace_back() : *same).push_back(&application);
  }
  return all;
}

// Returns true if servers or applications of other pools are not in that of this application.
bool has_others(const ServersView& view, const model::Application& application) {
  return std::ranges::any_of(view.servers,
                             [&](const ServerStatus& server) {
                               return server.state == "up" && !fits(server.file_system, server.node, application);
                             }) ||
         std::ranges::any_of(view.cluster.applications(), [&](const auto& other) {
           return other.second.forwards && !share_pool(view, other.second, application);
         });
}

// `applications`: those of one pool.
Arbitration arbitration_of(const ServersView& view, const Applications& applications, bool keeps_numbers) {
  Arbitration all;
  all.applications = applications;
  const model::Application& first = *applications.front();
  all.servers = servers_of(view, first);
  if (has_others(view, first)) all.file_system = first.file_system;
  std::int64_t nodes = 0;
  for (const model::Application* const application : applications) {
    all.before.push_back(assigned_to(view, application->id));
    nodes += application->nodes;
    const std::int64_t processes = std::clamp<std::int64_t>(application->computing_processes(), 1, 1 << 30);
    all.jobs.push_back({application->name, static_cast<int>(application->nodes), static_cast<int>(processes),
                        allocation::parse_choices(application->bandwidth_curve)});
  }
  const ArbitrationSettings& settings = view.arbitration;
  const auto servers = static_cast<std::int64_t>(all.servers.size());
  all.pool = {
      static_cast<int>(servers),
      static_cast<int>(settings.system_nodes > 0 ? settings.system_nodes : std::max<std::int64_t>(nodes, 1)),
      static_cast<int>(settings.system_servers > 0 ? settings.system_servers : std::max<std::int64_t>(servers, 1))};
  all.assumes_nodes = settings.system_nodes <= 0;
  for (std::size_t i = 0; i < all.jobs.size(); ++i) {
    Job& job = all.jobs[i];
    if (keeps_numbers && has_number(all.before[i])) keep_number(job, *all.before[i]);
    if (allocation::restricted(job, settings.rules).choices.empty())
      job.choices = {{default_number(job, all.pool, settings.rules), 0}};
  }
  return all;
}

// A decision about numbers, and whether the policy itself could not decide.
struct Numbers {
  Allocation all;
  bool fell_back = false;
};

Numbers numbers_by(std::string_view policy, const Arbitration& set, const allocation::AllocationRules& rules) {
  Result<Allocation> found = allocation::allocate(policy, set.jobs, set.pool, rules);
  if (found) return {std::move(found).value(), false};
  // Each job has a choice that the rules allow, so `static` always decides.
  return {allocation::allocate("static", set.jobs, set.pool, rules).value(), true};
}

std::vector<std::vector<std::string_view>> seated(std::string_view policy, const Arbitration& set,
                                                  const Numbers& numbers) {
  // Under a rule that gives out more than there is, a job shares all of its servers.
  const bool shares_all = numbers.all.servers > set.pool.servers;
  std::vector<allocation::Unseated> jobs;
  for (std::size_t i = 0; i < set.jobs.size(); ++i) {
    const allocation::JobAllocation& given = numbers.all.jobs[i];
    allocation::Unseated& job = jobs.emplace_back();
    job.servers = given.servers;
    job.shares_one = given.shared && !shares_all;
    if (!has_number(set.before[i])) continue;
    job.has = set.before[i]->servers;
    job.stays = policy == "static";
    if (job.stays) job.servers = static_cast<int>(job.has.size());  // also one that the rules do not allow any more
  }
  return allocation::seats_of(jobs, set.servers);
}

// Returns the facts behind the number of one application.
event::ServersGiven facts_of(std::size_t i, const Arbitration& set, const Numbers& numbers, std::size_t seats,
                             const allocation::AllocationRules& rules) {
  const allocation::JobAllocation& given = numbers.all.jobs[i];
  event::ServersGiven facts;
  facts.given = static_cast<std::int64_t>(seats);
  facts.shared = given.shared || (seats > 0 && numbers.all.servers > set.pool.servers);
  facts.nodes = set.jobs[i].nodes;
  facts.processes = set.jobs[i].processes;
  facts.sum = static_cast<double>(numbers.all.bandwidth);
  facts.applications = static_cast<std::int64_t>(set.jobs.size());
  facts.given_out = numbers.all.servers;
  facts.pool = set.pool.servers;
  facts.fell_back = numbers.fell_back;
  facts.file_system = set.file_system;
  facts.none_up = set.servers.empty() && given.servers > 0;
  if (numbers.fell_back && rules.least_of_static) facts.least = *rules.least_of_static;
  if (!is_measured(*set.applications[i])) return facts;
  facts.bandwidth = static_cast<double>(given.bandwidth);
  for (const allocation::Choice& choice : set.jobs[i].choices)
    if (choice.servers <= set.pool.servers) facts.alone = std::fmax(facts.alone, static_cast<double>(choice.bandwidth));
  return facts;
}

// Adds the system by whose ratio `static` has decided the number, if it has, and has not before.
void add_system(std::string_view policy, std::size_t i, const Arbitration& set, const Numbers& numbers,
                event::ServersGiven& facts) {
  const bool is_static = policy == "static";
  if (is_static && has_number(set.before[i])) return;
  if (!is_static && !numbers.fell_back && is_measured(*set.applications[i])) return;
  facts.system_nodes = set.pool.system_nodes;
  facts.system_servers = set.pool.system_servers;
  facts.nodes_assumed = set.assumes_nodes;
}

void add_next_best(std::size_t i, const Arbitration& set, const Numbers& numbers,
                   const allocation::AllocationRules& rules, event::ServersGiven& facts) {
  const auto next = allocation::next_best(set.jobs, set.pool, rules, {i, numbers.all.jobs[i]});
  if (!next) return;
  facts.next = next->jobs[i].servers;
  facts.next_sum = static_cast<double>(next->bandwidth);
}

// True if the application has just these servers. Without a server that is up, it uses those that come, unless it is to
// access its files directly.
bool is_same(const AssignedServers* before, const std::vector<std::string_view>& now, bool direct, bool none_fits) {
  if (before == nullptr) return now.empty() && !direct && !none_fits;
  if (before->none_fits) return now.empty() && !direct;
  if (none_fits) return false;
  if (before->servers.size() != now.size() || before->servers.empty() != direct) return false;
  return std::ranges::all_of(now, [&](std::string_view one) { return std::ranges::count(before->servers, one) > 0; });
}

std::size_t steps_of_knapsack(const Arbitration& set) {
  std::size_t choices = 0;
  for (const Job& job : set.jobs) choices += job.choices.size();
  return choices * static_cast<std::size_t>(set.pool.servers + 1);
}

// `steps`: of knapsacks, spent so far on next best allocations.
void arbitrate(std::string_view policy, const ServersView& view, const Arbitration& set, std::size_t& steps,
               ServerDecision& decision) {
  const allocation::AllocationRules& rules = view.arbitration.rules;
  const Numbers numbers = numbers_by(policy, set, rules);
  const auto seats = seated(policy, set, numbers);
  // If no server is up at all, the application uses those that come.
  const bool are_others_up = std::ranges::count(view.servers, std::string_view{"up"}, &ServerStatus::state) > 0;
  for (std::size_t i = 0; i < set.jobs.size(); ++i) {
    const bool direct = numbers.all.jobs[i].servers == 0;
    const bool none_fits = set.servers.empty() && are_others_up && !direct;
    if (is_same(set.before[i], seats[i], direct, none_fits)) continue;
    ServerChange change;
    change.action = ServerChange::Action::assign;
    change.application = set.applications[i]->id;
    change.servers.assign(seats[i].begin(), seats[i].end());
    change.direct = direct;
    change.none_fits = none_fits;
    change.given = facts_of(i, set, numbers, seats[i].size(), rules);
    add_system(policy, i, set, numbers, *change.given);
    steps += steps_of_knapsack(set);
    if (policy == "mckp" && !numbers.fell_back && steps <= most_steps_for_next)
      add_next_best(i, set, numbers, rules, *change.given);
    decision.changes.push_back(std::move(change));
  }
}

template <std::size_t number>
ServerDecision decide(const ServersView& view, const event::Event& event) {
  ServerDecision decision = set_aside.decide(view, event);
  if (!view.set_changed) return decision;
  const std::string_view policy = allocation::policies[number];
  std::size_t steps = 0;
  for (const Applications& applications : by_pool(view))
    arbitrate(policy, view, arbitration_of(view, applications, policy == "static"), steps, decision);
  return decision;
}

template <std::size_t number>
constexpr ServerPolicy arbitration_policy(std::string_view summary) {
  return {allocation::policies[number], summary, decide<number>, true};
}

}  // namespace

constexpr std::array<ServerPolicy, std::size(allocation::policies)> arbitration_policies{
    arbitration_policy<0>("forwarded applications access their files directly, where they may"),
    arbitration_policy<1>("each forwarded application gets one I/O server"),
    arbitration_policy<2>("each forwarded application gets I/O servers by its nodes, and keeps them"),
    arbitration_policy<3>("forwarded applications divide the I/O servers by nodes"),
    arbitration_policy<4>("forwarded applications divide the I/O servers by processes"),
    arbitration_policy<5>("forwarded applications get the I/O servers that give the largest bandwidth in all"),
    arbitration_policy<6>("each forwarded application gets as many I/O servers as suit it best, shared where needed"),
};

}  // namespace hocket::policy
