// Tests the policy `weigh` by reports of servers of known speed, and that it comes to rest.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "policy/server_policy.hpp"

namespace hocket::policy {
namespace {

constexpr double mib = 1 << 20;

class WeighTest : public ::testing::Test {
 protected:
  // Adds a server that carried out so many operations in the last second, each of so many bytes and milliseconds.
  ServerStatus& server(const char* name, double operations, double ms, double bytes = mib) {
    ServerStatus& one = servers_.emplace_back();
    one.name = name;
    one.member = MemberId{servers_.size()};
    one.state = "up";
    one.directory = "/scratch";
    one.operations_per_s = operations;
    one.bytes_per_s = operations * bytes;
    one.busy = from_s(operations * ms / 1e3);
    return one;
  }
  // Returns the weights that the policy wants after a report of the first server.
  std::map<std::string, std::int64_t> wanted() {
    const event::Event report{Time{}, {"node1", "", MemberId{1}}, event::ServerLoad{}};
    std::map<std::string, std::int64_t> weights;
    for (const ServerChange& change : weigh.decide({cluster_, servers_, {}, {}, Time{}}, report).changes) {
      EXPECT_EQ(change.action, ServerChange::Action::weigh);
      weights[change.server] = change.weight;
    }
    return weights;
  }
  using Weights = std::map<std::string, std::int64_t>;

  model::Cluster cluster_;
  std::vector<ServerStatus> servers_;
};

TEST_F(WeighTest, SharesAreAsTheTimeOfAByte) {
  server("s1", 20, 2), server("s2", 20, 8), server("s3", 20, 3);
  EXPECT_EQ(wanted(), (Weights{{"s2", 2}, {"s3", 5}}));
  servers_[1].weight = 2, servers_[2].weight = 5;
  EXPECT_EQ(wanted(), Weights{}) << "they have them";
  servers_[1].busy = servers_[0].busy;
  servers_[2].busy = servers_[0].busy;
  EXPECT_EQ(wanted(), (Weights{{"s2", 8}, {"s3", 8}})) << "they have recovered";
}

TEST_F(WeighTest, NoServerIsWithoutStripes) {
  server("s1", 20, 1), server("s2", 20, 900);
  EXPECT_EQ(wanted(), (Weights{{"s2", 1}}));
}

TEST_F(WeighTest, LeavesSmallDifferencesAlone) {
  server("s1", 20, 2), server("s2", 20, 2.9);
  EXPECT_EQ(wanted(), Weights{}) << "less than half as much again";
  servers_[1].busy = from_s(20 * 3.1e-3);
  EXPECT_EQ(wanted(), (Weights{{"s2", 5}}));
  servers_.clear();
  server("s1", 20, 0.02), server("s2", 20, 0.11);
  EXPECT_EQ(wanted(), Weights{}) << "less than 100 us";
}

TEST_F(WeighTest, ComparesOnlyServersThatHaveDoneAlikeWorkBesideEachOther) {
  server("s1", 20, 2);
  EXPECT_EQ(wanted(), Weights{}) << "alone";
  server("s2", 7, 20);
  EXPECT_EQ(wanted(), Weights{}) << "too few operations";
  servers_[1].operations_per_s = 8, servers_[1].bytes_per_s = 8 * mib;
  EXPECT_EQ(wanted(), (Weights{{"s2", 1}}));
  servers_[1].bytes_per_s = 8 * 5 * mib;
  EXPECT_EQ(wanted(), Weights{}) << "of another size";
  servers_[1].bytes_per_s = 8 * mib;
  servers_[1].directory = "/other";
  EXPECT_EQ(wanted(), Weights{}) << "another file system";
  servers_[1].directory = "/scratch";
  servers_[1].state = "slow";
  EXPECT_EQ(wanted(), Weights{}) << "set aside";
}

// Servers of any speeds with 20 % of noise: each weight is soon near the share that the speed says, and then rests.
TEST_F(WeighTest, ComesToRestNearTheSpeeds) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> noise(0.9, 1.1);
  for (int round = 0; round < 300; ++round) {
    servers_.clear();
    std::vector<double> ms;
    for (std::size_t i = 0; i < 2 + random() % 6; ++i) {
      static const char* const names[] = {"s1", "s2", "s3", "s4", "s5", "s6", "s7"};
      ms.push_back(1.0 + static_cast<double>(random() % 10));
      server(names[i], 20, ms.back());
    }
    int changes = 0;
    for (int second = 0; second < 40; ++second) {
      for (std::size_t i = 0; i < servers_.size(); ++i) servers_[i].busy = from_s(20 * ms[i] * noise(random) / 1e3);
      const Weights weights = wanted();
      changes += weights.empty() ? 0 : 1;
      for (ServerStatus& one : servers_) {
        const auto found = weights.find(std::string{one.name});
        if (found != weights.end()) one.weight = static_cast<int>(found->second);
      }
    }
    EXPECT_LE(changes, 6) << "of 40";
    const double best = *std::ranges::min_element(ms);
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      const double share = std::max(8 * best / ms[i], 1.0);
      EXPECT_LT(std::max(share / servers_[i].weight, servers_[i].weight / share), 2.5) << ms[i] << " of " << best;
    }
  }
}

}  // namespace
}  // namespace hocket::policy
