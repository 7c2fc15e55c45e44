// Allocates I/O servers to many sets of jobs, for Figures 2 and 3 of GekkoFWD (bench/reproduce/gekkofwd_sets.py).
//
// Standard input has whole numbers: the number of jobs; for each its nodes, processes, number of choices, and choices
// (servers, bytes/s); the nodes of the machine; the number of pools, and their servers, which are also the machine's;
// the number of sets, the jobs of a set, and the jobs' numbers, from 0. Each pool and set is a line of output: the
// bandwidth of each policy, the servers that static gives out, and the bandwidth if jobs for which static has no
// servers left access the file system directly.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "allocation/allocation.hpp"

namespace {

using namespace hocket::allocation;

template <typename Number = int>
Number next() {
  Number value{};
  if (std::cin >> value) return value;
  std::fprintf(stderr, "bench_arbitrate_sets: the input ends early, or is no number\n");
  std::exit(2);
}

std::vector<Job> read_jobs() {
  std::vector<Job> jobs(next<std::size_t>());
  for (Job& job : jobs) {
    job.nodes = next();
    job.processes = next();
    job.choices.resize(next<std::size_t>());
    for (Choice& choice : job.choices) choice = {next(), next<std::int64_t>()};
  }
  return jobs;
}

std::vector<int> read_numbers(std::size_t count) {
  std::vector<int> numbers(count);
  for (int& one : numbers) one = next();
  return numbers;
}

std::int64_t bandwidth_with(const Job& job, int servers) {
  for (const Choice& choice : job.choices)
    if (choice.servers == servers) return choice.bandwidth;
  return 0;
}

// The bandwidth under static if the first jobs get their servers, and those for which none are left do without.
std::int64_t first_come(const std::vector<Job>& jobs, const Allocation& fixed, int servers) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const int wanted = fixed.jobs[i].servers <= servers ? fixed.jobs[i].servers : 0;
    servers -= wanted;
    sum += bandwidth_with(jobs[i], wanted);
  }
  return sum;
}

void print_line(const std::vector<Job>& jobs, const Pool& pool) {
  int given_out = 0;
  std::int64_t without_sharing = 0;
  for (const std::string_view policy : policies) {
    const auto found = allocate(policy, jobs, pool);
    std::printf("%lld ", found ? static_cast<long long>(found.value().bandwidth) : -1LL);
    if (policy != "static") continue;
    given_out = found.value().servers;
    without_sharing = first_come(jobs, found.value(), pool.servers);
  }
  std::printf("%d %lld\n", given_out, static_cast<long long>(without_sharing));
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  const std::vector<Job> all = read_jobs();
  const int system_nodes = next();
  const std::vector<int> pools = read_numbers(next<std::size_t>());
  const auto sets = next<std::size_t>();
  const auto size = next<std::size_t>();
  const std::vector<int> drawn = read_numbers(sets * size);
  for (const int servers : pools) {
    for (std::size_t set = 0; set < sets; ++set) {
      std::vector<Job> jobs;
      for (std::size_t i = 0; i < size; ++i) jobs.push_back(all.at(static_cast<std::size_t>(drawn[set * size + i])));
      print_line(jobs, {servers, system_nodes, servers});
    }
  }
}
