#include "model/cores.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace hocket::model {
namespace {

using Shares = std::vector<std::pair<std::string, std::int64_t>>;

Shares pairs(const std::vector<Share>& shares) {
  Shares pairs;
  for (const Share& share : shares) pairs.emplace_back(share.node, share.cores);
  return pairs;
}

Shares allocated(Cores& cores, AppId app, std::int64_t count) {
  const auto shares = cores.allocate(app, count);
  return shares ? pairs(*shares) : Shares{{"none", 0}};
}

TEST(Cores, StartOnTheNodeWhereTheApplicationIs) {
  Cores cores{{{"n1", 4}, {"n2", 4}, {"n3", 4}}};
  cores.claim(AppId{1}, 3, "n2");
  EXPECT_EQ(pairs(cores.shares_of(AppId{1})), (Shares{{"n2", 3}}));
  cores.claim(AppId{2}, 6, "n2");
  EXPECT_EQ(pairs(cores.shares_of(AppId{2})), (Shares{{"n1", 4}, {"n2", 1}, {"n3", 1}}));
  cores.claim(AppId{3}, 2, "elsewhere");
  EXPECT_EQ(pairs(cores.shares_of(AppId{3})), (Shares{{"n3", 2}}));
  EXPECT_EQ(cores.free(), 1);
  EXPECT_EQ(cores.total(), 12);
}

TEST(Cores, WhoWasStartedBeyondWhatThereIsHasIt) {
  Cores cores{{{"n1", 2}}};
  cores.claim(AppId{1}, 5, "n1");
  EXPECT_EQ(cores.of(AppId{1}), 5);
  EXPECT_EQ(cores.free(), 0);
  EXPECT_EQ(cores.taken_beyond(), 3);
  EXPECT_FALSE(cores.allocate(AppId{1}, 1));
  cores.release(AppId{1}, 4);
  EXPECT_EQ(cores.free(), 1);
  EXPECT_EQ(cores.taken_beyond(), 0);
}

TEST(Cores, GrowWhereTheApplicationHasTheMost) {
  Cores cores{{{"n1", 4}, {"n2", 4}, {"n3", 4}}};
  cores.claim(AppId{1}, 1, "n1");
  cores.claim(AppId{1}, 2, "n3");
  EXPECT_EQ(allocated(cores, AppId{1}, 3), (Shares{{"n3", 2}, {"n1", 1}}));
}

TEST(Cores, FillTheNodeThatFitsBestThenTheEmptiest) {
  Cores cores{{{"n1", 8}, {"n2", 3}, {"n3", 5}}};
  EXPECT_EQ(allocated(cores, AppId{1}, 3), (Shares{{"n2", 3}}));
  EXPECT_EQ(allocated(cores, AppId{2}, 10), (Shares{{"n1", 8}, {"n3", 2}}));
  EXPECT_EQ(allocated(cores, AppId{3}, 4), (Shares{{"none", 0}})) << "all or nothing";
  EXPECT_EQ(cores.free(), 3);
}

TEST(Cores, GiveBackFromWhereTheApplicationHasTheFewest) {
  Cores cores{{{"n1", 4}, {"n2", 4}}};
  cores.claim(AppId{1}, 4, "n1");
  cores.claim(AppId{1}, 2, "n2");
  cores.release(AppId{1}, 1);
  EXPECT_EQ(pairs(cores.shares_of(AppId{1})), (Shares{{"n1", 4}, {"n2", 1}}));
  cores.release(AppId{1}, 2);
  EXPECT_EQ(pairs(cores.shares_of(AppId{1})), (Shares{{"n1", 3}}));
  cores.release(AppId{1}, 100);
  EXPECT_EQ(cores.free(), 8);
}

TEST(Cores, BearAnyNumber) {
  Cores cores{{{"n1", -4}, {"n2", INT64_MAX}, {"n3", INT64_MAX}}};
  cores.claim(AppId{1}, INT64_MAX, "n3");
  cores.claim(AppId{2}, INT64_MAX, "n2");
  cores.claim(AppId{3}, -7, "n1");
  EXPECT_FALSE(cores.allocate(AppId{4}, INT64_MAX));
  EXPECT_FALSE(cores.allocate(AppId{4}, -1));
  cores.release(AppId{1}, -5);
  cores.release_all(AppId{1});
  cores.release_all(AppId{2});
  cores.release_all(AppId{9});
  EXPECT_EQ(cores.free(), cores.total());
  Cores none{{}};
  none.claim(AppId{1}, 3, "n1");
  EXPECT_EQ(none.free(), 0);
  EXPECT_FALSE(none.allocate(AppId{1}, 1));
}

// Compares with a model that gives each core an owner: no core has two, the sums agree, and an allocation uses
// another node only if the application's own are full.
TEST(Cores, NoCoreIsGivenTwice) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random{seed};
    std::vector<Node> nodes;
    std::int64_t total = 0;
    for (std::size_t i = 0; i < 1 + seed % 6; ++i) {
      nodes.push_back({std::string{"n"}.append(std::to_string(i)), static_cast<std::int64_t>(random() % 9)});
      total += nodes.back().cores;
    }
    Cores cores{nodes};
    std::map<std::uint64_t, std::int64_t> has;  // by application
    const auto on = [&](const std::string& node) {
      std::int64_t sum = 0;
      for (const auto& [app, count] : has) {
        for (const Share& share : cores.shares_of(AppId{app})) sum += share.node == node ? share.cores : 0;
      }
      return sum;
    };
    for (int step = 0; step < 200; ++step) {
      const std::uint64_t app = 1 + random() % 5;
      const auto count = static_cast<std::int64_t>(random() % 8);
      const auto before = cores.shares_of(AppId{app});
      const std::int64_t free_before = cores.free();
      const auto what = random() % 4;
      if (what == 0 && free_before >= count) {
        cores.claim(AppId{app}, count, nodes[random() % nodes.size()].name);
        has[app] += count;
      } else if (what == 1) {
        const auto shares = cores.allocate(AppId{app}, count);
        ASSERT_EQ(shares.has_value(), count <= free_before) << "seed " << seed << ", step " << step;
        if (!shares) continue;
        has[app] += count;
        bool elsewhere = false;
        for (const Share& share : *shares) {
          elsewhere |= std::none_of(before.begin(), before.end(), [&](const Share& b) { return b.node == share.node; });
        }
        for (const Share& share : before) {
          const auto node =
              std::find_if(nodes.begin(), nodes.end(), [&](const Node& n) { return n.name == share.node; });
          ASSERT_TRUE(!elsewhere || on(share.node) == node->cores) << "seed " << seed << ", step " << step;
        }
      } else if (what == 2) {
        cores.release(AppId{app}, count);
        has[app] = std::max<std::int64_t>(0, has[app] - count);
      } else if (random() % 8 == 0) {
        cores.release_all(AppId{app});
        has[app] = 0;
      }
      std::int64_t taken = 0;
      for (const auto& [owner, owned] : has) {
        ASSERT_EQ(cores.of(AppId{owner}), owned) << "seed " << seed << ", step " << step;
        taken += owned;
      }
      ASSERT_EQ(cores.free(), total - taken) << "seed " << seed << ", step " << step;
      for (const Node& node : nodes) ASSERT_LE(on(node.name), node.cores) << "seed " << seed << ", step " << step;
    }
  }
}

}  // namespace
}  // namespace hocket::model
