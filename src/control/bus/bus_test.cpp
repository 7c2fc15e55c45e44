// Tests clients against a node agent in its own thread, with a leader that grants everything.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/clock.hpp"
#include "bus/agent.hpp"
#include "bus/client.hpp"

namespace hocket::bus {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr Duration limit = 20s;

class Node {
 public:
  Node() {
    std::string name = "/tmp/hocket-bus-XXXXXX";
    directory_ = mkdtemp(name.data());
    auto listening = Agent::listen(
        socket_in(directory_), "node1", [this](const event::Event& e) { lead(e); }, [](const std::string&) {});
    EXPECT_TRUE(listening.ok());
    agent_ = std::move(listening).value();
    thread_ = std::thread{[this] {
      while (!stop_) {
        if (!paused_) agent_->run(10ms);
      }
    }};
  }
  ~Node() {
    stop_ = true;
    thread_.join();
    agent_.reset();
    rmdir(directory_.c_str());
  }

  std::string socket() const { return socket_in(directory_); }
  void pause(bool paused) { paused_ = paused; }
  Client connect() const {
    auto client = Client::connect(socket(), limit);
    EXPECT_TRUE(client.ok()) << (client ? "" : client.error().text);
    return std::move(client).value();
  }

 private:
  void lead(const event::Event& e) {
    const MemberId from = e.origin.member;
    if (const auto* hello = std::get_if<event::Hello>(&e.body)) {
      agent_->send(from, event::Welcome{AppId{1}, hello->application + "-1", "fcfs", 1s});
    } else if (const auto* start = std::get_if<event::StartIo>(&e.body)) {
      agent_->send(from, event::GrantIo{start->request, {}, start->target});
    } else if (std::holds_alternative<event::List>(e.body)) {
      agent_->send(from, event::Daemon{});
      return;
    }
    agent_->flush();
    agent_->publish(e);
  }

