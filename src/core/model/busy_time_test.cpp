#include "model/busy_time.hpp"

#include <gtest/gtest.h>

#include <random>

namespace hocket::model {
namespace {

BusyTime::MemberActivity part(std::int64_t start, std::int64_t end, double io, double wait = 0) {
  return {time_from_ns(start), time_from_ns(end), io, wait};
}

TEST(BusyTime, CountsWhatMembersDoAtOnceOnce) {
  BusyTime busy;
  busy.add({part(0, 100, 0, 1), part(100, 300, 1)});
  EXPECT_EQ(busy.all().io, Duration{200});
  EXPECT_EQ(busy.all().wait, Duration{100});
  busy.add({part(50, 150, 0, 1), part(150, 400, 1)});
  EXPECT_EQ(busy.all().io, Duration{300});
  EXPECT_EQ(busy.all().wait, Duration{100}) << "from 100 on one is in I/O";
  EXPECT_EQ(busy.between(time_from_ns(50), time_from_ns(120)).wait, Duration{50});
  EXPECT_EQ(busy.between(time_from_ns(50), time_from_ns(120)).io, Duration{20});
}

TEST(BusyTime, OfOneMemberIsTheSumWhateverTheShares) {
  BusyTime busy;
  busy.add({part(0, 1000, 0.25, 0.5), part(5000, 6000, 0.125)});
  EXPECT_EQ(busy.all().io, Duration{375});
  EXPECT_EQ(busy.all().wait, Duration{500});
}

TEST(BusyTime, TakesPartlyBusyMembersForIndependent) {
  BusyTime busy;
  busy.add({part(0, 1000, 0.5)});
  busy.add({part(0, 1000, 0.5)});
  EXPECT_EQ(busy.all().io, Duration{750});
}

// Compares wholly busy intervals of random members with an array of counts for each nanosecond.
TEST(BusyTime, IsExactForWholeIntervals) {
  std::mt19937_64 random{3};
  constexpr std::size_t length = 400, members = 4;
  for (int run = 0; run < 300; ++run) {
    BusyTime busy;
    std::vector<int> io(length), waits(length);
    for (std::size_t member = 0; member < members; ++member) {
      std::vector<BusyTime::MemberActivity> parts;
      for (std::size_t now = random() % 50; now < length;) {
        const std::size_t end = std::min(length, now + random() % 40);
        const bool writes = random() % 2 == 0;
        parts.push_back(part(static_cast<std::int64_t>(now), static_cast<std::int64_t>(end), writes, !writes));
        for (std::size_t i = now; i < end; ++i) ++(writes ? io : waits)[i];
        now = end + random() % 60;
      }
      busy.add(parts);
    }
    std::int64_t in_io = 0, waiting = 0;
    for (std::size_t i = 0; i < length; ++i) {
      in_io += io[i] > 0;
      waiting += io[i] == 0 && waits[i] > 0;
    }
    EXPECT_EQ(busy.all().io, Duration{in_io});
    EXPECT_EQ(busy.all().wait, Duration{waiting});
    EXPECT_EQ(busy.between(time_from_ns(-5), time_from_ns(1000)).io, Duration{in_io});
  }
}

TEST(BusyTime, KeepsTheSumsOfALongRun) {
  BusyTime busy;
  std::int64_t io = 0, wait = 0;
  for (std::int64_t i = 0; i < 10'000; ++i) {
    busy.add({part(i * 1000, i * 1000 + 100, 0, 1), part(i * 1000 + 100, i * 1000 + 400, 1)});
    io += 300;
    wait += 100;
  }
  EXPECT_EQ(busy.all().io, Duration{io});
  EXPECT_EQ(busy.all().wait, Duration{wait});
  EXPECT_EQ(busy.between(time_from_ns(0), time_from_ns(10'000'000)).io, Duration{io});
  EXPECT_EQ(busy.between(time_from_ns(9'990'000), time_from_ns(10'000'000)).io, Duration{3000})
      << "the last ones are exact";
}

event::IoPhase phase_of(const std::string& io, const std::string& waits) {
  event::IoPhase phase;
  phase.start = time_from_ns(1000);
  phase.end = time_from_ns(2000);
  phase.io = Duration{250};
  phase.wait = Duration{500};
  phase.io_intervals = io;
  phase.wait_intervals = waits;
  return phase;
}

BusyTime::Times times_of(const std::string& io, const std::string& waits, std::int64_t end = 2000) {
  BusyTime busy;
  busy.add(parts_of(phase_of(io, waits), time_from_ns(1000), time_from_ns(end)));
  return busy.all();
}

TEST(BusyTime, ReadsReports) {
  EXPECT_EQ(times_of("0:100 500:200:50", "100:400").io, Duration{150});
  EXPECT_EQ(times_of("0:100 500:200:50", "100:400").wait, Duration{400});
  EXPECT_EQ(times_of("0:100:40", "0:100:60").wait, Duration{60}) << "one process does one thing at a time";
  EXPECT_EQ(times_of("-50:100 900:500", "").io, Duration{150}) << "within the phase";
  EXPECT_EQ(times_of("0:1000", "", 1600).io, Duration{600}) << "and within the time that there is";
  EXPECT_EQ(times_of("", "0:100").io, Duration{0});
}

TEST(BusyTime, GoesBySumsWhereThereAreNoIntervals) {
  for (const char* text :
       {"", "x", "1", "1:", "0:-5", "0:5 3:5", "0:5:6", "0:5:", "0:5 ", "0:5,10:5", "0:99999999999999999999"}) {
    EXPECT_EQ(times_of(text, "").io, Duration{250}) << text;
    EXPECT_EQ(times_of(text, "").wait, Duration{500}) << text;
  }
  EXPECT_TRUE(parts_of(phase_of("0:5", ""), time_from_ns(1000), time_from_ns(1000)).empty());
}

}  // namespace
}  // namespace hocket::model
