// Tests the rule of slow_servers.hpp clause by clause, and on simulated servers.
#include "model/slow_servers.hpp"

#include <gtest/gtest.h>

#include <random>

namespace hocket::model {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::int64_t mebibyte = 1 << 20;

class SlowServersTest : public ::testing::Test {
 protected:
  // Sends a report of ten operations at `ms`. Returns true if it makes the server slow.
  bool report(std::uint64_t server, std::int64_t ms, std::int64_t service_us, std::int64_t bytes = mebibyte) {
    const event::ServerLoad load{10, 10 * bytes, microseconds{10 * service_us}, 0, 0, {}};
    const bool is_slow = detector.report(MemberId{server}, load, at(ms)).has_value();
    EXPECT_EQ(detector.finding(MemberId{server}).has_value(), is_slow);
    return is_slow;
  }
  bool stuck_for(std::uint64_t server, std::int64_t ms, Duration oldest) {
    return detector.report(MemberId{server}, {0, 0, {}, 1, mebibyte, oldest}, at(ms)).has_value();
  }
  static Time at(std::int64_t ms) { return Time{} + seconds{1000} + milliseconds{ms}; }
  void enter(std::uint64_t servers) {
    for (std::uint64_t i = 1; i <= servers; ++i) detector.enter(MemberId{i});
  }
  void peers_report(std::uint64_t servers, std::int64_t ms, std::int64_t service_us = 200) {
    for (std::uint64_t i = 2; i <= servers; ++i) EXPECT_FALSE(report(i, ms, service_us));
  }
  // Returns the number of successive reports, 50 ms apart, until the server is found slow; 0 if it is not after
  // `count`.
  int found_after(std::int64_t service_us, std::uint64_t servers = 4, int count = 10) {
    enter(servers);
    for (int i = 1; i <= count; ++i) {
      peers_report(servers, 50 * i);
      if (report(1, 50 * i, service_us)) return i;
    }
    return 0;
  }

