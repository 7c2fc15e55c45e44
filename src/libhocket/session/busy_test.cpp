#include "session/busy.hpp"

#include <gtest/gtest.h>

#include <random>
#include <sstream>

namespace hocket::runtime {
namespace {

constexpr std::int64_t ns_per_ms = 1'000'000;

std::string after(const std::vector<std::pair<std::int64_t, std::int64_t>>& added) {
  BusyIntervals busy;
  for (const auto& [start, end] : added) busy.add(time_from_ns(start * ns_per_ms), time_from_ns(end * ns_per_ms));
  return busy.text(time_from_ns(10 * ns_per_ms));
}

TEST(BusyIntervals, AreRelativeAndInOrder) {
  EXPECT_EQ(after({}), "");
  EXPECT_EQ(after({{10, 12}, {20, 21}}), "0:2000000 10000000:1000000");
  EXPECT_EQ(after({{20, 21}, {10, 12}}), "0:2000000 10000000:1000000");
  EXPECT_EQ(after({{10, 10}, {12, 11}}), "");
}

TEST(BusyIntervals, CountWhatThreadsDoAtOnceOnce) {
  EXPECT_EQ(after({{10, 14}, {12, 20}}), "0:10000000");
  EXPECT_EQ(after({{12, 14}, {30, 31}, {10, 40}}), "0:30000000");
}

TEST(BusyIntervals, CloseOnesAreOneThatKeepsItsSum) {
  BusyIntervals busy;
  for (int i = 0; i < 1000; ++i) busy.add(time_from_ns(i * 1000), time_from_ns(i * 1000 + 100));
  EXPECT_EQ(busy.text(Time{}), "0:999100:100000") << "it computed nine tenths of the time";
}

TEST(BusyIntervals, AreFewAndKeepTheirSum) {
  std::mt19937_64 random{7};
  for (int run = 0; run < 200; ++run) {
    BusyIntervals busy;
    std::int64_t now = 0, sum = 0;
    for (int i = 0; i < 300; ++i) {
      now += static_cast<std::int64_t>(random() % 5'000'000);
      const auto length = static_cast<std::int64_t>(random() % 3'000'000);
      busy.add(time_from_ns(now), time_from_ns(now + length));
      now += length;
      sum += length;
    }
    std::istringstream words{busy.text(Time{})};
    std::size_t count = 0;
    std::int64_t told = 0, end = 0;
    for (std::string word; words >> word; ++count) {
      std::int64_t start = 0, length = 0;
      char colon = 0;
      std::istringstream parts{word};
      parts >> start >> colon >> length;
      std::int64_t busy_ns = length;
      if (parts >> colon) parts >> busy_ns;
      EXPECT_GE(start, end);
      EXPECT_LE(busy_ns, length);
      end = start + length;
      told += busy_ns;
    }
    EXPECT_LE(count, BusyIntervals::most);
    EXPECT_EQ(told, sum);
    EXPECT_LE(end, now);
  }
}

}  // namespace
}  // namespace hocket::runtime
