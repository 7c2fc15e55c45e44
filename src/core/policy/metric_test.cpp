#include "policy/metric.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace hocket::policy {
namespace {

const std::vector<ExpectedPhase> two{{8, 10, 5, 7, 1e9, 100}, {2, 4, 1, 3, 3e9, 50}};

double value(const std::string& text) {
  const auto metric = Metric::parse(text);
  EXPECT_TRUE(metric.ok()) << text << ": " << (metric ? "" : metric.error().text);
  return metric ? metric.value().of(two) : 0;
}

std::string error(const std::string& text) {
  const auto metric = Metric::parse(text);
  EXPECT_FALSE(metric.ok()) << text;
  return metric ? "" : metric.error().text;
}

TEST(Metric, HasTheNamesOfThePaper) {
  EXPECT_EQ(value("cpu-time"), 8 * 10 + 2 * 4);
  EXPECT_EQ(Metric{}.of(two), 8 * 10 + 2 * 4);
  EXPECT_EQ(Metric{}.text(), "cpu-time");
  EXPECT_EQ(value("io-time"), 14);
  EXPECT_EQ(value("interference"), 2 + 4);
  EXPECT_EQ(value("makespan"), 7);
}

TEST(Metric, TakesFormulas) {
  EXPECT_EQ(value("processes*io_time"), 88);
  EXPECT_EQ(value(" sum( io_time ) / 2 + 1"), 8);
  EXPECT_EQ(value("mean(io_time/alone)"), 3);
  EXPECT_EQ(value("flops*io_time"), 22e9);
  EXPECT_EQ(value("sum(run_time)"), 150);
  EXPECT_EQ(value("max(io_time) - min(io_time)"), 6);
  EXPECT_EQ(value("2^3^2 * end / end"), 2 * 512);
  EXPECT_EQ(value("-alone^2"), -26);
  EXPECT_EQ(value("1.5e1 * (alone - 1 - 1)"), 15 * 3 - 15);
  EXPECT_EQ(value("alone-1-1"), 3 - 1);
}

TEST(Metric, SaysWhatIsWrong) {
  EXPECT_NE(error("proceses*io_time").find("unknown name 'proceses': did you mean 'processes'?"), std::string::npos);
  EXPECT_NE(error("cputime").find("did you mean 'cpu-time'?"), std::string::npos);
  EXPECT_NE(error("interferences").find("did you mean 'interference'?"), std::string::npos);
  EXPECT_NE(error("12").find("says nothing of the applications"), std::string::npos);
  EXPECT_NE(error("sum(flop*io_time)").find("unknown name 'flop': did you mean 'flops'?"), std::string::npos);
  EXPECT_NE(error("energy*io_time").find("there are processes, io_time, alone, end, flops, run_time, sum()"),
            std::string::npos);
  EXPECT_NE(error("io_time/(processes-processes)").find("not a finite number"), std::string::npos);
  EXPECT_NE(error("(1-processes)^0.5").find("not a finite number"), std::string::npos);
  EXPECT_NE(error("sum(io_time").find("')' is missing"), std::string::npos);
  EXPECT_NE(error("sum(io_time)+alone").find("'alone' stands outside"), std::string::npos);
  EXPECT_NE(error("sum(max(io_time))").find("stands in another"), std::string::npos);
  EXPECT_NE(error("io_time 3").find("'3' after its end"), std::string::npos);
  EXPECT_NE(error("io_time +").find("it ends where"), std::string::npos);
  EXPECT_NE(error("io_time * %").find("before '%'"), std::string::npos);
  EXPECT_NE(error("").find("empty"), std::string::npos);
  EXPECT_NE(error(std::string(2000, '(')).find("longer than"), std::string::npos);
  EXPECT_NE(error(std::string(900, '(')).find("nested too deeply"), std::string::npos);
  EXPECT_NE(error(std::string(900, '-').append("io_time")).find("nested too deeply"), std::string::npos);
  for (const char* text : {"cputime", "io_time+", "1/0*io_time"}) {
    EXPECT_EQ(error(text).find('\n'), std::string::npos);
  }
}

TEST(Metric, AnyTextIsRefusedOrHasAValue) {
  const std::string pieces[] = {"sum(", "max(", ")",       "(",     "+",         "-",   "*", "/", "^",  " ",
                                "2",    ".5",   "io_time", "alone", "processes", "end", "x", "%", "1e", "cpu-time"};
  std::mt19937 random{1};
  int taken = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (std::size_t n = random() % 9; n > 0; --n) text += pieces[random() % std::size(pieces)];
    const auto metric = Metric::parse(text);
    if (!metric) continue;
    ++taken;
    EXPECT_TRUE(std::isfinite(metric.value().of(two)) || text.find('^') != std::string::npos ||
                text.find('/') != std::string::npos)
        << text;
  }
  EXPECT_GT(taken, 500);
}

}  // namespace
}  // namespace hocket::policy