  SlowServers detector{1.25};
};

TEST_F(SlowServersTest, TheThirdSlowReportRunningMakesAServerSlow) { EXPECT_EQ(found_after(712), 3); }

TEST_F(SlowServersTest, AReportThatIsNotSlowBeginsAnew) {
  enter(4);
  const std::int64_t services[] = {700, 700, 200, 700, 700, 200, 700, 700};
  for (int i = 0; i < 8; ++i) {
    peers_report(4, 50 * i);
    EXPECT_FALSE(report(1, 50 * i, services[i])) << i;
  }
  EXPECT_TRUE(report(1, 400, 700));
}

TEST_F(SlowServersTest, WhatPaysDependsOnTheNumberOfServers) {
  // Thresholds: 1.25 · 4/3 · 200 µs = 333 µs; 1.25 · 3/2 · 200 µs = 375 µs. 1.25 · 8/7 · 200 µs = 286 µs, but 100 µs
  // longer is 300 µs.
  EXPECT_EQ(found_after(330, 4), 0);
  detector = SlowServers{1.25};
  EXPECT_EQ(found_after(340, 4), 3);
  detector = SlowServers{1.25};
  EXPECT_EQ(found_after(370, 3), 0);
  detector = SlowServers{1.25};
  EXPECT_EQ(found_after(380, 3), 3);
  detector = SlowServers{1.25};
  EXPECT_EQ(found_after(298, 8), 0);
  detector = SlowServers{1.25};
  EXPECT_EQ(found_after(301, 8), 3);
}

TEST_F(SlowServersTest, OfTwoServersNoneIsSlow) { EXPECT_EQ(found_after(100'000, 2), 0); }

TEST_F(SlowServersTest, WithoutMarginNoneIsSlow) {
  detector = SlowServers{0};
  EXPECT_EQ(found_after(100'000), 0);
}

TEST_F(SlowServersTest, OperationsOfOtherSizesAreNotCompared) {
  enter(4);
  for (int i = 0; i < 10; ++i) {
    for (std::uint64_t peer = 2; peer <= 4; ++peer) EXPECT_FALSE(report(peer, 50 * i, 20, 4096));
    EXPECT_FALSE(report(1, 50 * i, 800)) << "of 1 MiB, which take longer";
  }
  for (int i = 10; i < 12; ++i) {
    for (std::uint64_t peer = 2; peer <= 4; ++peer) EXPECT_FALSE(report(peer, 50 * i, 200, mebibyte * 5 / 6));
    EXPECT_FALSE(report(1, 50 * i, 800)) << "a sixth less is like enough";
  }
  EXPECT_TRUE(report(1, 600, 800));
}

TEST_F(SlowServersTest, OldReportsAreNotCompared) {
  enter(4);
  peers_report(4, 0);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(report(1, 5001 + i, 800));
}

TEST_F(SlowServersTest, APeerThatLeftIsNotCompared) {
  enter(3);
  peers_report(3, 0);
  EXPECT_FALSE(report(1, 1, 800));
  EXPECT_FALSE(report(1, 2, 800));
  detector.leave(MemberId{2});
  EXPECT_FALSE(report(1, 3, 800)) << "one peer is left";
  detector.enter(MemberId{2});
  EXPECT_FALSE(report(1, 4, 800)) << "it is back, without reports";
}

TEST_F(SlowServersTest, AServerIsSlowOnlyIfItIsSlowerThanMost) {
  enter(4);
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(report(2, 50 * i, 200)) << "one is faster than the others";
    EXPECT_FALSE(report(3, 50 * i, 800));
    EXPECT_FALSE(report(4, 50 * i, 800));
    EXPECT_FALSE(report(1, 50 * i, 800));
  }
}

TEST_F(SlowServersTest, WhatIsWithinTheNoiseOfThePeersIsNotSlow) {
  enter(4);
  EXPECT_FALSE(report(2, 0, 900)) << "one of the peers' reports";
  for (int i = 1; i < 6; ++i) {
    peers_report(4, 50 * i);
    EXPECT_FALSE(report(1, 50 * i, 800));
  }
  for (int i = 6; i < 8; ++i) {
    peers_report(4, 50 * i);
    EXPECT_FALSE(report(1, 50 * i, 800)) << "it is forgotten, and they are the first";
  }
  peers_report(4, 400);
  EXPECT_TRUE(report(1, 400, 800));
}

TEST_F(SlowServersTest, AnAccessThatDoesNotEndMakesAServerSlow) {
  enter(4);
  for (int i = 0; i < 8; ++i) peers_report(4, i);
  EXPECT_FALSE(stuck_for(1, 600, milliseconds{600})) << "not yet";
  EXPECT_FALSE(stuck_for(1, 1000, milliseconds{1000}));
  EXPECT_FALSE(stuck_for(1, 1250, milliseconds{1250}));
  EXPECT_TRUE(stuck_for(1, 1500, milliseconds{1500}));
}

TEST_F(SlowServersTest, WhenAllAreStuckNoneIsSlow) {
  enter(4);
  for (std::uint64_t server = 1; server <= 4; ++server) {
    for (int i = 0; i < 8; ++i) EXPECT_FALSE(report(server, i, 200));
  }
  for (int i = 0; i < 20; ++i) {
    for (std::uint64_t server = 1; server <= 4; ++server) {
      EXPECT_FALSE(stuck_for(server, 1000 + 250 * i, milliseconds{1000 + 250 * i})) << server;
    }
  }
}

TEST_F(SlowServersTest, ReportsThatCannotBeChangeNothing) {
  enter(4);
  const auto most = std::numeric_limits<std::int64_t>::max();
  const auto least = std::numeric_limits<std::int64_t>::min();
  for (const std::int64_t odd : {most, least, std::int64_t{0}, std::int64_t{-1}}) {
    for (const std::int64_t operations : {most, std::int64_t{1}, std::int64_t{0}, least}) {
      for (std::uint64_t server = 1; server <= 4; ++server) {
        (void)detector.report(MemberId{server}, {operations, odd, Duration{odd}, odd, odd, Duration{odd}}, at(0));
      }
    }
  }
  EXPECT_FALSE(detector.report(MemberId{9}, {1, 1, seconds{9}, 0, 0, {}}, at(0))) << "not in the map";
}

// Servers of any number report with noise, and sizes change with the application's phases. The slow server is found
// with its third report after it became slow. No other server ever is.
TEST(SlowServersProperties, TheSlowOneIsFoundAndNoOther) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random{seed};
    const auto between = [&random](double low, double high) {
      return std::uniform_real_distribution<double>{low, high}(random);
    };
    const std::uint64_t n = 3 + random() % 6;
    const std::uint64_t slow = 1 + random() % n;
    const double pays = static_cast<double>(n) / static_cast<double>(n - 1);
    const double factor = between(1.25 * pays * 1.6, 10);
    SlowServers detector{1.25};
    for (std::uint64_t server = 1; server <= n; ++server) detector.enter(MemberId{server});
    Time now = Time{} + seconds{1};
    double bytes = mebibyte;
    std::int64_t reports = 0;
    for (int round = 0; round < 60; ++round) {
      if (random() % 10 == 0) bytes = between(1e6, 8e6);
      now += milliseconds{50} + (random() % 10 == 0 ? seconds{10} : seconds{0});
      const bool is_slow_now = round >= 20;
      bool found = false;
      // The slow server reports last, because the others are done before.
      for (std::uint64_t i = 1; i <= n; ++i) {
        const std::uint64_t server = (slow + i - 1) % n + 1;
        const bool is_slow = server == slow && is_slow_now;
        const auto operations = static_cast<std::int64_t>(1 + random() % 50);
        const double each = 400e3 + bytes * 0.5;  // ns
        const double took = static_cast<double>(operations) * each * between(0.9, 1.1) * (is_slow ? factor : 1);
        const auto moved = static_cast<std::int64_t>(static_cast<double>(operations) * bytes);
        const event::ServerLoad load{operations, moved, Duration{static_cast<std::int64_t>(took)}, 0, 0, {}};
        const bool verdict = detector.report(MemberId{server}, load, now + milliseconds{i}).has_value();
        if (server == slow) {
          found = verdict;
        } else {
          ASSERT_FALSE(verdict) << "server " << server << " in round " << round;
        }
      }
      reports += is_slow_now;
      ASSERT_EQ(found, reports >= SlowServers::running) << "round " << round;
    }
  }
}

// Four servers of one application and three of another, whose operations take ten times as long.
TEST_F(SlowServersTest, OnlyServersOfTheSameApplicationsAreCompared) {
  for (std::uint64_t i = 1; i <= 7; ++i) detector.enter(MemberId{i});
  for (std::uint64_t i = 5; i <= 7; ++i) detector.regroup(MemberId{i}, "other");
  bool any = false;
  for (std::int64_t ms = 0; ms < 500; ms += 50) {
    for (std::uint64_t i = 1; i <= 4; ++i) any |= report(i, ms, 200);
    for (std::uint64_t i = 5; i <= 7; ++i) any |= report(i, ms, 2000);
  }
  EXPECT_FALSE(any);
  int slow = 0;
  for (std::int64_t ms = 500; ms < 1000; ms += 50) {
    for (std::uint64_t i = 5; i <= 6; ++i) EXPECT_FALSE(report(i, ms, 2000));
    slow += report(7, ms, 8000);
  }
  EXPECT_GT(slow, 0) << "slower than both of its peers";
}

TEST_F(SlowServersTest, ReportsOfOtherWorkAreForgotten) {
  for (std::uint64_t i = 1; i <= 4; ++i) detector.enter(MemberId{i});
  for (std::int64_t ms = 0; ms < 100; ms += 50) {
    for (std::uint64_t i = 2; i <= 4; ++i) report(i, ms, 200);
    EXPECT_FALSE(report(1, ms, 2000)) << "two slow reports";
  }
  detector.regroup(MemberId{1}, "other");
  detector.regroup(MemberId{1}, "");
  for (std::uint64_t i = 2; i <= 4; ++i) report(i, 100, 200);
  EXPECT_FALSE(report(1, 100, 2000)) << "the first one of new work";
  detector.regroup(MemberId{9}, "other");
  EXPECT_FALSE(report(9, 100, 2000)) << "none of the map";
}

}  // namespace
}  // namespace hocket::model
