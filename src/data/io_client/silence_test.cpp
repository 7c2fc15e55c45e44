#include "io_client/silence.hpp"

#include <gtest/gtest.h>

namespace hocket::io_client {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

TEST(Silence, EndsAfterHalfAMinuteWithoutAnything) {
  const Time start{};
  Silence silence{start, start};
  EXPECT_EQ(silence.ends(), start + seconds{30});
  silence.note(false, false, start + seconds{29});
  EXPECT_EQ(silence.ends(), start + seconds{30});
  silence.note(true, false, start + seconds{29});
  EXPECT_EQ(silence.ends(), start + seconds{59});
  EXPECT_STREQ(silence.reason(start + seconds{59}), "nothing came from it for 30 s");
}

TEST(Silence, EndsAfterTenMinutesOfSignsOfLifeAlone) {
  const Time start{};
  Silence silence{start, start};
  Time now = start;
  while (now < silence.ends()) silence.note(false, true, now += seconds{5});
  EXPECT_EQ(now, start + minutes{10});
  EXPECT_STREQ(silence.reason(now), "it has answered nothing for 10 minutes");
}

}  // namespace
}  // namespace hocket::io_client
