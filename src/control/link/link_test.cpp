// Tests clients on a node with an agent, whose leader runs elsewhere: relay and leader each have a thread, and a TCP
// connection with TLS is between them.
#include "link/link.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "base/clock.hpp"
#include "bus/agent.hpp"
#include "bus/client.hpp"
#include "link/node_agents.hpp"
#include "link/relay.hpp"
#include "link/tcp.hpp"

namespace hocket::link {
namespace {

using namespace std::chrono_literals;
using bus::Client;
using bus::OptionalEvent;
using testing::Contains;
using testing::HasSubstr;

constexpr Duration limit = 20s;
const std::string good_key(32, 'k');

std::unique_ptr<Tls> tls_with(const std::string& key) {
  std::signal(SIGPIPE, SIG_IGN);
  auto tls = Tls::with_key(key);
  EXPECT_TRUE(tls.ok());
  return std::move(tls).value();
}

// Returns a port of this machine that was free a moment ago.
std::string free_address() {
  const Fd socket = std::move(listen_at("127.0.0.1:0").value().front());
  sockaddr_in address{};
  socklen_t size = sizeof address;
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

// Lines that a thread has written.
class Lines {
 public:
  void add(const std::string& line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(line);
  }
  bool have(const std::string& part) {
    const std::lock_guard lock(mutex_);
    return std::any_of(lines_.begin(), lines_.end(),
                       [&](const std::string& line) { return line.find(part) != std::string::npos; });
  }
  bool come(const std::string& part) {
    for (const Time until = node_now() + limit; node_now() < until; std::this_thread::sleep_for(2ms))
      if (have(part)) return true;
    return false;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

// A directory for a socket, and a thread that serves it.
class Served {
 public:
  Served() {
    directory_ = "/tmp/hocket-link-XXXXXX";
    mkdtemp(directory_.data());
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;
  ~Served() { rmdir(directory_.c_str()); }
  std::string socket() const { return bus::socket_in(directory_); }
  template <class Once>
  void begin(Once once) {
    stop_ = false;
    thread_ = std::thread{[this, once] {
      while (!stop_)
        if (!paused_) once();
    }};
  }
  void end() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void pause(bool paused) { paused_ = paused; }

 private:
  std::string directory_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> paused_ = false;
  std::thread thread_;
};

// A leader that grants everything. It writes down HELLO and LOST, with their origin.
class LeaderOfAll {
 public:
  explicit LeaderOfAll(const std::string& address, const std::string& key = good_key,
                       const Introduction& self = {link_version, "0.1.0", "adm", "11"}) {
    agent_ = std::move(bus::Agent::listen(
                           served.socket(), "adm", [this](const event::Event& e) { lead(e); },
                           [this](const std::string& line) { told.add(line); }))
                 .value();
    auto agents =
        NodeAgents::listen(address, tls_with(key), *agent_, self, [this](const std::string& line) { told.add(line); });
    EXPECT_TRUE(agents.ok()) << (agents ? "" : agents.error().text);
    agents_ = std::move(agents).value();
    agents_->tell({.joined = [this](const Introduction& who) { told.add("JOINED " + who.node + " " + who.identity); },
                   .reported =
                       [this](const Introduction& who, event::Body&& body) {
                         told.add("REPORT " + who.node + " " + std::string{event::type_name(body)});
                       },
                   .cores = [this](const std::string& node,
                                   std::int64_t cores) { told.add("CORES " + node + " " + std::to_string(cores)); }});
    agent_->watch(agents_->descriptor(), [this] { agents_->serve(); });
    served.begin([this] { agent_->run(10ms); });
  }
  ~LeaderOfAll() { served.end(); }

  Lines told;
  Served served;

 private:
  void lead(const event::Event& e) {
    const MemberId from = e.origin.member;
    if (const auto* hello = std::get_if<event::Hello>(&e.body)) {
      told.add("HELLO " + e.origin.node + " " + std::to_string(hello->peer_pid));
      agent_->send(from, event::Welcome{AppId{1}, hello->application + "-1", "fcfs", 1s});
    } else if (const auto* lost = std::get_if<event::Lost>(&e.body)) {
      told.add("LOST " + e.origin.node + " " + lost->reason);
    } else if (const auto* phase = std::get_if<event::IoPhase>(&e.body)) {
      told.add("AGE " + std::to_string((e.time - phase->start) / 1s));
      agent_->send(from, event::Reconfigure{RequestId{1}, 2, 0, {}, e.time - 7s, {}});
    } else if (const auto* start = std::get_if<event::StartIo>(&e.body)) {
      agent_->send(from, event::GrantIo{start->request, {}, start->target});
    } else if (const auto* server = std::get_if<event::Server>(&e.body)) {
      told.add("SERVER " + e.origin.node + " of " + agents_->identity_of(from) + " at " + agents_->own_host());
      agents_->order_about(from, *server);
    } else if (std::holds_alternative<event::List>(e.body)) {
      return agent_->send(from, event::Daemon{});
    }
    agent_->flush();
    agent_->publish(e);
  }

  std::unique_ptr<bus::Agent> agent_;
  std::unique_ptr<NodeAgents> agents_;
};

// Writes down what an agent is to do, and reports that each server has ended.
class WrittenDuties final : public NodeDuties {
 public:
  explicit WrittenDuties(Lines& told) : told_(told) {}
  void linked(const std::string& address) override { told_.add("LINKED " + address); }
  void unlinked() override { told_.add("UNLINKED"); }
  void carry_out(std::uint64_t member, const event::Body& order) override {
    told_.add("ORDER " + std::to_string(member) + " " + std::string{event::type_name(order)});
    if (const auto* server = std::get_if<event::Server>(&order))
      relay->report(event::ServerEnded{server->server, server->pid, server->instance});
  }
  void left(std::uint64_t member, bool closed) override {
    told_.add("LEFT " + std::to_string(member) + (closed ? " by itself" : ""));
  }
  Relay* relay = nullptr;

 private:
  Lines& told_;
};

class NodeWithAgent {
 public:
  explicit NodeWithAgent(const std::string& leader, const std::string& key = good_key,
                         const Introduction& self = {link_version, "0.1.0", "n1", "22"})
      : NodeWithAgent(std::vector{leader}, key, self) {}
  NodeWithAgent(const std::vector<std::string>& leaders, const std::string& key, const Introduction& self) {
    relay_ = std::move(Relay::start(served.socket(), leaders, tls_with(key), self, [this](const std::string& line) {
               told.add(line);
             })).value();
    duties_.relay = relay_.get();
    relay_->serve_with(duties_);
    EXPECT_TRUE(relay_->listen().ok());
    served.begin([this] { relay_->run(10ms); });
  }
  ~NodeWithAgent() { served.end(); }

  Client connect() const {
    auto client = Client::connect(served.socket(), limit);
    EXPECT_TRUE(client.ok()) << (client ? "" : client.error().text);
    return std::move(client).value();
  }

  Lines told;
  Served served;

 private:
  WrittenDuties duties_{told};
  std::unique_ptr<Relay> relay_;
};

event::Event come(Result<OptionalEvent> event) {
  EXPECT_TRUE(event.ok()) << (event ? "" : event.error().text);
  EXPECT_TRUE(event && event.value().has_value()) << "nothing came";
  return event && event.value() ? *event.value() : event::Event{};
}

template <class E>
E answer_of(Client& client) {
  const event::Event event = come(client.receive(limit));
  const auto* const body = std::get_if<E>(&event.body);
  EXPECT_NE(body, nullptr) << "the answer is " << event::type_name(event.body);
  return body ? *body : E{};
}

event::Hello hello() {
  event::Hello one;
  one.application = "solver";
  return one;
}

// A leader and a node whose agent is linked to it.
class LinkedNode : public testing::Test {
 protected:
  LinkedNode() { EXPECT_TRUE(node.told.come("linked to the leader")); }

  const std::string address = free_address();
  LeaderOfAll leader{address};
  NodeWithAgent node{address};
};

TEST_F(LinkedNode, HasItsMembersServedByTheLeader) {
  Client client = node.connect();
  ASSERT_TRUE(client.send(hello()).ok());
  EXPECT_EQ(answer_of<event::Welcome>(client).application, "solver-1");
  EXPECT_TRUE(leader.told.have("HELLO n1 " + std::to_string(getpid()))) << "node and process come from the agent";
  for (std::uint64_t i = 1; i <= 100; ++i) {
    ASSERT_TRUE(client.send(event::StartIo{RequestId{i}, "dev:8:1", "/f", "write"}).ok());
    EXPECT_EQ(answer_of<event::GrantIo>(client).request, RequestId{i});
  }
}

TEST_F(LinkedNode, IsToldOfAMemberThatEnds) {
  {
    Client client = node.connect();
    ASSERT_TRUE(client.send(hello()).ok());
    answer_of<event::Welcome>(client);
  }
  EXPECT_TRUE(leader.told.come("LOST n1 connection closed"));
}

TEST_F(LinkedNode, CarriesEventsToSubscribersOnOtherNodes) {
  Client here = node.connect();
  auto there = std::move(Client::connect(leader.served.socket(), limit)).value();
  const auto all = here.subscribe("tick");
  ASSERT_TRUE(all.ok()) << all.error().text;
  constexpr int events = 2000;
  for (int i = 0; i < events; ++i) ASSERT_TRUE(there.publish("tick", {{"i", std::int64_t{i}}}).ok());
  for (int i = 0; i < events; ++i) {
    const event::Event got = come(here.next(all.value(), limit));
    ASSERT_TRUE(std::holds_alternative<event::User>(got.body));
    EXPECT_EQ(std::get<event::User>(got.body).properties.at(0).second, event::Value{std::int64_t{i}});
  }
}

// The leader keeps what a subscriber has not read, within its bounds, and counts the rest.
TEST_F(LinkedNode, TellsASlowSubscriberHowManyEventsItMissed) {
  Client slow = node.connect();
  const auto all = slow.subscribe("tick");
  ASSERT_TRUE(all.ok());
  auto there = std::move(Client::connect(leader.served.socket(), limit)).value();
  const std::string text(8000, 'x');
  constexpr int events = 1000;
  for (int i = 0; i < events; ++i) ASSERT_TRUE(there.publish("tick", {{"text", text}}).ok());
  int read = 0;
  while (true) {
    const auto next = slow.next(all.value(), 500ms);
    ASSERT_TRUE(next.ok()) << next.error().text;
    if (!next.value()) break;
    ++read;
  }
  EXPECT_GT(slow.events_lost(), 0);
  EXPECT_EQ(read + slow.events_lost(), events);
}

TEST_F(LinkedNode, HasItsTimesMovedToTheClockOfTheLeader) {
  Client client = node.connect();
  event::IoPhase phase;
  phase.start = node_now() - 5s;
  phase.end = node_now() - 1s;
  ASSERT_TRUE(client.send(phase).ok());
  EXPECT_TRUE(leader.told.come("AGE 5"));
  const Duration age = node_now() - answer_of<event::Reconfigure>(client).asked;
  EXPECT_NEAR(to_s(age), 7, 1) << "and back";
}

TEST_F(LinkedNode, RefusesServersIfItIsNotForItsUserAlone) {
  Client client = node.connect();
  ASSERT_TRUE(client.send(event::Server{}).ok());
  EXPECT_THAT(answer_of<event::Refused>(client).text, HasSubstr("must be daemons of its user alone"));
  EXPECT_FALSE(leader.told.have("JOINED"));
}

// A leader and a node whose daemons are of one user, and for it alone.
class OwnNode : public testing::Test {
 protected:
  static Introduction own(const char* node, const char* identity) {
    return {link_version, "0.1.0", node, identity, 0, 1000, true};
  }

  const std::string address = free_address();
  LeaderOfAll leader{address, good_key, own("adm", "11")};
};

TEST_F(OwnNode, CarriesOutOrdersAboutItsServersAndReports) {
  NodeWithAgent node{address, good_key, own("n1", "22")};
  EXPECT_TRUE(node.told.come("LINKED 127.0.0.1"));
  EXPECT_TRUE(leader.told.come("JOINED n1 22"));
  {
    Client client = node.connect();
    event::Server server;
    server.server = "s1";
    ASSERT_TRUE(client.send(server).ok());
    EXPECT_TRUE(leader.told.come("SERVER n1 of 22 at 127.0.0.1"));
    EXPECT_TRUE(node.told.come("ORDER 1 SERVER"));
    EXPECT_TRUE(leader.told.come("REPORT n1 SERVER_ENDED"));
  }
  EXPECT_TRUE(node.told.come("LEFT 1 by itself"));
}

TEST_F(OwnNode, OfAnotherUserCarriesOutNone) {
  Introduction other = own("n1", "22");
  other.user = 1001;
  NodeWithAgent node{address, good_key, other};
  EXPECT_TRUE(node.told.come("linked to the leader"));
  Client client = node.connect();
  ASSERT_TRUE(client.send(event::Server{}).ok());
  EXPECT_THAT(answer_of<event::Refused>(client).text, HasSubstr("must be daemons of its user alone"));
  EXPECT_FALSE(leader.told.have("JOINED"));
}

TEST_F(OwnNode, LearnsThatItsLinkHasEnded) {
  NodeWithAgent node{address, good_key, own("n1", "22")};
  EXPECT_TRUE(node.told.come("LINKED"));
  leader.served.pause(true);
  EXPECT_TRUE(node.told.come("UNLINKED"));
}

TEST_F(LinkedNode, DisconnectsItsMembersAtOnceWhenTheLeaderIsSilent) {
  Client client = node.connect();
  ASSERT_TRUE(client.send(hello()).ok());
  answer_of<event::Welcome>(client);
  leader.served.pause(true);
  const Time before = node_now();
  EXPECT_FALSE(client.receive(limit).ok());
  EXPECT_LT(node_now() - before, beat + silence + 3s);
  EXPECT_TRUE(node.told.come("the other end was silent for 5 s"));
  auto late = Client::connect(node.served.socket(), limit);
  ASSERT_TRUE(late.ok());
  EXPECT_THAT(answer_of<event::Refused>(late.value()).text, HasSubstr("no leader of this cluster answers"));
  leader.served.pause(false);
  EXPECT_TRUE(leader.told.come("the link to n1 (127.0.0.1) has ended"));
  EXPECT_TRUE(leader.told.come("LOST n1 the link to node n1 has ended"));
}

TEST_F(LinkedNode, IsGivenUpByTheLeaderWhenItIsSilent) {
  Client client = node.connect();
  ASSERT_TRUE(client.send(hello()).ok());
  answer_of<event::Welcome>(client);
  node.served.pause(true);
  EXPECT_TRUE(leader.told.come("LOST n1 the link to node n1 has ended"));
  node.served.pause(false);
  EXPECT_FALSE(client.receive(limit).ok()) << "its requests are gone, so it must ask anew";
}

TEST_F(LinkedNode, CarriesLargeMessagesInBothDirections) {
  Client client = node.connect();
  ASSERT_TRUE(client.send(hello()).ok());
  answer_of<event::Welcome>(client);
  const std::string name(8000, 'n');
  for (std::uint64_t i = 1; i <= 300; ++i)
    ASSERT_TRUE(client.send(event::StartIo{RequestId{i}, name, name, "write"}).ok());
  for (std::uint64_t i = 1; i <= 300; ++i) EXPECT_EQ(answer_of<event::GrantIo>(client).request, RequestId{i});
}

TEST_F(LinkedNode, ServesManyMembersThatHaveSentMuchAtOnce) {
  std::vector<Client> clients;
  for (int i = 0; i < 60; ++i) clients.push_back(node.connect());
  const std::string name(8000, 'n');
  node.served.pause(true);
  for (Client& client : clients)
    for (std::uint64_t i = 1; i <= 4; ++i)
      ASSERT_TRUE(client.send(event::StartIo{RequestId{i}, name, name, "write"}).ok());
  node.served.pause(false);
  for (Client& client : clients)
    for (std::uint64_t i = 1; i <= 4; ++i) EXPECT_EQ(answer_of<event::GrantIo>(client).request, RequestId{i});
}

TEST(Links, AreMadeAnewAfterTheLeaderHasBegunAgain) {
  const std::string address = free_address();
  auto leader = std::make_unique<LeaderOfAll>(address);
  NodeWithAgent node{address};
  ASSERT_TRUE(node.told.come("linked to the leader"));
  Client client = node.connect();
  leader.reset();
  EXPECT_FALSE(client.receive(limit).ok());
  EXPECT_TRUE(node.told.come("1 members continue uncoordinated"));
  leader = std::make_unique<LeaderOfAll>(address);
  ASSERT_TRUE(leader->told.come("the agent of node n1"));
  for (const Time until = node_now() + limit; node_now() < until; std::this_thread::sleep_for(5ms)) {
    Client again = node.connect();
    static_cast<void>(again.send(hello()));
    const auto answer = again.receive(limit);
    if (answer && answer.value() && std::holds_alternative<event::Welcome>(answer.value()->body)) return;
  }
  ADD_FAILURE() << "the leader serves no member";
}

TEST(Links, AreForThoseWhoHaveTheKey) {
  const std::string address = free_address();
  LeaderOfAll leader{address};
  NodeWithAgent stranger{address, std::string(32, 'x')};
  EXPECT_TRUE(stranger.told.come("the other end has another key"));
  EXPECT_TRUE(leader.told.come("the other end has another key"));
  EXPECT_FALSE(leader.told.have("has joined"));
}

TEST(Links, AreRefusedToAnotherVersion) {
  const std::string address = free_address();
  LeaderOfAll leader{address};
  NodeWithAgent older{address, good_key, {link_version + 1, "9.9", "n1", "22"}};
  EXPECT_TRUE(older.told.come("speaks version")) << "the leader's refusal";
  EXPECT_TRUE(leader.told.come("speaks version"));
}

TEST(Links, GiveTwoNodesOfOneNameTwoNames) {
  const std::string address = free_address();
  LeaderOfAll leader{address};
  NodeWithAgent first{address, good_key, {link_version, "0.1.0", "n1", "2222222222"}};
  ASSERT_TRUE(leader.told.come("the agent of node n1 "));
  NodeWithAgent second{address, good_key, {link_version, "0.1.0", "n1", "3333333333"}};
  EXPECT_TRUE(leader.told.come("the agent of node n1~33333333"));
  NodeWithAgent third{address, good_key, {link_version, "0.1.0", "adm", "4444444444"}};
  EXPECT_TRUE(leader.told.come("the agent of node adm~44444444"));
}

TEST(Links, TellTheCoresOfNodesThatComeAndGo) {
  const std::string address = free_address();
  LeaderOfAll leader{address};
  {
    NodeWithAgent node{address, good_key, {link_version, "0.1.0", "n1", "22", 6}};
    EXPECT_TRUE(leader.told.come("CORES n1 6"));
    NodeWithAgent same{address, good_key, {link_version, "0.1.0", "n1", "22", 4}};
    EXPECT_TRUE(leader.told.come("CORES n1 4")) << "it was cut off and has joined anew";
    EXPECT_FALSE(leader.told.have("CORES n1 0"));
  }
  EXPECT_TRUE(leader.told.come("CORES n1 0"));
  NodeWithAgent beside{address, good_key, {link_version, "0.1.0", "adm", "11", 4}};
  EXPECT_TRUE(leader.told.come("the agent of node adm "));
  EXPECT_FALSE(leader.told.have("CORES adm")) << "it is the leader's own node";
}

// Returns a connection to the leader's port, over which anything can be sent.
Fd stranger_to(const std::string& address) {
  Fd socket = begin_to_connect(resolve(address).value().front()).value();
  std::this_thread::sleep_for(20ms);
  EXPECT_TRUE(connected(socket).ok());
  return socket;
}

TEST(Links, EndForStrangersAndLeaveTheLeaderAsItWas) {
  const std::string address = free_address();
  LeaderOfAll leader{address};
  const Fd silent = stranger_to(address);
  const Fd loud = stranger_to(address);
  const std::string noise(100000, '\x16');
  static_cast<void>(send(loud.get(), noise.data(), noise.size(), MSG_NOSIGNAL));
  EXPECT_TRUE(leader.told.come("does not speak TLS 1.3"));
  NodeWithAgent node{address};
  EXPECT_TRUE(node.told.come("linked to the leader"));
}

// Strangers fill their places until their time is over. Agents wait for that in the kernel's queue.
TEST(Links, AreMadeAfterStrangersHaveHadTheirTime) {
  const std::string address = free_address();
  LeaderOfAll leader{address};
  std::vector<Fd> strangers;
  for (std::size_t i = 0; i < NodeAgents::most_strangers; ++i) strangers.push_back(stranger_to(address));
  NodeWithAgent node{address};
  EXPECT_TRUE(node.told.come("linked to the leader"));
  EXPECT_TRUE(leader.told.have("within 5 s"));
  EXPECT_FALSE(leader.told.have("like it")) << "one line a minute for one address";
}

// A TLS server with a certificate of its own and without the key.
class Impostor {
 public:
  explicit Impostor(const std::string& address) : listener_(std::move(listen_at(address).value().front())) {
    key_ = EVP_EC_gen("P-256");
    X509* const certificate = X509_new();
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key_);
    X509_sign(certificate, key_, EVP_sha256());
    context_ = SSL_CTX_new(TLS_server_method());
    EXPECT_EQ(SSL_CTX_use_certificate(context_, certificate), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey(context_, key_), 1);
    X509_free(certificate);
    thread_ = std::thread{[this] { greet_all(); }};
  }
  Impostor(const Impostor&) = delete;
  Impostor& operator=(const Impostor&) = delete;
  ~Impostor() {
    stop_ = true;
    thread_.join();
    SSL_CTX_free(context_);
    EVP_PKEY_free(key_);
  }
  // True once a client has shaken hands with the certificate alone.
  bool has_greeted() const { return has_greeted_; }
  bool has_met() const { return has_met_; }

 private:
  void greet_all() {
    Fd spare;
    for (; !stop_; std::this_thread::sleep_for(2ms)) {
      const Fd client = std::move(accept_from(listener_, spare).socket);
      if (!client) continue;
      has_met_ = true;
      SSL* const stream = SSL_new(context_);
      SSL_set_fd(stream, client.get());
      int done = -1;
      for (const Time until = node_now() + 1s; done != 1 && !stop_ && node_now() < until;) {
        done = SSL_accept(stream);
        if (done != 1 && SSL_get_error(stream, done) == SSL_ERROR_SSL) break;
        std::this_thread::sleep_for(1ms);
      }
      if (done == 1) has_greeted_ = true;
      SSL_free(stream);
      ERR_clear_error();
    }
  }

  Fd listener_;
  EVP_PKEY* key_ = nullptr;
  SSL_CTX* context_ = nullptr;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> has_met_ = false;
  std::atomic<bool> has_greeted_ = false;
  std::thread thread_;
};

// Certificates stand for nothing: a leader that shows one in place of the key is a stranger.
TEST(Links, AreNotMadeWithALeaderThatHasACertificateInPlaceOfTheKey) {
  std::signal(SIGPIPE, SIG_IGN);
  const std::string address = free_address();
  const Impostor impostor{address};
  NodeWithAgent node{address};
  EXPECT_TRUE(node.told.come("has another key, or does not speak TLS 1.3"));
  EXPECT_TRUE(impostor.has_met());
  EXPECT_FALSE(impostor.has_greeted());
  EXPECT_FALSE(node.told.have("linked to the leader"));
}

TEST(Links, AreMadeWithAnEarlierLeaderOfTheListOnceItAnswers) {
  const std::string first = free_address();
  const std::string second = free_address();
  LeaderOfAll spare{second};
  NodeWithAgent node{{first, second}, good_key, {link_version, "0.1.0", "n1", "22"}};
  ASSERT_TRUE(node.told.come("linked to the leader at " + second));
  LeaderOfAll leader{first};
  EXPECT_TRUE(node.told.come("linked to the leader at " + first));
  EXPECT_TRUE(node.told.have("an earlier leader of the list"));
  Client client = node.connect();
  ASSERT_TRUE(client.send(hello()).ok());
  EXPECT_EQ(answer_of<event::Welcome>(client).application, "solver-1");
}

// A member that floods the link is read again once the network has taken what there was.
TEST_F(LinkedNode, ReadsAMemberAgainThatHasFilledTheLink) {
  Client client = node.connect();
  const std::string text(8000, 'x');
  leader.served.pause(true);
  std::atomic<bool> done = false;
  std::thread flood{[&] {
    for (int i = 0; i < 4000 && client.publish("flood", {{"text", text}}).ok(); ++i) {
    }
    done = true;
  }};
  std::this_thread::sleep_for(1s);
  leader.served.pause(false);
  flood.join();
  ASSERT_TRUE(done);
  ASSERT_TRUE(client.connected());
  ASSERT_TRUE(client.send(hello()).ok());
  EXPECT_EQ(answer_of<event::Welcome>(client).application, "solver-1");
}

TEST_F(LinkedNode, TellsWhomItRefusesWhy) {
  leader.served.pause(true);
  ASSERT_TRUE(node.told.come("the other end was silent for 5 s"));
  for (int i = 0; i < 50; ++i) {
    auto late = Client::connect(node.served.socket(), limit);
    ASSERT_TRUE(late.ok());
    static_cast<void>(late.value().send(hello()));
    EXPECT_THAT(answer_of<event::Refused>(late.value()).text, HasSubstr("no leader of this cluster answers"));
  }
  leader.served.pause(false);
}

// An agent of which nothing is served but its link.
class BareAgent {
 public:
  explicit BareAgent(const std::string& address)
      : link_(LinkEnd::agent, std::move(tls_->connected(stranger_to(address))).value(), node_now()) {
    link_.send(MessageKind::hello, 0, text_of(Introduction{link_version, "0.1.0", "bare", "55"}), node_now());
    EXPECT_TRUE(comes(MessageKind::welcome, limit));
  }
  Link& link() { return link_; }
  // Serves the link until such a message has come. Its bytes are in `bytes`.
  bool comes(MessageKind kind, Duration most) {
    bool came = false;
    bytes.clear();
    for (const Time until = node_now() + most; !came && node_now() < until; std::this_thread::sleep_for(1ms)) {
      const auto served = link_.serve(node_now(), [&](const LinkMessage& message) {
        came = came || message.kind == kind;
        if (message.kind == kind) bytes += message.bytes;
        return success();
      });
      EXPECT_TRUE(served.ok()) << (served ? "" : served.error().text);
      if (!served) return false;
    }
    return came;
  }
  std::string bytes;

 private:
  std::unique_ptr<Tls> tls_ = tls_with(good_key);
  Link link_;
};

// The clock of its node is days ahead.
TEST(Links, MoveTimesFromTheClockOfTheNodeAndBack) {
  constexpr Duration ahead = 500'000s;
  const std::string address = free_address();
  LeaderOfAll leader{address};
  BareAgent agent{address};
  const auto now_there = [&] { return node_now() + ahead; };
  event::IoPhase phase;
  phase.start = now_there() - 5s;
  phase.end = now_there() - 1s;
  std::string frame;
  ASSERT_TRUE(wire::encode(phase, frame).ok());
  agent.link().send(MessageKind::opened, 1, text_of(bus::Caller{geteuid(), 1, true}), now_there());
  agent.link().send(MessageKind::data, 1, frame, now_there());
  ASSERT_TRUE(agent.link().flush().ok());
  EXPECT_TRUE(agent.comes(MessageKind::data, limit));
  EXPECT_TRUE(leader.told.come("AGE 5"));
  const auto back = wire::decode(std::string_view{agent.bytes}.substr(4));
  ASSERT_TRUE(back.ok());
  const auto* const resize = std::get_if<event::Reconfigure>(&back.value().event.body);
  ASSERT_NE(resize, nullptr);
  EXPECT_NEAR(to_s(now_there() - resize->asked), 7, 1);
}

TEST(Links, HaveTheirBeatsWhileOthersArrive) {
  const std::string address = free_address();
  LeaderOfAll leader{address};
  BareAgent agent{address};
  bool has_beat = false;
  agent.link().send(MessageKind::beat, 0, {}, node_now());
  ASSERT_TRUE(agent.link().flush().ok());
  for (const Time until = node_now() + 4s; !has_beat && node_now() < until;) {
    stranger_to(address);
    has_beat = agent.comes(MessageKind::beat, 50ms);
  }
  EXPECT_TRUE(has_beat);
}

// A recorded greeting does not make another session: the keys of each are new.
TEST(Links, CannotBeReplayed) {
  const std::string address = free_address();
  std::string recorded;
  {
    const Fd listener = std::move(listen_at(address).value().front());
    Fd spare = spare_descriptor();
    NodeWithAgent victim{address};
    Fd taken;
    for (const Time until = node_now() + limit; !taken && node_now() < until; std::this_thread::sleep_for(2ms))
      taken = accept_from(listener, spare).socket;
    std::this_thread::sleep_for(200ms);
    recorded.resize(65536);
    const ssize_t n = recv(taken.get(), recorded.data(), recorded.size(), 0);
    ASSERT_GT(n, 0);
    recorded.resize(static_cast<std::size_t>(n));
  }
  LeaderOfAll leader{address};
  const Fd replaying = stranger_to(address);
  ASSERT_EQ(send(replaying.get(), recorded.data(), recorded.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(recorded.size()));
  EXPECT_TRUE(leader.told.come("within 5 s"));
  EXPECT_FALSE(leader.told.have("has joined"));
}

}  // namespace
}  // namespace hocket::link
