// Tests when each end of a link sends a beat and gives the link up, with times that the test makes up.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "link/link.hpp"

namespace hocket::link {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The two ends of a link, in one process. `run` lets time pass for those ends that do not hang.
class Beats : public testing::Test {
 protected:
  struct End {
    std::optional<Link> link;
    std::map<MessageKind, int> heard;
    bool hangs = false;
    std::optional<Time> given_up;
  };

  void SetUp() override {
    auto tls = Tls::with_key(std::string(32, 'k'));
    ASSERT_TRUE(tls.ok());
    tls_ = std::move(tls).value();
    int sockets[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets), 0);
    auto connected = tls_->connected(Fd{sockets[0]});
    auto accepted = tls_->accepted(Fd{sockets[1]});
    ASSERT_TRUE(connected.ok() && accepted.ok());
    agent_.link.emplace(LinkEnd::agent, std::move(connected).value(), now_);
    leader_.link.emplace(LinkEnd::leader, std::move(accepted).value(), now_);
    run(milliseconds{500});
  }

  void run(Duration time) {
    constexpr Duration step = milliseconds{100};
    for (const Time end = now_ + time; now_ < end; now_ += step) {
      for (End* const one : {&agent_, &leader_}) serve(*one);
    }
  }
  void serve(End& one) {
    if (one.hangs || one.given_up) return;
    const auto count = [&one](const LinkMessage& message) {
      ++one.heard[message.kind];
      return success();
    };
    Status served = one.link->serve(now_, count);
    if (served) served = one.link->keep_alive(now_);
    if (!served) one.given_up = now_;
  }
  void say(End& one) {
    one.link->send(MessageKind::data, 1, "x", now_);
    EXPECT_TRUE(one.link->flush().ok());
  }
  // Runs until nothing but beats is sent.
  void let_idle() {
    run(seconds{13});
    agent_.heard.clear();
    leader_.heard.clear();
  }
  Duration took_to_give_up(const End& one, Time since) const {
    EXPECT_TRUE(one.given_up);
    return one.given_up.value_or(since) - since;
  }

  std::unique_ptr<Tls> tls_;
  Time now_ = Time{} + seconds{1000};
  End agent_, leader_;
};

TEST_F(Beats, OfAnAgentAreAnsweredAtOnce) {
  let_idle();
  run(seconds{60});
  EXPECT_NEAR(leader_.heard[MessageKind::beat], 15, 1);
  EXPECT_NEAR(agent_.heard[MessageKind::beat], 15, 1);
  EXPECT_FALSE(agent_.given_up || leader_.given_up);
}

TEST_F(Beats, ComeEarlyIfTheLeaderHasNoOtherAnswer) {
  let_idle();
  say(agent_);
  run(early_beat + milliseconds{200});
  EXPECT_GE(leader_.heard[MessageKind::beat], 1);
  EXPECT_GE(agent_.heard[MessageKind::beat], 1);
}

// An agent that keeps sending what needs no answer hears from the leader all the same.
TEST_F(Beats, ComeBetweenMessagesThatNeedNoAnswer) {
  let_idle();
  for (int i = 0; i < 200; ++i) {
    say(agent_);
    run(milliseconds{100});
  }
  EXPECT_FALSE(agent_.given_up || leader_.given_up);
  EXPECT_NEAR(agent_.heard[MessageKind::beat], 10, 2);
}

TEST_F(Beats, OfTheLeaderAreSparedWhereItSaysSomethingElse) {
  let_idle();
  for (int i = 0; i < 200; ++i) {
    say(agent_);
    run(milliseconds{100});
    say(leader_);
  }
  EXPECT_LE(agent_.heard[MessageKind::beat], 1);
  EXPECT_FALSE(agent_.given_up || leader_.given_up);
}

TEST_F(Beats, AnAgentThatHangsIsAlwaysGivenUpAfterTheSameTime) {
  let_idle();
  agent_.hangs = true;
  const Time since = now_;
  run(seconds{10});
  const Duration took = took_to_give_up(leader_, since);
  EXPECT_GE(took, agent_silence - beat - milliseconds{100});
  EXPECT_LE(took, agent_silence + milliseconds{100});
}

// Messages of the leader to an agent that hangs do not look like answers of it.
TEST_F(Beats, AnAgentThatHangsIsGivenUpThoughTheLeaderSpeaks) {
  let_idle();
  agent_.hangs = true;
  const Time since = now_;
  for (int i = 0; i < 100; ++i) {
    if (!leader_.given_up) say(leader_);
    run(milliseconds{100});
  }
  EXPECT_LE(took_to_give_up(leader_, since), agent_silence + milliseconds{100});
}

TEST_F(Beats, ALeaderThatHangsIsGivenUpByWhoSpeaksToIt) {
  let_idle();
  leader_.hangs = true;
  run(milliseconds{200});
  say(agent_);
  const Time since = now_;
  run(seconds{10});
  EXPECT_LE(took_to_give_up(agent_, since), silence + milliseconds{200});
}

TEST_F(Beats, ALeaderThatHangsIsGivenUpThoughNobodySpeaksToIt) {
  let_idle();
  leader_.hangs = true;
  const Time since = now_;
  run(seconds{20});
  const Duration took = took_to_give_up(agent_, since);
  EXPECT_GE(took, silence);
  EXPECT_LE(took, beat + silence + milliseconds{200});
}

TEST_F(Beats, ALinkThatIsUsedAgainIsNotGivenUp) {
  let_idle();
  for (int i = 0; i < 5; ++i) {
    say(i % 2 == 0 ? agent_ : leader_);
    run(seconds{7 + 3 * i});
    EXPECT_FALSE(agent_.given_up || leader_.given_up) << i;
  }
}

}  // namespace
}  // namespace hocket::link