  std::string directory_;
  std::unique_ptr<Agent> agent_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> paused_ = false;
  std::thread thread_;
};

// Returns the event, which must have come within the limit.
event::Event come(Result<OptionalEvent> event) {
  EXPECT_TRUE(event.ok()) << (event ? "" : event.error().text);
  EXPECT_TRUE(event && event.value().has_value()) << "nothing came";
  return event && event.value() ? *event.value() : event::Event{};
}

TEST(Bus, CarriesRequestAndGrant) {
  Node node;
  Client client = node.connect();
  ASSERT_TRUE(client.send(event::Hello{"job", "jacobi", "/bin/jacobi", "mpich", "0.1.0", 1, 4}).ok());
  EXPECT_EQ(std::get<event::Welcome>(come(client.receive(limit)).body).application, "jacobi-1");
  ASSERT_TRUE(client.send(event::StartIo{RequestId{5}, "dev:8:1", "f", "MPI_File_write_all", 1}).ok());
  EXPECT_EQ(std::get<event::GrantIo>(come(client.receive(limit)).body).request, RequestId{5});
  const auto nothing = client.receive(1ms);
  ASSERT_TRUE(nothing.ok());
  EXPECT_FALSE(nothing.value().has_value());
}

TEST(Bus, StampsWhoPublished) {
  Node node;
  Client watcher = node.connect();
  const auto all = watcher.subscribe("START_IO application=jacobi-1");
  ASSERT_TRUE(all.ok());
  Client client = node.connect();
  ASSERT_TRUE(client.send(event::Hello{"job", "jacobi", "", "mpich", "", 1, 4}).ok());
  ASSERT_TRUE(client.send(event::StartIo{RequestId{5}, "dev:8:1", "f", "w", 1}).ok());
  const event::Event e = come(watcher.next(all.value(), limit));
  EXPECT_EQ(e.origin.node, "node1");
  EXPECT_EQ(e.origin.application, "jacobi-1");
  EXPECT_EQ(e.origin.member, MemberId{2});
  EXPECT_GT(to_ns(e.time), 0);
}

TEST(Bus, PublishesToThoseWhoSubscribed) {
  Node node;
  Client one = node.connect();
  Client two = node.connect();
  int called = 0;
  ASSERT_TRUE(two.subscribe("SLOW server=s1", [&](const event::Event&) { ++called; }).ok());
  const auto queue = two.subscribe("SLOW load>0.5");
  ASSERT_TRUE(queue.ok());
  ASSERT_TRUE(one.publish("SLOW", {{"server", std::string{"s1"}}, {"load", 0.4}}).ok());
  ASSERT_TRUE(one.publish("SLOW", {{"server", std::string{"s2"}}, {"load", 0.9}}).ok());
  const event::Event e = come(two.next(Client::any, limit));
  EXPECT_EQ(std::get<event::User>(e.body).properties[0].second, event::Value{std::string{"s2"}});
  EXPECT_EQ(called, 1);

  ASSERT_TRUE(two.unsubscribe(queue.value()).ok());
  EXPECT_THAT(two.unsubscribe(queue.value()).error().text, HasSubstr("no subscription"));
  ASSERT_TRUE(one.publish("SLOW", {{"load", 0.9}}).ok());
  ASSERT_TRUE(one.publish("SLOW", {{"server", std::string{"s1"}}}).ok());
  while (called < 2) {
    const auto nothing = two.next(Client::any, 10ms);
    ASSERT_TRUE(nothing.ok());
    EXPECT_FALSE(nothing.value().has_value());
  }
}

TEST(Bus, WaitsForAnEventAndTestsForOne) {
  Node node;
  Client one = node.connect();
  Client two = node.connect();
  EXPECT_FALSE(two.test("READY").value().has_value());
  ASSERT_TRUE(one.publish("READY", {}).ok());
  EXPECT_EQ(type_name(come(two.wait("READY", limit)).body), "READY");
  EXPECT_FALSE(two.test("READY").value().has_value());
}

TEST(Bus, RefusesWhatAMemberMayNotSay) {
  Node node;
  Client client = node.connect();
  EXPECT_THAT(client.publish("GRANT_IO", {}).error().text, HasSubstr("one of hocket's own"));
  EXPECT_THAT(client.subscribe("START_IO bytes").error().text, HasSubstr("'bytes'"));
  ASSERT_TRUE(client.send(event::GrantIo{RequestId{1}, {}, "t"}).ok());
  EXPECT_THAT(std::get<event::Refused>(come(client.receive(limit)).body).text, HasSubstr("GRANT_IO"));
}

TEST(Bus, BoundsTheSubscriptionsOfAMember) {
  Node node;
  Client client = node.connect();
  for (std::size_t i = 0; i < Connection::max_subscriptions; ++i) ASSERT_TRUE(client.subscribe("X").ok());
  EXPECT_THAT(client.subscribe("X").error().text, HasSubstr("at most 64"));
}

TEST(Bus, TakesBackASubscriptionThatWasRefusedWithSomethingElse) {
  Node node;
  Client client = node.connect();
  for (std::size_t i = 0; i <= Connection::max_subscriptions; ++i) {
    ASSERT_TRUE(client.send(event::GrantIo{RequestId{1}, {}, "t"}).ok());
    EXPECT_THAT(client.subscribe("X").error().text, HasSubstr("GRANT_IO"));
  }
  EXPECT_TRUE(client.subscribe("X").ok());
}

TEST(Bus, TellsThatAMemberWasLostUnlessItSaidBye) {
  Node node;
  Client watcher = node.connect();
  ASSERT_TRUE(watcher.subscribe("BYE").ok());
  ASSERT_TRUE(watcher.subscribe("LOST").ok());
  {
    Client tool = node.connect();  // without HELLO it is no application
    Client polite = node.connect();
    ASSERT_TRUE(polite.send(event::Hello{}).ok());
    ASSERT_TRUE(polite.send(event::Bye{}).ok());
    EXPECT_EQ(type_name(come(watcher.next(Client::any, limit)).body), "BYE");
  }
  {
    Client rude = node.connect();
    ASSERT_TRUE(rude.send(event::Hello{}).ok());
    come(rude.receive(limit));
  }
  const event::Event e = come(watcher.next(Client::any, limit));
  EXPECT_EQ(std::get<event::Lost>(e.body).reason, "connection closed");
  EXPECT_EQ(e.origin.member, MemberId{4});
}

// Else the nodes stay in the books of the controller for ever.
TEST(Bus, TellsThatTheToolOfAnAllocationWasLost) {
  Node node;
  Client watcher = node.connect();
  ASSERT_TRUE(watcher.subscribe("LOST").ok());
  {
    Client tool = node.connect();
    event::HeldNodes held;
    held.job = "job";
    held.allocation = "17";
    held.nodes = "node1=2";
    ASSERT_TRUE(tool.send(held).ok());
  }
  EXPECT_EQ(come(watcher.next(Client::any, limit)).origin.member, MemberId{2});
}

// The member's own events are sent to itself too, which fails once it has left. The messages that it sent before still
// count.
TEST(Bus, TakesInAllThatWasPublishedByWhoHasGoneSince) {
  constexpr int sent = 200;  // as many as a socket holds
  Node node;
  Client watcher = node.connect();
  int seen = 0;
  ASSERT_TRUE(watcher.subscribe("COUNT", [&](const event::Event&) { ++seen; }).ok());
  {
    Client hasty = node.connect();
    ASSERT_TRUE(hasty.subscribe("COUNT").ok());
    node.pause(true);
    for (int i = 0; i < sent; ++i) ASSERT_TRUE(hasty.publish("COUNT", {{"i", std::int64_t{i}}}).ok());
  }
  node.pause(false);
  const Time deadline = node_now() + limit;
  while (seen < sent && node_now() < deadline) ASSERT_TRUE(watcher.next(Client::any, 100ms).ok());
  EXPECT_EQ(seen, sent);
}

// Answers and listings repeat the texts of this and other members, and must fit into a frame.
TEST(Bus, RefusesLongTexts) {
  Node node;
  Client client = node.connect();
  ASSERT_TRUE(client.send(event::Hello{"job", std::string(8193, 'x'), "", "mpich", "", 1, 4}).ok());
  EXPECT_THAT(std::get<event::Refused>(come(client.receive(limit)).body).text,
              HasSubstr("'application_asked' of HELLO is too long: a text has at most 8192 bytes"));
  ASSERT_TRUE(client.send(event::Hello{"job", std::string(8192, 'x'), "", "mpich", "", 1, 4}).ok());
  EXPECT_EQ(type_name(come(client.receive(limit)).body), "WELCOME");
}

TEST(Bus, LeavesTheSocketOfAnotherAgentAlone) {
  const auto ignore_event = [](event::Event&&) {};
  const auto ignore_text = [](const std::string&) {};
  const std::string path = "/tmp/hocket-bus-socket-" + std::to_string(getpid());
  auto first = Agent::listen(path, "node1", ignore_event, ignore_text);
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(first.value()->is_reachable());
  auto second = Agent::listen(path, "node1", ignore_event, ignore_text);
  ASSERT_TRUE(second.ok());
  EXPECT_FALSE(first.value()->is_reachable());
  first.value().reset();
  EXPECT_TRUE(second.value()->is_reachable());
  second.value().reset();
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST(Bus, DropsAMemberThatSendsNoFrames) {
  Node node;
  Client watcher = node.connect();
  ASSERT_TRUE(watcher.subscribe("LOST").ok());
  Client broken = node.connect();
  ASSERT_TRUE(broken.send(event::Hello{}).ok());
  come(broken.receive(limit));
  ASSERT_EQ(send(broken.fd(), "\xff\xff\xff\xff", 4, MSG_NOSIGNAL), 4);
  EXPECT_THAT(std::get<event::Refused>(come(broken.receive(limit)).body).text, HasSubstr("4294967295"));
  EXPECT_FALSE(broken.receive(limit).ok());
  EXPECT_FALSE(broken.connected());
  EXPECT_THAT(std::get<event::Lost>(come(watcher.next(Client::any, limit)).body).reason, HasSubstr("4294967295"));
}

TEST(Bus, TellsASlowSubscriberHowManyEventsItMissed) {
  constexpr int sent = 40000;
  Node node;
  Client slow = node.connect();
  std::int64_t got = 0;
  ASSERT_TRUE(slow.subscribe("COUNT", [&](const event::Event&) { ++got; }).ok());
  Client publisher = node.connect();
  const std::string ballast(100, 'x');
  for (int i = 0; i < sent; ++i) ASSERT_TRUE(publisher.publish("COUNT", {{"ballast", ballast}}).ok());
  ASSERT_TRUE(publisher.subscribe("").ok());  // the agent has handled all before, without waiting for the slow one

  const Time deadline = node_now() + limit;
  while (got + slow.events_lost() < sent && node_now() < deadline) ASSERT_TRUE(slow.next(Client::any, 100ms).ok());
  EXPECT_EQ(got + slow.events_lost(), sent);
  EXPECT_GT(slow.events_lost(), 0);
  EXPECT_GT(got, 1000);
}

TEST(Bus, GivesUpOnADaemonThatTakesNothingIn) {
  Node node;
  Client client = node.connect();
  node.pause(true);
  Status sent = success();
  for (int i = 0; i < 100000 && sent; ++i) sent = client.send(event::User{"X", {{"ballast", std::string(1000, 'x')}}});
  node.pause(false);
  ASSERT_FALSE(sent.ok());
  EXPECT_THAT(sent.error().text, HasSubstr("accepted no data"));
  EXPECT_FALSE(client.connected());
}

TEST(Bus, SaysWhenNobodyListens) {
  const auto client = Client::connect("/tmp/hocket-no-such-directory/hocketd.sock", 1s);
  EXPECT_THAT(client.error().text, HasSubstr("/tmp/hocket-no-such-directory/hocketd.sock"));
  const auto long_path = Client::connect("/tmp/" + std::string(200, 'x'), 1s);
  EXPECT_THAT(long_path.error().text, HasSubstr("1 to 107 bytes"));
}

TEST(Bus, KeepsItsSocketToTheUser) {
  Node node;
  struct stat status {};
  ASSERT_EQ(stat(node.socket().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

}  // namespace
}  // namespace hocket::bus
