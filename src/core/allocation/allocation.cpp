#include "allocation/allocation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "allocation/knapsack.hpp"

namespace hocket::allocation {
namespace {

std::int64_t sum_of(std::span<const Job> jobs, int Job::*size) {
  return std::accumulate(jobs.begin(), jobs.end(), std::int64_t{0},
                         [=](std::int64_t sum, const Job& job) { return sum + job.*size; });
}

// The number of servers that a rule gives to a job.
using Rule = int (*)(const Job& job, std::span<const Job> jobs, const Pool& pool);

int zero(const Job&, std::span<const Job>, const Pool&) { return 0; }
int one(const Job&, std::span<const Job>, const Pool&) { return 1; }

// ceil(nodes / (system nodes / system servers)), in integers.
int by_ratio(const Job& job, std::span<const Job>, const Pool& pool) {
  const std::int64_t product = std::int64_t{job.nodes} * pool.system_servers;
  const std::int64_t servers = (product + pool.system_nodes - 1) / pool.system_nodes;
  return static_cast<int>(std::min<std::int64_t>(servers, std::numeric_limits<int>::max()));
}

int by_share(const Job& job, std::span<const Job> jobs, const Pool& pool, int Job::*size) {
  const double share = static_cast<double>(job.*size) / static_cast<double>(sum_of(jobs, size));
  return static_cast<int>(std::lround(pool.servers * share));
}
int by_nodes(const Job& job, std::span<const Job> jobs, const Pool& pool) {
  return by_share(job, jobs, pool, &Job::nodes);
}
int by_processes(const Job& job, std::span<const Job> jobs, const Pool& pool) {
  return by_share(job, jobs, pool, &Job::processes);
}

struct NamedRule {
  std::string_view name;
  Rule rule;
};
constexpr NamedRule rules_by_name[] = {
    {"zero", zero}, {"one", one}, {"static", by_ratio}, {"size", by_nodes}, {"process", by_processes}};

// Returns the job's choice of that number, of the next lower one, or its lowest.
const Choice& admissible(const Job& job, int servers) {
  const auto above = std::find_if(job.choices.begin(), job.choices.end(),
                                  [=](const Choice& choice) { return choice.servers > servers; });
  return above == job.choices.begin() ? *above : *std::prev(above);
}

Allocation added_up(std::vector<JobAllocation> jobs) {
  Allocation all{std::move(jobs)};
  for (const JobAllocation& job : all.jobs) {
    if (!job.shared) all.servers += job.servers;
    all.bandwidth += job.bandwidth;
  }
  return all;
}

Allocation by_rule(Rule rule, std::span<const Job> jobs, const Pool& pool) {
  std::vector<JobAllocation> given;
  for (const Job& job : jobs) {
    const Choice& choice = admissible(job, rule(job, jobs, pool));
    given.push_back({choice.servers, false, choice.bandwidth});
  }
  Allocation all = added_up(std::move(given));
  if (all.servers <= pool.servers) return all;
  const int given_out = all.servers;
  for (JobAllocation& job : all.jobs) {
    if (job.servers == 0) continue;
    job.shared = true;
    job.bandwidth = static_cast<std::int64_t>(static_cast<double>(job.bandwidth) * pool.servers / given_out);
  }
  Allocation divided = added_up(std::move(all.jobs));
  divided.servers = given_out;
  return divided;
}

Allocation by_oracle(std::span<const Job> jobs) {
  std::vector<JobAllocation> given;
  for (const Job& job : jobs) {
    const auto best = std::max_element(job.choices.begin(), job.choices.end(),
                                       [](const Choice& a, const Choice& b) { return a.bandwidth < b.bandwidth; });
    given.push_back({best->servers, false, best->bandwidth});
  }
  return added_up(std::move(given));
}

// ---- mckp ----------------------------------------------------------------------------------------------------------

// The choices of all jobs as classes of a knapsack. The item after a job's own choices is the shared server, if there
// is one, which the pool sets aside. `other` has a job's item that is left out.
std::vector<std::vector<Item>> classes_of(std::span<const Job> jobs, std::span<const std::int64_t> least, bool shared,
                                          const OtherThan* other) {
  constexpr Item never{1 << 30, 0};  // keeps its number, and fits nowhere
  std::vector<std::vector<Item>> classes;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    std::vector<Item>& items = classes.emplace_back();
    const Job& job = jobs[i];
    const auto add = [&](int servers, std::int64_t bandwidth, bool is_left_out) {
      items.push_back(is_left_out || bandwidth < least[i] ? never : Item{servers, bandwidth});
    };
    const bool leaves_out = other != nullptr && other->job == i;
    for (const Choice& choice : job.choices)
      add(choice.servers, choice.bandwidth,
          leaves_out && !other->given.shared && other->given.servers == choice.servers);
    const auto alone =
        std::find_if(job.choices.begin(), job.choices.end(), [](const Choice& choice) { return choice.servers == 1; });
    if (shared && alone != job.choices.end())
      add(0, alone->bandwidth / static_cast<std::int64_t>(jobs.size()), leaves_out && other->given.shared);
  }
  return classes;
}

std::optional<Allocation> best_of(std::span<const Job> jobs, std::span<const std::int64_t> least, int servers,
                                  bool shared, const OtherThan* other) {
  if (servers < 0) return std::nullopt;
  const std::vector<std::vector<Item>> classes = classes_of(jobs, least, shared, other);
  const std::optional<Choices> best = best_choices(classes, servers);
  if (!best) return std::nullopt;
  std::vector<JobAllocation> given;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const std::size_t item = best->items[i];
    const bool at_shared = item == jobs[i].choices.size();
    given.push_back({at_shared ? 1 : classes[i][item].weight, at_shared, classes[i][item].value});
  }
  return added_up(std::move(given));
}

