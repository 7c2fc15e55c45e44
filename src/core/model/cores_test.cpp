#include "model/cores.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace hocket::model {
namespace {

using Shares = std::vector<std::pair<std::string, std::int64_t>>;

Shares pairs(const std::vector<NodeCount>& shares) {
  Shares pairs;
  for (const NodeCount& share : shares) pairs.emplace_back(share.node, share.count);
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

TEST(Cores, AreWhereTheApplicationSaysThatItRuns) {
  Cores cores{{{"n1", 4}, {"n2", 4}, {"n3", 4}}};
  cores.claim(AppId{1}, 6, "n1");
  EXPECT_EQ(pairs(cores.shares_of(AppId{1})), (Shares{{"n1", 4}, {"n2", 2}}));
  cores.settle(AppId{1}, 6, {{"n1", 2}, {"n3", 4}}, "n1");
  EXPECT_EQ(pairs(cores.shares_of(AppId{1})), (Shares{{"n1", 2}, {"n3", 4}}));
  EXPECT_EQ(allocated(cores, AppId{2}, 4), (Shares{{"n2", 4}}));
  cores.settle(AppId{1}, 2, {{"n3", 2}}, "n1");
  EXPECT_EQ(pairs(cores.shares_of(AppId{1})), (Shares{{"n3", 2}})) << "it left n1, where it had fewer, and half of n3";
}

TEST(Cores, AreKeptWhereTheyWereGivenUntilTheApplicationRunsThere) {
  Cores cores{{{"n1", 4}, {"n2", 4}}};
  cores.settle(AppId{1}, 4, {{"n1", 4}}, "n1");
  EXPECT_EQ(allocated(cores, AppId{1}, 2), (Shares{{"n2", 2}}));
  cores.settle(AppId{1}, 6, {{"n1", 4}}, "n1");
  EXPECT_EQ(pairs(cores.shares_of(AppId{1})), (Shares{{"n1", 4}, {"n2", 2}})) << "a request is under way";
  cores.settle(AppId{1}, 6, {{"n1", 3}, {"n2", 2}}, "n1");
  EXPECT_EQ(pairs(cores.shares_of(AppId{1})), (Shares{{"n1", 4}, {"n2", 2}})) << "one is kept to return to";
  cores.settle(AppId{1}, 3, {{"n1", 4}}, "n1");
  EXPECT_EQ(pairs(cores.shares_of(AppId{1})), (Shares{{"n1", 4}})) << "what runs has cores, whatever is wanted";
}

TEST(Cores, NodesThatNobodyNamedAreNotBelieved) {
  Cores cores{{{"n1", 4}, {"n2", 4}}};
  cores.settle(AppId{1}, 5, {{"n2", 2}, {"moon", 3}, {"n1", -1}}, "n1");
  EXPECT_EQ(pairs(cores.shares_of(AppId{1})), (Shares{{"n1", 3}, {"n2", 2}}));
  cores.settle(AppId{2}, 1, {{"n2", INT64_MAX}, {"n2", INT64_MAX}}, "n1");
  EXPECT_EQ(cores.free(), 0);
  EXPECT_GT(cores.beyond_on("n2"), 0);
  EXPECT_EQ(cores.beyond_on("moon"), 0);
  cores.release_all(AppId{2});
  EXPECT_EQ(cores.free(), 3);
}

TEST(Cores, ComeAndGoWithTheirNodes) {
  Cores cores{{{"", 3}}};
  EXPECT_FALSE(cores.is_told());
  cores.set_node("n1", 4);
  cores.set_node("n2", 2);
  EXPECT_TRUE(cores.is_told());
  EXPECT_EQ(cores.total(), 6) << "the first named node replaces the one without a name";
  cores.settle(AppId{1}, 4, {{"n1", 2}, {"n2", 2}}, "n1");
  cores.set_node("n2", 0);
  EXPECT_EQ(cores.total(), 4);
  EXPECT_EQ(cores.free(), 2);
  EXPECT_EQ(cores.of(AppId{1}), 4);
  EXPECT_EQ(cores.away_of(AppId{1}), 2);
  EXPECT_EQ(cores.away_of(AppId{2}), 0);
  EXPECT_EQ(allocated(cores, AppId{2}, 2), (Shares{{"n1", 2}}));
  cores.set_node("n2", 3);
  EXPECT_EQ(cores.free(), 1);
  ASSERT_EQ(cores.nodes().size(), 2U);
  EXPECT_EQ(cores.nodes().back().taken, 2);
  cores.set_node("n2", 0);
  cores.release_all(AppId{1});
  cores.release_all(AppId{2});
  EXPECT_EQ(cores.nodes().size(), 1U);
  EXPECT_EQ(cores.free(), 4);
  EXPECT_EQ(allocated(cores, AppId{3}, 5), (Shares{{"none", 0}})) << "a node that is away gives nothing";
}

// Compares with a model that knows only what each application said last and how many cores it is to have, under any
// order of reports, requests and nodes that come and go.
TEST(Cores, AgreeWithWhatApplicationsReported) {
  const std::vector<std::string> names{"n0", "n1", "n2", "n3"};
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random{seed};
    const auto up_to = [&random](std::uint64_t n) { return static_cast<std::int64_t>(random() % (n + 1)); };
    Cores cores{{{"n0", 8}}};
    std::map<std::string, std::int64_t> exist{{"n0", 8}};  // cores of the nodes
    struct Said {
      std::map<std::string, std::int64_t> runs;
      std::int64_t wanted = 0;
    };
    std::map<std::uint64_t, Said> said;
    for (int step = 0; step < 150; ++step) {
      const std::uint64_t app = 1 + random() % 4;
      Said& it = said[app];
      const auto what = random() % 5;
      if (what == 0) {
        const std::string& node = names[random() % names.size()];
        exist[node] = random() % 3 == 0 ? 0 : up_to(8);
        cores.set_node(node, exist[node]);
      } else if (what == 1) {
        const std::int64_t more = up_to(5);
        if (cores.allocate(AppId{app}, more)) it.wanted += more;
      } else if (what == 2) {
        it = {};
        cores.release_all(AppId{app});
      } else {
        it.runs.clear();
        std::vector<NodeCount> runs;
        for (const auto& [node, count] : exist) {
          if (const std::int64_t here = up_to(3); here > 0) runs.push_back({node, it.runs[node] = here});
        }
        it.wanted = up_to(12);
        for (const NodeCount& run : runs) it.wanted = std::max(it.wanted, run.count);
        std::int64_t running = 0;
        for (const auto& [node, count] : it.runs) running += count;
        const auto before = cores.shares_of(AppId{app});
        cores.settle(AppId{app}, it.wanted, runs, "n0");
        it.wanted = std::max(it.wanted, running);
        // Where it neither runs nor had cores, it gets some only if it is to have more than both.
        std::int64_t known = running;
        for (const NodeCount& had : before)
          known += std::max<std::int64_t>(0, had.count - (it.runs.contains(had.node) ? it.runs[had.node] : 0));
        for (const NodeCount& has : cores.shares_of(AppId{app})) {
          const bool is_new = !it.runs.contains(has.node) && std::none_of(before.begin(), before.end(), [&](auto& had) {
            return had.node == has.node;
          });
          ASSERT_TRUE(!is_new || it.wanted > known) << "seed " << seed << ", step " << step;
        }
      }
      std::map<std::string, std::int64_t> taken;
      for (const auto& [other, reported] : said) {
        ASSERT_EQ(cores.of(AppId{other}), reported.wanted) << "seed " << seed << ", step " << step;
        std::map<std::string, std::int64_t> has;
        for (const NodeCount& share : cores.shares_of(AppId{other})) has[share.node] = share.count;
        for (const auto& [node, count] : reported.runs)
          ASSERT_GE(has[node], count) << "seed " << seed << ", step " << step << ": it runs there";
        for (const auto& [node, count] : has) taken[node] += count;
      }
      std::int64_t total = 0;
      std::int64_t used = 0;
      for (const auto& [node, count] : exist) {
        total += count;
        if (count > 0) used += taken[node];
      }
      ASSERT_EQ(cores.total(), total);
      ASSERT_EQ(cores.free(), std::max<std::int64_t>(0, total - used)) << "seed " << seed << ", step " << step;
      for (const NodeUse& node : cores.nodes()) {
        ASSERT_EQ(node.cores, exist[node.name]);
        ASSERT_EQ(node.taken, taken[node.name]) << "seed " << seed << ", step " << step;
      }
    }
  }
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
        for (const NodeCount& share : cores.shares_of(AppId{app})) sum += share.node == node ? share.count : 0;
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
        for (const NodeCount& share : *shares) {
          elsewhere |=
              std::none_of(before.begin(), before.end(), [&](const NodeCount& b) { return b.node == share.node; });
        }
        for (const NodeCount& share : before) {
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

// ---- allocations of a resource manager ---------------------------------------------------------------------------

TEST(Cores, TakeThoseOfTheOwnAllocationAlone) {
  Cores cores{{{"n1", 4}, {"n2", 4}}};
  cores.hold("1", {{"n1", 2}, {"n2", 1}});
  cores.assign(AppId{1}, "1");
  cores.claim(AppId{1}, 1, "n1");
  EXPECT_EQ(cores.free(), 7);
  EXPECT_EQ(cores.free_for(AppId{1}), 2);
  EXPECT_EQ(cores.free_for(AppId{2}), 5) << "the pool has what no allocation holds";
  EXPECT_EQ(allocated(cores, AppId{1}, 3), (Shares{{"none", 0}}));
  EXPECT_EQ(allocated(cores, AppId{1}, 2), (Shares{{"n1", 1}, {"n2", 1}}));
  EXPECT_EQ(allocated(cores, AppId{2}, 6), (Shares{{"none", 0}}));
  EXPECT_EQ(allocated(cores, AppId{2}, 5), (Shares{{"n2", 3}, {"n1", 2}}));
  cores.release_all(AppId{1});
  EXPECT_EQ(cores.free_for(AppId{2}), 0) << "what an application has left stays with its allocation";
  cores.hold("1", {});
  EXPECT_EQ(cores.free_for(AppId{2}), 3);
  EXPECT_EQ(cores.free_for(AppId{1}), 3) << "without its allocation it uses the pool";
}

TEST(Cores, ShareAnAllocation) {
  Cores cores{{{"n1", 8}}};
  cores.hold("1", {{"n1", 4}});
  cores.claim(AppId{1}, 1, "n1");
  cores.assign(AppId{1}, "1");
  cores.assign(AppId{2}, "1");
  EXPECT_EQ(allocated(cores, AppId{2}, 2), (Shares{{"n1", 2}}));
  EXPECT_EQ(cores.free_for(AppId{1}), 1);
  EXPECT_TRUE(cores.allocation_of(AppId{3}).empty());
  EXPECT_EQ(cores.allocations(), (std::vector<std::string>{"", "1"}));
  EXPECT_EQ(pairs(cores.held_by("1")), (Shares{{"n1", 4}}));
  cores.assign(AppId{2}, "");
  EXPECT_EQ(cores.free_for(AppId{1}), 3);
}

TEST(Cores, CountNodesThatAreKnownFromAllocationsAlone) {
  Cores cores{{{"", 4}}};
  cores.set_node("n1", 4);
  cores.hold("1", {{"n1", 2}, {"n2", 2}});
  cores.hold("2", {{"n2", 3}});
  EXPECT_EQ(cores.total(), 9);
  cores.assign(AppId{1}, "1");
  cores.settle(AppId{1}, 3, {{"n1", 1}, {"n2", 2}}, "n1");
  EXPECT_FALSE(cores.is_idle("n2"));
  cores.settle(AppId{1}, 1, {{"n1", 1}}, "n1");
  EXPECT_TRUE(cores.is_idle("n2"));
  cores.hold("1", {{"n1", 2}});
  EXPECT_EQ(cores.total(), 7) << "it was given back";
  EXPECT_EQ(cores.free_for(AppId{1}), 1);
  cores.set_node("n2", 8);
  EXPECT_EQ(cores.total(), 12) << "its agent has come";
  cores.hold("2", {});
  EXPECT_EQ(cores.total(), 12);
}

// Any user may send HELD_NODES.
TEST(Cores, AreNotOverrunByWhatAllocationsClaim) {
  Cores cores{{{"", 4}}};
  cores.set_node("n1", 4);
  const NodeCount huge{"n1", std::int64_t{1} << 60};
  cores.hold("1", {huge, huge, {"n2", huge.count}});
  cores.hold("2", {huge, {"n2", huge.count}});
  EXPECT_EQ(cores.total(), 4 + (std::int64_t{1} << 21));
  EXPECT_EQ(cores.free_in(""), 0);
  cores.hold("1", {});
  cores.hold("2", {});
  EXPECT_EQ(cores.total(), 4);
  EXPECT_EQ(cores.free_in(""), 4);
  cores.hold("1", {{"n2", 1}, {"n3", 2}});
  cores.hold("2", {{"n3", 3}});
  EXPECT_EQ(pairs(cores.held_by("1")), (Shares{{"n2", 1}, {"n3", 2}})) << "each has its own place";
  EXPECT_EQ(cores.total(), 10);
  for (int turn = 0; turn < 70; ++turn) {
    std::vector<NodeCount> others;
    for (int i = 0; i < 1000; ++i) others.push_back({"x" + std::to_string(1000 * turn + i), 1});
    cores.hold("3", others);
    ASSERT_EQ(cores.total(), 1010) << "turn " << turn << ": names that nobody holds are forgotten";
  }
  EXPECT_EQ(pairs(cores.held_by("2")), (Shares{{"n3", 3}}));
}

TEST(Cores, BelieveTheOperatorMoreThanAllocations) {
  Cores cores{{{"n1", 4}}};
  cores.hold("1", {{"n2", 8}});
  cores.assign(AppId{1}, "1");
  EXPECT_EQ(cores.total(), 4);
  EXPECT_EQ(cores.free_for(AppId{1}), 4) << "an allocation of unknown nodes changes nothing";
  Cores unnamed{{{"", 4}}};
  unnamed.hold("1", {{"n1", 8}, {"", 1}});
  unnamed.assign(AppId{1}, "1");
  EXPECT_EQ(unnamed.free_for(AppId{1}), 4);
}

// Whatever comes in which order: applications are given cores of their allocation alone, and no more than it holds.
TEST(Cores, NobodyIsGivenWhatAnAllocationDoesNotHold) {
  constexpr std::uint64_t most_apps = 5;
  const std::vector<std::string> names{"n0", "n1", "n2", "n3"};
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::mt19937_64 random{seed};
    Cores cores{{{"", 4}}};
    std::map<std::string, std::map<std::string, std::int64_t>> held;
    std::map<std::string, std::int64_t> told;
    std::map<std::uint64_t, std::string> allocation;
    const auto taken = [&](const std::string& by, const std::string& node) {  // "*": by all
      std::int64_t sum = 0;
      for (std::uint64_t app = 1; app <= most_apps; ++app) {
        if (by != "*" && allocation[app] != by) continue;
        for (const NodeCount& share : cores.shares_of(AppId{app})) sum += share.node == node ? share.count : 0;
      }
      return sum;
    };
    const auto exists = [&](const std::string& node) {
      if (told.contains(node)) return told[node];
      std::int64_t sum = 0;
      for (auto& [name, nodes] : held) sum += nodes.contains(node) ? nodes[node] : 0;
      return sum;
    };
    const auto room = [&](const std::string& of, const std::string& node) {
      const std::int64_t free = std::max<std::int64_t>(0, exists(node) - taken("*", node));
      const auto unused = [&](const std::string& name) {
        return std::max<std::int64_t>(0, held[name][node] - taken(name, node));
      };
      if (held.contains(of)) return std::min(free, unused(of));
      std::int64_t reserved = 0;
      for (const std::string name : {"a", "b"}) reserved += held.contains(name) ? unused(name) : 0;
      return std::max<std::int64_t>(0, free - reserved);
    };
    cores.set_node("n0", told["n0"] = 4);
    for (int step = 0; step < 200; ++step) {
      const std::uint64_t app = 1 + random() % most_apps;
      const std::string& node = names[random() % names.size()];
      const auto count = static_cast<std::int64_t>(random() % 6);
      const std::string which = random() % 2 != 0 ? "a" : "b";
      const auto what = random() % 8;
      if (what == 0) {
        std::vector<NodeCount> nodes;
        held.erase(which);
        for (const std::string& one : names) {
          if (random() % 2 == 0) continue;
          nodes.push_back({one, static_cast<std::int64_t>(1 + random() % 5)});
          held[which][one] = nodes.back().count;
        }
        cores.hold(which, nodes);
      } else if (what == 1) {
        cores.assign(AppId{app}, allocation[app] = random() % 3 == 0 ? "" : which);
      } else if (what == 2) {
        cores.set_node(node, told[node] = count);
      } else if (what == 3) {
        cores.claim(AppId{app}, count, node);
      } else if (what == 4) {
        cores.settle(AppId{app}, count, {{node, 1 + count / 2}}, "n0");
      } else if (what == 5) {
        cores.release(AppId{app}, count);
      } else {
        std::map<std::string, std::int64_t> before;
        std::map<std::string, std::int64_t> has;
        for (const std::string& one : names) before[one] = room(allocation[app], one);
        for (const NodeCount& share : cores.shares_of(AppId{app})) has[share.node] = share.count;
        const std::int64_t free = cores.free_for(AppId{app});
        const auto shares = cores.allocate(AppId{app}, count);
        ASSERT_EQ(shares.has_value(), count <= free) << "seed " << seed << ", step " << step;
        if (!shares) continue;
        std::int64_t sum = 0;
        for (const NodeCount& share : *shares) {
          ASSERT_LE(share.count, before[share.node]) << "seed " << seed << ", step " << step;
          sum += share.count;
        }
        ASSERT_EQ(sum, count) << "seed " << seed << ", step " << step;
      }
      for (const std::string name : {"", "a", "b"}) {
        std::int64_t sum = 0;
        for (const std::string& one : names) sum += room(name, one);
        const std::int64_t expected = held.contains(name) || held.empty() ? sum : std::min(sum, cores.free());
        ASSERT_EQ(cores.free_in(name), held.empty() ? cores.free() : expected)
            << "seed " << seed << ", step " << step << ": " << name;
      }
    }
  }
}

}  // namespace
}  // namespace hocket::model
