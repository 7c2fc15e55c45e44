#include "session/settings.hpp"

#include <gtest/gtest.h>

#include <map>

namespace hocket::runtime {
namespace {

struct Environment {
  std::map<std::string, std::string> values;
  std::string complaints;

  MemberSettings read() {
    return read_settings(
        [this](const char* key) {
          const auto found = values.find(key);
          return found == values.end() ? nullptr : found->second.c_str();
        },
        [this](std::string_view text) { complaints += std::string(text) + "\n"; });
  }
};

TEST(MemberSettings, AnEmptyEnvironmentCoordinatesNothing) {
  Environment environment;
  const MemberSettings settings = environment.read();
  EXPECT_FALSE(settings.coordinates());
  EXPECT_EQ(settings.answer, from_s(5));
  EXPECT_EQ(environment.complaints, "");
}

TEST(MemberSettings, ReadsWhatIsSet) {
  Environment environment{
      {{"HOCKET_SOCKET", "/s"}, {"HOCKET_JOB", "j"}, {"HOCKET_NAME", "n"}, {"HOCKET_ANSWER_S", "0.25"}}, ""};
  const MemberSettings settings = environment.read();
  EXPECT_TRUE(settings.coordinates());
  EXPECT_EQ(settings.job, "j");
  EXPECT_EQ(settings.name, "n");
  EXPECT_EQ(settings.answer, from_s(0.25));
}

TEST(MemberSettings, OnlyWatchesWhereToldTo) {
  Environment environment{{{"HOCKET_SOCKET", "/s"}, {"HOCKET_COORDINATE", "0"}}, ""};
  EXPECT_FALSE(environment.read().coordinates());
}

TEST(MemberSettings, DoesCollectiveAccessesWhereToldTo) {
  EXPECT_EQ((Environment{}.read().io), Io::mpi);
  EXPECT_EQ((Environment{{{"HOCKET_IO", "hocket"}}, ""}.read().io), Io::hocket);
  Environment wrong{{{"HOCKET_IO", "romio"}}, ""};
  EXPECT_EQ(wrong.read().io, Io::mpi);
  EXPECT_EQ(wrong.complaints, "HOCKET_IO='romio' is neither mpi nor hocket: using mpi\n");
}

TEST(MemberSettings, CountsWhatItIsToldTo) {
  const std::pair<const char*, FlopEvents> known[] = {
      {"", FlopEvents::hardware},
      {"hardware", FlopEvents::hardware},
      {"none", FlopEvents::none},
      {"task-clock", FlopEvents::task_clock},
  };
  for (const auto& [text, events] : known) {
    Environment environment{{{"HOCKET_FLOP_COUNTERS", text}}, ""};
    EXPECT_EQ(environment.read().flop_events, events) << text;
    EXPECT_EQ(environment.complaints, "");
  }
  Environment environment{{{"HOCKET_FLOP_COUNTERS", "papi"}}, ""};
  EXPECT_EQ(environment.read().flop_events, FlopEvents::hardware);
  EXPECT_NE(environment.complaints.find("HOCKET_FLOP_COUNTERS='papi'"), std::string::npos);
}

TEST(MemberSettings, KeepsTheDefaultAndSaysSoWhereAValueIsWrong) {
  for (const std::string wrong : {"abc", "-1", "nan", "1e300", "5s"}) {
    Environment environment{{{"HOCKET_MAX_WAIT_S", wrong}}, ""};
    EXPECT_EQ(environment.read().max_wait, from_s(600)) << wrong;
    EXPECT_NE(environment.complaints.find("HOCKET_MAX_WAIT_S='" + wrong + "'"), std::string::npos) << wrong;
  }
  Environment environment{{{"HOCKET_COORDINATE", "no"}}, ""};
  EXPECT_TRUE(environment.read().coordinate);
  EXPECT_NE(environment.complaints.find("HOCKET_COORDINATE='no'"), std::string::npos);
}

TEST(MemberSettings, SayWhichNameOfATargetIsNone) {
  Environment environment{{{"HOCKET_TARGET_NAMES", "/a=b /c"}}, ""};
  environment.read();
  EXPECT_EQ(environment.complaints, "HOCKET_TARGET_NAMES is ignored: '/c' names no target: write PATH=NAME for each\n");
}

}  // namespace
}  // namespace hocket::runtime