std::int64_t least_servers(std::span<const Job> jobs) {
  return std::accumulate(jobs.begin(), jobs.end(), std::int64_t{0},
                         [](std::int64_t sum, const Job& job) { return sum + job.choices.front().servers; });
}

std::optional<Allocation> by_knapsack(std::span<const Job> jobs, const Pool& pool, const AllocationRules& rules,
                                      const OtherThan* other = nullptr) {
  std::vector<std::int64_t> least(jobs.size(), 0);
  if (rules.least_of_static) {
    const Allocation fixed = by_rule(by_ratio, jobs, pool);
    for (std::size_t i = 0; i < jobs.size(); ++i)
      least[i] =
          static_cast<std::int64_t>(std::ceil(*rules.least_of_static * static_cast<double>(fixed.jobs[i].bandwidth)));
  }
  std::optional<Allocation> best = best_of(jobs, least, pool.servers, false, other);
  // The shared server is the last option: it must be better than exclusive servers alone.
  if (rules.shared_server) {
    std::optional<Allocation> with_shared = best_of(jobs, least, pool.servers - 1, true, other);
    if (with_shared && std::any_of(with_shared->jobs.begin(), with_shared->jobs.end(),
                                   [](const JobAllocation& job) { return job.shared; }))
      ++with_shared->servers;
    if (with_shared && (!best || with_shared->bandwidth > best->bandwidth)) best = std::move(with_shared);
  }
  return best;
}

Error no_allocation(std::span<const Job> jobs, const Pool& pool, const AllocationRules& rules) {
  const std::string servers = std::to_string(pool.servers);
  if (rules.least_of_static && least_servers(jobs) <= pool.servers)
    return Error{"no allocation of " + servers + " servers leaves each job " +
                 std::to_string(std::lround(*rules.least_of_static * 100)) +
                 " % of its bandwidth under static; allow a greater loss"};
  return Error{"the jobs need at least " + std::to_string(least_servers(jobs)) + " servers in all, not " + servers +
               "; " + (rules.direct ? "measure them without servers (0)" : "allow direct access") +
               (rules.shared_server ? "" : ", or allow a shared server")};
}

}  // namespace

Job restricted(const Job& job, const AllocationRules& rules) {
  Job left = job;
  std::erase_if(left.choices, [&](const Choice& choice) {
    if (choice.servers == 0) return !rules.direct;
    return rules.divides_evenly && job.nodes % choice.servers != 0;
  });
  return left;
}

Result<Allocation> allocate(std::string_view policy, std::span<const Job> jobs, const Pool& pool,
                            const AllocationRules& rules) {
  std::vector<Job> allowed;
  for (const Job& job : jobs) {
    allowed.push_back(restricted(job, rules));
    if (allowed.back().choices.empty())
      return Error{"job " + job.name + " has no number of servers that the rules allow; measure it with more numbers"};
  }
  if (policy == "mckp") {
    std::optional<Allocation> best = by_knapsack(allowed, pool, rules);
    if (!best) return no_allocation(allowed, pool, rules);
    return *std::move(best);
  }
  if (policy == "oracle") return by_oracle(allowed);
  for (const NamedRule& one : rules_by_name)
    if (one.name == policy) return by_rule(one.rule, allowed, pool);
  return Error{"policy '" + std::string{policy} +
               "' is unknown; use zero, one, static, size, process, mckp, or oracle"};
}

std::optional<Allocation> next_best(std::span<const Job> jobs, const Pool& pool, const AllocationRules& rules,
                                    const OtherThan& other) {
  std::vector<Job> allowed;
  for (const Job& job : jobs) allowed.push_back(restricted(job, rules));
  return by_knapsack(allowed, pool, rules, &other);
}

}  // namespace hocket::allocation
