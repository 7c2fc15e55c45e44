#include "metrics/exposition.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <sstream>

namespace hocket::metrics {
namespace {

using testing::HasSubstr;

TEST(Exposition, WritesEachMetricWithHelpAndTypeOnce) {
  Facts facts;
  facts.version = "1.2";
  facts.counted.targets["dev:8:1"] = {3, 1.5, 0.25};
  facts.requests["dev:8:1"] = {2, 1};
  const std::string page = exposition(facts);
  EXPECT_THAT(page, HasSubstr("# HELP hocket_grants_total Grants, by target.\n"
                              "# TYPE hocket_grants_total counter\n"
                              "hocket_grants_total{target=\"dev:8:1\"} 3\n"));
  EXPECT_THAT(page, HasSubstr("hocket_build_info{version=\"1.2\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("hocket_waiting_requests{target=\"dev:8:1\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("hocket_wait_seconds_total{target=\"dev:8:1\"} 0.25\n"));
  std::set<std::string> told;
  std::istringstream lines{page};
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("# TYPE ")) continue;
    EXPECT_TRUE(told.insert(line.substr(0, line.rfind(' '))).second) << line;
  }
  EXPECT_EQ(page.back(), '\n');
}

TEST(Exposition, WritesCumulativeBuckets) {
  Facts facts;
  facts.counted.grant_waits.add(Duration{});
  facts.counted.grant_waits.add(std::chrono::milliseconds{1});  // a bound belongs to its bucket
  facts.counted.grant_waits.add(std::chrono::hours{1});
  const std::string page = exposition(facts);
  EXPECT_THAT(page, HasSubstr("hocket_grant_wait_seconds_bucket{le=\"0\"} 1\n"
                              "hocket_grant_wait_seconds_bucket{le=\"0.001\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("_bucket{le=\"600\"} 2\n"
                              "hocket_grant_wait_seconds_bucket{le=\"+Inf\"} 3\n"
                              "hocket_grant_wait_seconds_sum 3600.001\n"
                              "hocket_grant_wait_seconds_count 3\n"));
}

TEST(Exposition, EscapesLabelValues) {
  EXPECT_EQ(escaped("a\\b\"c\nd"), "a\\\\b\\\"c\\nd");
  EXPECT_EQ(escaped("\xff\xc3\xa4"), "\\\\xff\xc3\xa4") << "bytes that are no UTF-8 are shown as in the log";
  Facts facts;
  facts.policy = "a\"} 7\nforged 1";
  EXPECT_THAT(exposition(facts), HasSubstr("hocket_policy_info{policy=\"a\\\"} 7\\nforged 1\"} 1\n"));
}

TEST(Exposition, WritesNumbersThatCanBeReadBack) {
  EXPECT_EQ(number(0), "0");
  EXPECT_EQ(number(0.1), "0.1");
  EXPECT_EQ(number(1e-5), "1e-05");
  EXPECT_EQ(number(std::nan("")), "NaN");
  EXPECT_EQ(number(std::numeric_limits<double>::infinity()), "+Inf");
  EXPECT_EQ(number(-std::numeric_limits<double>::infinity()), "-Inf");
}

}  // namespace
}  // namespace hocket::metrics
