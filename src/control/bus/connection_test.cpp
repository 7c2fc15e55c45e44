#include "bus/connection.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "bus/agent.hpp"

namespace hocket::bus {
namespace {

// Takes at most so many bytes, as a network does that is slow.
class SlowSink : public MemberSink {
 public:
  std::size_t take(MemberId /*member*/, std::string_view bytes) override {
    const std::size_t taken = std::min(room, bytes.size());
    room -= taken;
    return taken;
  }
  void dropped(MemberId /*member*/, const std::string& /*reason*/) override {}

  std::size_t room = 0;
};

event::Event large_event() {
  event::Event event;
  event.body = event::User{"grid", {{"text", std::string(10 << 10, 'x')}}};
  return event;
}

class UsersConnections : public testing::Test {
 protected:
  std::unique_ptr<Connection> connect() {
    return std::make_unique<Connection>(MemberId{++members_}, "n1", Caller{1000, 0, false}, share_, sink_);
  }
  // Publishes an event until the subscriber holds so many bytes unread.
  void fill(Connection& subscriber, std::size_t bytes) const {
    const std::size_t before = share_->unsent_bytes;
    for (int i = 0; i < 1000 && share_->unsent_bytes < before + bytes; ++i)
      subscriber.queue_if_subscribed(large_event());
  }

  std::shared_ptr<UserShare> share_ = std::make_shared<UserShare>();
  SlowSink sink_;
  std::uint64_t members_ = 0;
};

TEST_F(UsersConnections, CountWhatTheyHoldAndGiveItBack) {
  {
    const auto one = connect(), other = connect();
    ASSERT_TRUE(one->subscribe(1, ""));
    ASSERT_TRUE(one->subscribe(1, "START_IO")) << "in place of the first";
    ASSERT_TRUE(other->subscribe(7, ""));
    EXPECT_EQ(share_->connections, 2U);
    EXPECT_EQ(share_->subscriptions, 2U);
    ASSERT_TRUE(one->queue(event::Refused{"no"}));
    const std::size_t unsent = share_->unsent_bytes;
    EXPECT_GT(unsent, 0U);
    sink_.room = 3;
    ASSERT_TRUE(one->flush());
    EXPECT_EQ(share_->unsent_bytes, unsent - 3);
    other->unsubscribe(7);
    EXPECT_EQ(share_->subscriptions, 1U);
  }
  EXPECT_EQ(share_->connections, 0U);
  EXPECT_EQ(share_->subscriptions, 0U);
  EXPECT_EQ(share_->unsent_bytes, 0U);
}

TEST_F(UsersConnections, HaveABoundOfSubscriptionsTogether) {
  std::vector<std::unique_ptr<Connection>> all;
  std::size_t made = 0;
  for (int i = 0; i < 40; ++i) {
    all.push_back(connect());
    for (std::int64_t n = 1; n <= 40; ++n) made += all.back()->subscribe(n, "") ? 1 : 0;
  }
  EXPECT_EQ(made, Connection::max_user_subscriptions);
  all.front()->unsubscribe(1);
  EXPECT_TRUE(all.back()->subscribe(1, ""));
  EXPECT_FALSE(all.back()->subscribe(2, ""));
}

TEST_F(UsersConnections, LoseEventsTogetherFromABoundOn) {
  std::vector<std::unique_ptr<Connection>> all;
  for (int i = 0; i < 100; ++i) {
    all.push_back(connect());
    ASSERT_TRUE(all.back()->subscribe(1, ""));
    fill(*all.back(), Connection::event_limit_bytes);
  }
  EXPECT_GT(share_->unsent_bytes, Connection::user_event_limit_bytes);
  EXPECT_LT(share_->unsent_bytes, Connection::user_event_limit_bytes + 2 * Connection::event_limit_bytes);
  EXPECT_TRUE(all.back()->queue(event::Refused{"no"})) << "answers have more room";
}

TEST_F(UsersConnections, ThatReadAreNotDroppedForThoseThatDoNot) {
  std::vector<std::unique_ptr<Connection>> all;
  const event::Refused answer{std::string(50 << 10, 'x')};
  bool all_open = true;
  for (int i = 0; i < 4000 && all_open; ++i) {
    all.push_back(connect());
    for (int n = 0; n < 3; ++n) all_open = all.back()->queue(answer);
  }
  EXPECT_FALSE(all_open);
  EXPECT_GT(share_->unsent_bytes, Connection::user_answer_limit_bytes);
  EXPECT_TRUE(connect()->queue(event::Refused{"no"}));
  EXPECT_FALSE(all.front()->queue(answer));
  share_ = nullptr;  // of the daemon's own user
  const auto own = connect();
  for (int n = 0; n < 3; ++n) EXPECT_TRUE(own->queue(answer));
}

// Members of several users, as the agents of other nodes bring them. The leader gives each the name that it asks for.
class AgentOfUsers : public testing::Test {
 protected:
  AgentOfUsers() {
    const std::string path = "/tmp/hocket-bus-test-" + std::to_string(getpid());
    agent_ = std::move(Agent::listen(
                           path, "n1",
                           [this](const event::Event& e) {
                             heard_ = e.body;
                             if (std::holds_alternative<event::Hello>(e.body))
                               agent_->send(e.origin.member, event::Welcome{AppId{1}, named_, "fcfs", {}});
                           },
                           [](const std::string&) {}, Users{.all = true}))
                 .value();
  }
  static event::Hello hello(const std::string& job) {
    event::Hello said;
    said.job = job;
    said.application = "solver";
    return said;
  }
  MemberId connect(uid_t user, const std::string& step = "") {
    return agent_->open("n2", Caller{user, 0, false, step}, sink_).value();
  }
  void say(MemberId member, const event::Body& body) {
    std::string frame;
    ASSERT_TRUE(wire::encode(body, frame));
    agent_->take_in(member, frame, {});
  }
  bool may_hear(MemberId member, const std::string& application) {
    event::Decision decision;
    decision.decided_for = application;
    return agent_->may_hear(member, decision);
  }

