#include "event/filter.hpp"

#include <gtest/gtest.h>

namespace hocket::event {
namespace {

Event start(const std::string& application, std::int64_t bytes) {
  Event e;
  e.origin = {"node1", application, MemberId{7}};
  e.body = StartIo{RequestId{3}, "dev:8:1", "/scratch/a b", "MPI_File_write_all", bytes};
  return e;
}

bool matches(const std::string& text, const Event& event) {
  auto filter = Filter::parse(text);
  EXPECT_TRUE(filter.ok()) << text;
  return filter.ok() && filter.value().matches(event);
}

TEST(Filter, TakesAnEmptyTextAsEverything) { EXPECT_TRUE(matches("", start("a", 1))); }

TEST(Filter, SelectsByTypeAndProperties) {
  const Event e = start("jacobi-a", 4096);
  EXPECT_TRUE(matches("START_IO", e));
  EXPECT_FALSE(matches("FINISH_IO", e));
  EXPECT_TRUE(matches("START_IO application=jacobi-a bytes>=4096", e));
  EXPECT_FALSE(matches("START_IO bytes>4096", e));
  EXPECT_TRUE(matches("application!=jacobi-b", e));
  EXPECT_TRUE(matches("\"file=/scratch/a b\"", e));
  EXPECT_TRUE(matches("file=\"/scratch/a b\" node=node1 member=7", e));
}

TEST(Filter, FailsOnAPropertyThatIsNotThere) {
  EXPECT_FALSE(matches("lease_ns=1", start("a", 1)));
  EXPECT_FALSE(matches("lease_ns!=1", start("a", 1)));
}

TEST(Filter, SelectsUserEventsByTheirOwnProperties) {
  Event e;
  e.body = User{"SERVER_BUSY", {{"server", std::string{"s1"}}, {"load", 0.5}}};
  EXPECT_TRUE(matches("SERVER_BUSY server=s1 load<0.6", e));
  EXPECT_FALSE(matches("SERVER_BUSY load<0.5", e));
}

TEST(Filter, NamesTheWordThatItDoesNotUnderstand) {
  for (const char* text : {"START_IO bytes", "START_IO =3", "START_IO bytes>many", "file=\"open"}) {
    auto filter = Filter::parse(text);
    ASSERT_FALSE(filter.ok()) << text;
    EXPECT_NE(filter.error().text.find("filter: "), std::string::npos);
  }
  EXPECT_NE(Filter::parse("START_IO bytes>many").error().text.find("'bytes>many'"), std::string::npos);
}

}  // namespace
}  // namespace hocket::event
