#include "allocation/seating.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

namespace hocket::allocation {
namespace {

using Names = std::vector<std::string_view>;

TEST(Seating, JobsKeepWhatTheyHave) {
  const Names pool{"s1", "s2", "s3", "s4"};
  const std::vector<Unseated> jobs{
      {.servers = 2, .has = {"s3", "gone"}}, {.servers = 1, .has = {"s4", "s1"}}, {.servers = 1}};
  EXPECT_EQ(seats_of(jobs, pool), (std::vector<Names>{{"s2", "s3"}, {"s1"}, {"s4"}}));
}

TEST(Seating, WhereThereAreTooFewTheyAreSharedEvenly) {
  const Names pool{"s1", "s2"};
  const std::vector<Unseated> ones(4, {.servers = 1});
  EXPECT_EQ(seats_of(ones, pool), (std::vector<Names>{{"s1"}, {"s2"}, {"s1"}, {"s2"}}));
  const std::vector<Unseated> many{{.servers = 9}, {.servers = 1, .has = {"s2"}}, {.servers = 0}};
  EXPECT_EQ(seats_of(many, pool), (std::vector<Names>{{"s1", "s2"}, {"s2"}, {}}));
}

TEST(Seating, TheSharedServerHasNoOtherJobs) {
  const Names pool{"s1", "s2", "s3"};
  const std::vector<Unseated> jobs{{.servers = 1, .shares_one = true, .has = {"s1"}},
                                   {.servers = 1, .shares_one = true, .has = {"s2"}},
                                   {.servers = 2, .has = {"s1", "s3"}},
                                   {.servers = 1, .shares_one = true, .has = {"s2"}}};
  EXPECT_EQ(seats_of(jobs, pool), (std::vector<Names>{{"s2"}, {"s2"}, {"s1", "s3"}, {"s2"}}));
}

TEST(Seating, OneThatStaysKeepsWhatOthersWant) {
  const Names pool{"s1", "s2"};
  const std::vector<Unseated> jobs{
      {.servers = 2, .stays = true, .has = {"s1", "s2"}}, {.servers = 1, .stays = true, .has = {"s1"}}, {.servers = 1}};
  EXPECT_EQ(seats_of(jobs, pool), (std::vector<Names>{{"s1", "s2"}, {"s1"}, {"s2"}}));
}

TEST(Seating, NoServersAreNone) {
  EXPECT_EQ(seats_of(std::vector<Unseated>{{.servers = 3, .has = {"s1"}}}, {}), std::vector<Names>{{}});
  EXPECT_TRUE(seats_of({}, Names{"s1"}).empty());
}

// Random jobs: numbers are right, no server twice in a job, exclusive where that is possible, and nobody loses a server
// for nothing.
TEST(SeatingProperties, NumbersAreRightAndExclusiveWherePossible) {
  std::mt19937_64 random{1};
  const std::vector<std::string> names{"a", "b", "c", "d", "e", "f", "g", "h"};
  std::int64_t exclusive = 0, shared = 0;
  for (int round = 0; round < 3000; ++round) {
    const Names pool(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(random() % 8 + 1));
    std::vector<Unseated> jobs(random() % 6);
    std::size_t all = 0;
    for (Unseated& job : jobs) {
      job.servers = static_cast<int>(random() % 5);
      for (std::uint64_t i = random() % 4; i > 0; --i) {
        const std::string_view name = names[random() % names.size()];
        if (std::ranges::count(job.has, name) == 0) job.has.push_back(name);
      }
      all += std::min(static_cast<std::size_t>(job.servers), pool.size());
    }
    const auto seats = seats_of(jobs, pool);
    std::map<std::string_view, std::size_t> users;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      ASSERT_EQ(seats[i].size(), std::min(static_cast<std::size_t>(jobs[i].servers), pool.size()));
      for (const std::string_view name : seats[i]) {
        ASSERT_EQ(std::ranges::count(pool, name), 1);
        ASSERT_EQ(std::ranges::count(seats[i], name), 1);
        ++users[name];
      }
    }
    if (all > pool.size()) {
      ++shared;
      continue;
    }
    ++exclusive;
    for (const auto& [name, count] : users) ASSERT_EQ(count, 1U) << name;
    for (std::size_t i = 0; i < jobs.size(); ++i)
      for (const std::string_view had : jobs[i].has) {
        const bool keeps = std::ranges::count(seats[i], had) > 0;
        const bool is_free = users[had] == 0 && std::ranges::count(pool, had) > 0;
        const bool took_another = std::ranges::any_of(
            seats[i], [&](std::string_view one) { return std::ranges::count(jobs[i].has, one) == 0; });
        ASSERT_FALSE(!keeps && is_free && took_another) << "it took another one than " << had;
      }
  }
  EXPECT_GT(exclusive, 1000);
  EXPECT_GT(shared, 500);
}

}  // namespace
}  // namespace hocket::allocation