  SlowSink sink_;
  event::Body heard_;             // by the leader, last
  std::string named_ = "solver";  // what the leader answers
  std::unique_ptr<Agent> agent_;
};

TEST_F(AgentOfUsers, NobodyTakesTheNameThatAnotherUserHasNow) {
  const MemberId before = connect(1001), owner = connect(1002);
  say(before, hello("j1"));
  say(before, event::Bye{});
  say(owner, hello("j2"));
  EXPECT_TRUE(may_hear(owner, "solver"));
  EXPECT_FALSE(may_hear(before, "solver"));
  named_ = "solver-2";
  say(before, hello("j3"));
  EXPECT_TRUE(may_hear(owner, "solver"));
  EXPECT_FALSE(may_hear(before, "solver"));
  EXPECT_TRUE(may_hear(before, "solver-2"));
}

TEST_F(AgentOfUsers, UserAndStepOfAProgramAreNotWhatItSays) {
  event::Hello said = hello("slurm:c:1.0");
  said.user = 0;
  said.slurm_step = "1.0";
  say(connect(1001, "77.0"), said);
  EXPECT_EQ(std::get<event::Hello>(heard_).user, 1001);
  EXPECT_EQ(std::get<event::Hello>(heard_).slurm_step, "77.0");
  say(connect(1001), said);
  EXPECT_EQ(std::get<event::Hello>(heard_).slurm_step, "");
}

TEST_F(AgentOfUsers, NobodyTellsWhatAnotherJobHolds) {
  const MemberId member = connect(1001, "77.batch");
  event::HeldNodes held;
  held.job = "j";
  for (const char* allocation : {"77", ""}) {
    held.allocation = allocation;
    heard_ = event::Bye{};
    say(member, held);
    EXPECT_TRUE(std::holds_alternative<event::HeldNodes>(heard_)) << allocation;
  }
  held.allocation = "78";
  heard_ = event::Bye{};
  say(member, held);
  EXPECT_TRUE(std::holds_alternative<event::Bye>(heard_));
  say(connect(1001), held);
  EXPECT_TRUE(std::holds_alternative<event::HeldNodes>(heard_)) << "nobody knows its job";
}

}  // namespace
}  // namespace hocket::bus
