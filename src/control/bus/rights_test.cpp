#include "bus/rights.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "base/descriptor.hpp"
#include "event/random_event.hpp"

namespace hocket::bus {
namespace {

using testing::HasSubstr;

TEST(Rights, AreThoseOfTheDaemonsUserUnlessAllMayConnect) {
  const Users all{.all = true};
  for (const uid_t user : {geteuid(), uid_t{0}, uid_t{54321}}) {
    EXPECT_TRUE(may_connect({user, 1, false}, all).ok()) << user;
    EXPECT_EQ(may_connect({user, 1, false}, {}).ok(), is_trusted(user)) << user;
  }
}

TEST(Rights, OfAProcessAreWhatTheKernelSays) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const Fd one{ends[0]};
  const Fd other{ends[1]};
  const auto caller = caller_of(one.get(), {});
  ASSERT_TRUE(caller.ok());
  EXPECT_EQ(caller.value().user, geteuid());
  EXPECT_EQ(caller.value().process, getpid());
  EXPECT_TRUE(caller.value().is_operator) << "the daemon's own user steers all";
}

TEST(Rights, OfMembersDoNotIncludeWhatOnlyTheDaemonSays) {
  EXPECT_EQ(why_not_sent(event::StartIo{}), "");
  EXPECT_EQ(why_not_sent(event::User{}), "");
  EXPECT_THAT(why_not_sent(event::GrantIo{}), HasSubstr("GRANT_IO"));
  EXPECT_THAT(why_not_sent(event::Welcome{}), HasSubstr("hocket's own"));
}

TEST(Rights, OfMembersEndAtTheLengthOfATextThatAnAnswerCanRepeat) {
  event::StartIo start;
  start.file.assign(8192, 'f');
  EXPECT_EQ(why_not_sent(start), "");
  start.file.push_back('f');
  EXPECT_THAT(why_not_sent(start), HasSubstr("'file' of START_IO is too long"));
}

TEST(Rights, ToSteerAreNeededForWhatConcernsOthers) {
  EXPECT_EQ(steers(event::SetPolicy{}), "");
  EXPECT_EQ(steers(event::SetServer{}), "");
  EXPECT_EQ(steers(event::Server{}), "");
  event::Resize resize;
  resize.application = "solver";
  EXPECT_EQ(steers(resize), "solver");
  EXPECT_EQ(steers(event::Resize{}), std::nullopt) << "an application asks for a resize of its own";
  EXPECT_EQ(steers(event::StartIo{}), std::nullopt);
  EXPECT_EQ(steers(event::FinishIo{}), std::nullopt);
}

TEST(Rights, ToSeeADecisionAreThoseOfItsApplication) {
  event::Decision decision;
  decision.decided_for = "solver";
  EXPECT_EQ(concerns(decision), "solver");
  EXPECT_EQ(concerns(event::Tick{}), std::nullopt);
}

}  // namespace
}  // namespace hocket::bus
