#include "allocation/allocation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <tuple>

namespace hocket::allocation {
namespace {

constexpr std::int64_t MB = 1'000'000;

// Six jobs as Tables 3 and 4 of GekkoFWD state them, in units of 0.1 MB/s: only the numbers that some policy chose.
std::vector<Job> table_4() {
  const auto tenths = [](std::int64_t value) { return value * MB / 10; };
  return {{"BT-C", 32, 128, {{0, tenths(1957)}, {1, tenths(776)}}},
          {"BT-D", 64, 512, {{1, tenths(5972)}, {2, tenths(5942)}}},
          {"IOR-MPI", 16, 128, {{1, tenths(2684)}, {8, tenths(50899)}}},
          {"POSIX-L", 64, 512, {{2, tenths(4119)}}},
          {"MAD", 32, 64, {{0, tenths(2559)}, {1, tenths(778)}}},
          {"S3D", 64, 512, {{0, tenths(2413)}, {2, tenths(481)}}}};
}
constexpr Pool pool_of_12{12, 384, 12};

std::vector<int> servers_of(const Allocation& all) {
  std::vector<int> servers;
  for (const JobAllocation& job : all.jobs) servers.push_back(job.servers);
  return servers;
}

Allocation must(std::string_view policy, std::span<const Job> jobs, const Pool& pool,
                const AllocationRules& rules = {}) {
  const Result<Allocation> found = allocate(policy, jobs, pool, rules);
  EXPECT_TRUE(found) << policy << ": " << (found ? "" : found.error().text);
  return found ? found.value() : Allocation{};
}

TEST(Allocation, IsThatOfTable4) {
  const std::vector<Job> jobs = table_4();
  const Allocation fixed = must("static", jobs, pool_of_12);
  EXPECT_EQ(servers_of(fixed), (std::vector{1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(fixed.bandwidth, 14780 * MB / 10);
  const Allocation size = must("size", jobs, pool_of_12);
  EXPECT_EQ(servers_of(size), servers_of(fixed));
  EXPECT_EQ(size.bandwidth, 14780 * MB / 10);
  const Allocation best = must("mckp", jobs, pool_of_12);
  EXPECT_EQ(servers_of(best), (std::vector{0, 1, 8, 2, 0, 0}));
  EXPECT_EQ(best.bandwidth, 67919 * MB / 10);
  EXPECT_EQ(best.servers, 11);
  // The text about Figure 6 states 4.59 times STATIC and SIZE, and 4.1 times PROCESS.
  EXPECT_NEAR(static_cast<double>(best.bandwidth) / static_cast<double>(fixed.bandwidth), 4.59, 0.006);
  const Allocation process = must("process", jobs, pool_of_12);
  EXPECT_EQ(servers_of(process), (std::vector{1, 2, 1, 2, 0, 2})) << "64 of 1856 processes are 0.4 servers";
  EXPECT_NEAR(static_cast<double>(best.bandwidth) / static_cast<double>(process.bandwidth), 4.1, 0.006);
}

TEST(Allocation, LeavesOutWhatACapacityDoesNotAllow) {
  const std::vector<Job> jobs = table_4();
  EXPECT_EQ(servers_of(must("mckp", jobs, {10, 384, 12})), (std::vector{0, 1, 1, 2, 0, 0})) << "8 + 1 + 2 are too many";
  EXPECT_EQ(servers_of(must("mckp", jobs, {11, 384, 12})), (std::vector{0, 1, 8, 2, 0, 0}));
  EXPECT_FALSE(allocate("mckp", jobs, {3, 384, 12}));
}

TEST(Allocation, OfEqualBandwidthsTheFewestServersAreTaken) {
  const std::vector<Job> jobs{{"a", 8, 8, {{1, 5 * MB}, {2, 5 * MB}}}, {"b", 8, 8, {{1, 3 * MB}, {4, 3 * MB}}}};
  EXPECT_EQ(servers_of(must("mckp", jobs, {8, 16, 8})), (std::vector{1, 1}));
}

TEST(Allocation, ServersOfARuleThatGivesOutTooManyAreShared) {
  const std::vector<Job> jobs(4, {"a", 8, 8, {{0, 10 * MB}, {1, 100 * MB}}});
  const Allocation all = must("one", jobs, {2, 32, 2});
  EXPECT_EQ(all.servers, 4);
  EXPECT_EQ(all.bandwidth, 4 * 50 * MB);
  for (const JobAllocation& job : all.jobs) EXPECT_TRUE(job.shared);
}

TEST(Allocation, StaticUsesTheMachineAndSizeTheJobs) {
  const std::vector<Choice> choices{{1, MB}, {2, 2 * MB}, {4, 4 * MB}, {8, 8 * MB}};
  const std::vector<Job> jobs{{"a", 32, 512, choices}, {"b", 32, 32, choices}};
  const Pool pool{12, 384, 12};
  EXPECT_EQ(servers_of(must("static", jobs, pool)), (std::vector{1, 1}));
  EXPECT_EQ(servers_of(must("size", jobs, pool)), (std::vector{4, 4})) << "6, and then the next lower number";
  EXPECT_EQ(servers_of(must("process", jobs, pool)), (std::vector{8, 1})) << "11.3 and 0.7 are rounded first";
}

TEST(Allocation, WithoutDirectAccessEachJobHasAServer) {
  const std::vector<Job> jobs = table_4();
  const AllocationRules rules{.direct = false};
  for (const std::string_view policy : {"zero", "one", "static", "mckp", "oracle"})
    for (const int servers : servers_of(must(policy, jobs, {20, 384, 12}, rules))) EXPECT_GE(servers, 1) << policy;
  const std::vector<Job> only_direct{{"a", 1, 1, {{0, MB}}}};
  EXPECT_FALSE(allocate("mckp", only_direct, {8, 8, 8}, rules));
}

TEST(Allocation, NodesAreDividedEvenlyIfThatIsAsked) {
  const std::vector<Job> jobs{{"a", 6, 6, {{1, MB}, {2, 2 * MB}, {3, 3 * MB}, {4, 4 * MB}}}};
  EXPECT_EQ(servers_of(must("mckp", jobs, {8, 8, 8})), std::vector{4});
  EXPECT_EQ(servers_of(must("mckp", jobs, {8, 8, 8}, {.divides_evenly = true})), std::vector{3});
}

TEST(Allocation, AMostLossIsKeptOrRefused) {
  const std::vector<Job> jobs{{"a", 16, 1, {{1, 10 * MB}, {2, 20 * MB}}}, {"b", 16, 1, {{1, 1 * MB}, {3, 100 * MB}}}};
  const Pool pool{4, 16, 2};
  EXPECT_EQ(servers_of(must("static", jobs, pool)), (std::vector{2, 1}));
  EXPECT_EQ(servers_of(must("mckp", jobs, pool)), (std::vector{1, 3})) << "a loses half";
  EXPECT_EQ(servers_of(must("mckp", jobs, pool, {.least_of_static = 0.8})), (std::vector{2, 1}));
  EXPECT_EQ(servers_of(must("mckp", jobs, pool, {.least_of_static = 0.5})), (std::vector{1, 3}));
  const auto refused = allocate("mckp", jobs, pool, {.least_of_static = 1.1});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find("110 %"), std::string::npos) << refused.error().text;
  const auto too_few = allocate("mckp", jobs, {1, 16, 2}, {.least_of_static = 0.5});
  ASSERT_FALSE(too_few);
  EXPECT_NE(too_few.error().text.find("at least 2 servers"), std::string::npos) << too_few.error().text;
}

TEST(Allocation, OneServerIsSharedWhereNothingElseFits) {
  const std::vector<Job> jobs(3, {"a", 4, 4, {{1, 30 * MB}, {2, 90 * MB}}});
  const Pool pool{3, 12, 3};
  const AllocationRules shared{.direct = false, .shared_server = true};
  EXPECT_EQ(must("mckp", jobs, pool, {.direct = false}).bandwidth, 90 * MB);
  const Allocation best = must("mckp", jobs, pool, shared);
  EXPECT_EQ(best.bandwidth, (90 + 10 + 10) * MB);
  EXPECT_EQ(best.servers, 3);
  EXPECT_EQ(std::ranges::count_if(best.jobs, [](const JobAllocation& job) { return job.shared; }), 2);
  EXPECT_EQ(must("mckp", jobs, {2, 12, 3}, shared).bandwidth, (30 + 10 + 10) * MB);
  EXPECT_EQ(must("mckp", jobs, {6, 12, 3}, shared).bandwidth, 270 * MB) << "no server is set aside needlessly";
}

TEST(Allocation, AnUnknownPolicyIsRefusedByName) {
  const auto refused = allocate("most", table_4(), pool_of_12, {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find("'most'"), std::string::npos);
}

// ---- properties ----------------------------------------------------------------------------------------------------

std::vector<Job> random_jobs(std::mt19937_64& random, std::size_t count) {
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < count; ++i) {
    Job job{"j" + std::to_string(i), 1 << (random() % 6), 1 << (random() % 8), {}};
    for (const int servers : {0, 1, 2, 4, 8})
      if (random() % 4 != 0) job.choices.push_back({servers, static_cast<std::int64_t>(random() % 20) * MB});
    if (job.choices.empty()) job.choices.push_back({static_cast<int>(random() % 3), 7 * MB});
    jobs.push_back(std::move(job));
  }
  return jobs;
}

// The best bandwidth, and the fewest servers that give it, by trying all combinations.
std::optional<std::pair<std::int64_t, int>> by_trying_all(std::span<const Job> jobs, int servers) {
  std::optional<std::pair<std::int64_t, int>> best;
  const std::function<void(std::size_t, int, std::int64_t)> go = [&](std::size_t job, int used, std::int64_t sum) {
    if (used > servers) return;
    if (job < jobs.size()) {
      for (const Choice& choice : jobs[job].choices) go(job + 1, used + choice.servers, sum + choice.bandwidth);
    } else if (!best || sum > best->first || (sum == best->first && used < best->second)) {
      best = {sum, used};
    }
  };
  go(0, 0, 0);
  return best;
}

// In Table 4 the best choices fit. These curves go on to 8 servers, so that each pool of up to 27 servers is too small.
std::vector<Job> where_the_pool_is_too_small() {
  const auto of = [](std::initializer_list<int> mb_s) {
    std::vector<Choice> choices;
    int servers = 0;
    for (const int rate : mb_s) {
      choices.push_back({servers, rate * MB});
      servers = servers == 0 ? 1 : 2 * servers;
    }
    return choices;
  };
  return {{"BT-C", 32, 128, of({196, 78, 150, 391, 300})},       {"BT-D", 64, 512, of({500, 597, 594, 1700, 900})},
          {"IOR-MPI", 16, 128, of({110, 268, 700, 2100, 5090})}, {"POSIX-L", 64, 512, of({90, 180, 412, 1050, 1964})},
          {"MAD", 32, 64, of({256, 78, 200, 250, 240})},         {"S3D", 64, 512, of({241, 30, 48, 300, 280})}};
}

TEST(Allocation, IsTheBestOfAllCombinationsWhereThePoolIsTooSmall) {
  const std::vector<Job> jobs = where_the_pool_is_too_small();
  std::int64_t before = 0;
  for (int servers = 0; servers <= 40; ++servers) {
    const auto expected = by_trying_all(jobs, servers);
    const Allocation found = must("mckp", jobs, {servers, 384, 12});
    ASSERT_TRUE(expected);
    EXPECT_EQ(found.bandwidth, expected->first) << servers;
    EXPECT_EQ(found.servers, expected->second) << servers;
    EXPECT_GE(found.bandwidth, before) << servers;
    before = found.bandwidth;
  }
  const std::int64_t bound = must("oracle", jobs, pool_of_12).bandwidth;
  EXPECT_LT(must("mckp", jobs, {27, 384, 12}).bandwidth, bound);
  EXPECT_EQ(must("mckp", jobs, {28, 384, 12}).bandwidth, bound) << "4 + 4 + 8 + 8 + 0 + 4";
}

TEST(AllocationProperties, MckpIsTheBestOfAllCombinations) {
  std::mt19937_64 random{1};
  for (int round = 0; round < 3000; ++round) {
    const std::vector<Job> jobs = random_jobs(random, random() % 6 + 1);
    const Pool pool{static_cast<int>(random() % 16), 64, 8};
    const auto expected = by_trying_all(jobs, pool.servers);
    const auto found = allocate("mckp", jobs, pool);
    ASSERT_EQ(found.ok(), expected.has_value()) << round;
    if (!expected) continue;
    ASSERT_EQ(found.value().bandwidth, expected->first) << round;
    ASSERT_EQ(found.value().servers, expected->second) << round;
  }
}

// The best choice under the rules.
struct BestUnderRules {
  std::int64_t bandwidth = 0;
  bool shares = false;   // only with the shared server: it is the last option
  int servers = 0;       // the fewest that give that bandwidth so
  bool is_tied = false;  // other combinations give that bandwidth with more servers, or with the shared one
};

// Tries all combinations: of each job's choices, and the server that is shared.
std::optional<BestUnderRules> by_trying_all_with(std::span<const Job> jobs, const Pool& pool,
                                                 const AllocationRules& rules) {
  const Allocation fixed = must("static", jobs, pool, rules);
  const auto count = static_cast<std::int64_t>(jobs.size());
  std::optional<BestUnderRules> best;
  const auto compare = [&](const BestUnderRules& one) {
    const auto order = [](const BestUnderRules& it) { return std::tuple{-it.bandwidth, it.shares, it.servers}; };
    const bool is_tied = best && best->bandwidth == one.bandwidth && order(*best) != order(one);
    if (!best || order(one) < order(*best)) best = {one.bandwidth, one.shares, one.servers, is_tied};
    best->is_tied = best->is_tied || is_tied;
  };
  const std::function<void(std::size_t, int, bool, std::int64_t)> go = [&](std::size_t at, int used, bool shares,
                                                                           std::int64_t sum) {
    const int servers = used + (shares ? 1 : 0);
    if (servers > pool.servers) return;
    if (at == jobs.size()) return compare({sum, shares, servers});
    const double least = rules.least_of_static.value_or(0) * static_cast<double>(fixed.jobs[at].bandwidth);
    const auto enough = [&](std::int64_t bandwidth) { return static_cast<double>(bandwidth) >= least; };
    for (const Choice& one : jobs[at].choices) {
      const bool allowed = one.servers == 0 ? rules.direct : !rules.divides_evenly || jobs[at].nodes % one.servers == 0;
      if (allowed && enough(one.bandwidth)) go(at + 1, used + one.servers, shares, sum + one.bandwidth);
      if (allowed && rules.shared_server && one.servers == 1 && enough(one.bandwidth / count))
        go(at + 1, used, true, sum + one.bandwidth / count);
    }
  };
  go(0, 0, false, 0);
  return best;
}

TEST(AllocationProperties, MckpIsTheBestOfAllCombinationsThatTheRulesAllow) {
  std::mt19937_64 random{3};
  int refused = 0, tied = 0, shared = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<Job> jobs = random_jobs(random, random() % 5 + 1);
    for (Job& job : jobs) {
      job.nodes = static_cast<int>(random() % 12) + 1;
      // Each job keeps a choice under all rules.
      std::erase_if(job.choices, [](const Choice& one) { return one.servers == 1; });
      job.choices.insert(job.choices.begin() + (job.choices.empty() || job.choices[0].servers > 0 ? 0 : 1),
                         {1, static_cast<std::int64_t>(random() % 20) * MB});
    }
    const Pool pool{static_cast<int>(random() % 16), 64, 8};
    AllocationRules rules{.direct = random() % 2 == 0, .divides_evenly = random() % 2 == 0};
    if (random() % 2 == 0) rules.least_of_static = static_cast<double>(random() % 11) / 10;
    rules.shared_server = random() % 2 == 0;
    const auto expected = by_trying_all_with(jobs, pool, rules);
    const auto found = allocate("mckp", jobs, pool, rules);
    ASSERT_EQ(found.ok(), expected.has_value()) << round;
    refused += expected ? 0 : 1;
    if (!expected) continue;
    ASSERT_EQ(found.value().bandwidth, expected->bandwidth) << round;
    ASSERT_EQ(found.value().servers, expected->servers) << round;
    const auto is_shared = [](const JobAllocation& job) { return job.shared; };
    ASSERT_EQ(std::ranges::any_of(found.value().jobs, is_shared), expected->shares) << round;
    tied += expected->is_tied ? 1 : 0;
    shared += expected->shares ? 1 : 0;
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(tied, 100);
  EXPECT_GT(shared, 50);
}

TEST(Allocation, HugeBandwidthsAndRatiosAreExact) {
  constexpr std::int64_t petabyte = 1'000'000'000'000'000;
  const std::vector<Job> jobs(512, {"a", 1'000'000, 1, {{0, petabyte - 1}, {1, petabyte}, {8, petabyte}}});
  const Allocation best = must("mckp", jobs, {256, 1, 1'000'000});
  EXPECT_EQ(best.bandwidth, 512 * petabyte - 256);
  EXPECT_EQ(best.servers, 256);
  EXPECT_EQ(must("static", jobs, {1'000'000, 1, 1'000'000}).servers, 512 * 8) << "10 to the 12th, by the rule";
}

TEST(AllocationProperties, NoPolicyWithinThePoolIsBetterThanMckpAndNoneThanTheOracle) {
  std::mt19937_64 random{2};
  for (int round = 0; round < 3000; ++round) {
    const std::vector<Job> jobs = random_jobs(random, random() % 16 + 1);
    const Pool pool{static_cast<int>(random() % 64) + 1, 512, 64};
    const auto best = allocate("mckp", jobs, pool);
    const std::int64_t bound = must("oracle", jobs, pool).bandwidth;
    for (const std::string_view policy : policies) {
      const auto one = allocate(policy, jobs, pool);
      if (!one) continue;
      ASSERT_LE(one.value().bandwidth, bound) << policy << " in round " << round;
      ASSERT_EQ(one.value().jobs.size(), jobs.size());
      if (one.value().servers > pool.servers) continue;
      ASSERT_TRUE(best);
      ASSERT_GE(best.value().bandwidth, one.value().bandwidth) << policy << " in round " << round;
    }
  }
}

}  // namespace
}  // namespace hocket::allocation
