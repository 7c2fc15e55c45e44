// Measures `mckp` of `hocket arbitrate` at GekkoFWD's largest size: 512 jobs with 9 choices each, 256 servers. Called
// with the name of a case and a seed, it prints the instance, the best allocation, and its times as one JSON object;
// bench/arbitrate.py has an independent solver beside it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string_view>
#include <vector>

#include "allocation/allocation.hpp"
#include "figures.hpp"

namespace {

using namespace hocket::allocation;
using Choices = std::vector<Choice>;

constexpr int job_count = 512, most_servers = 8, runs = 101;
constexpr Pool pool{256, 16'384, 512};  // static gives a job a server for each 32 nodes

// Bandwidths rise with the number of servers, fall, or do both, as in Figure 1 of GekkoFWD.
Choices curve(std::mt19937_64& random, std::int64_t unit) {
  Choices choices;
  std::int64_t value = static_cast<std::int64_t>(random() % 1000) + 1;
  for (int servers = 0; servers <= most_servers; ++servers) {
    choices.push_back({servers, std::min<std::int64_t>(value, 1000) * unit});
    value = value * static_cast<std::int64_t>(60 + random() % 120) / 100 + 1;
  }
  return choices;
}

Choices usual(std::mt19937_64& random) { return curve(random, 100'000); }
Choices huge(std::mt19937_64& random) { return curve(random, 1'000'000'000'000); }  // up to 10^15 bytes/s a job
Choices alike(std::mt19937_64&) {
  Choices choices;
  for (int servers = 0; servers <= most_servers; ++servers) choices.push_back({servers, 100'000'000});
  return choices;
}
// Each server is worth the same to every job.
Choices linear(std::mt19937_64&) {
  Choices choices;
  for (int servers = 0; servers <= most_servers; ++servers) choices.push_back({servers, servers * 100'000'000LL});
  return choices;
}
// Few different values, so that very many allocations are as good as the best.
Choices tied(std::mt19937_64& random) {
  Choices choices;
  for (int servers = 0; servers <= most_servers; ++servers)
    choices.push_back({servers, static_cast<std::int64_t>(random() % 4) * 100'000'000});
  return choices;
}

struct Case {
  std::string_view name;
  Choices (*choices)(std::mt19937_64&);
  int servers = pool.servers;
  AllocationRules rules{};
};

constexpr AllocationRules evenly{.divides_evenly = true};
constexpr AllocationRules bounded{.least_of_static = 0.5};
constexpr AllocationRules shared{.direct = false, .shared_server = true};
constexpr AllocationRules all_rules{.divides_evenly = true, .least_of_static = 0.02, .shared_server = true};

const Case cases[] = {{"usual", usual},
                      {"divides-evenly", usual, pool.servers, evenly},
                      {"least-of-static", usual, pool.servers, bounded},
                      {"shared-server", usual, pool.servers, shared},
                      {"all-rules", usual, pool.servers, all_rules},
                      {"alike", alike},
                      {"linear", linear},
                      {"tied", tied},
                      {"huge", huge},
                      {"no-servers", usual, 0},
                      {"as-many-as-useful", usual, job_count* most_servers}};

std::vector<Job> instance(const Case& one, std::uint64_t seed) {
  std::mt19937_64 random{seed};
  std::vector<Job> jobs;
  for (int number = 0; number < job_count; ++number) {
    const int nodes = static_cast<int>(random() % 64) + 1;
    jobs.push_back({"j" + std::to_string(number), nodes, nodes, one.choices(random)});
  }
  return jobs;
}

void print_rules(const AllocationRules& rules) {
  std::printf("\"direct\": %s, \"divides_evenly\": %s, \"shared_server\": %s, \"least_of_static\": %g, ",
              rules.direct ? "true" : "false", rules.divides_evenly ? "true" : "false",
              rules.shared_server ? "true" : "false", rules.least_of_static.value_or(0));
}

void print_jobs(const std::vector<Job>& jobs) {
  std::printf("\"jobs\": [");
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    std::printf("%s{\"nodes\": %d, \"choices\": [", i == 0 ? "" : ", ", jobs[i].nodes);
    for (std::size_t j = 0; j < jobs[i].choices.size(); ++j)
      std::printf("%s%lld", j == 0 ? "" : ", ", static_cast<long long>(jobs[i].choices[j].bandwidth));
    std::printf("]}");
  }
  std::printf("]}\n");
}

void measure(const Case& one, std::uint64_t seed) {
  const std::vector<Job> jobs = instance(one, seed);
  const Pool given{one.servers, pool.system_nodes, pool.system_servers};
  std::vector<double> times_s;
  std::int64_t value = -1;
  int servers = 0;
  for (int run = 0; run < runs; ++run) {
    const double began = bench::cpu_s();
    const auto best = allocate("mckp", jobs, given, one.rules);
    times_s.push_back(bench::cpu_s() - began);
    if (!best) continue;
    value = best.value().bandwidth;
    servers = best.value().servers;
  }
  std::printf("{\"median_s\": %.9f, \"worst_s\": %.9f, \"value\": %lld, \"given_out\": %d, \"servers\": %d, ",
              bench::median(times_s), *std::max_element(times_s.begin(), times_s.end()), static_cast<long long>(value),
              servers, one.servers);
  std::printf("\"system_nodes\": %d, \"system_servers\": %d, ", pool.system_nodes, pool.system_servers);
  print_rules(one.rules);
  print_jobs(jobs);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "usual";
  const auto* const found = std::ranges::find(cases, name, &Case::name);
  if (found == std::end(cases)) {
    std::fprintf(stderr, "bench_arbitrate: there is no case '%s'\n", argv[1]);
    return 2;
  }
  measure(*found, argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
}
