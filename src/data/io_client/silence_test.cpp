#include "io_client/silence.hpp"

#include <gtest/gtest.h>

namespace hocket::io_client {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

TEST(Silence, EndsAfterHalfAMinuteWithoutAnything) {
  const Time began{};
  Silence silence{began, began};
  EXPECT_EQ(silence.ends(), began + seconds{30});
  silence.note(false, false, began + seconds{29});
  EXPECT_EQ(silence.ends(), began + seconds{30});
  silence.note(true, false, began + seconds{29});
  EXPECT_EQ(silence.ends(), began + seconds{59});
  EXPECT_STREQ(silence.reason(began + seconds{59}), "nothing came from it for 30 s");
}

TEST(Silence, EndsAfterTenMinutesOfSignsOfLifeAlone) {
  const Time began{};
  Silence silence{began, began};
  Time now = began;
  while (now < silence.ends()) silence.note(false, true, now += seconds{5});
  EXPECT_EQ(now, began + minutes{10});
  EXPECT_STREQ(silence.reason(now), "it has answered nothing for 10 minutes");
}

}  // namespace
}  // namespace hocket::io_client
