// Tests links whose ends know each other by MUNGE, with a munged of the test's own. Leader and agent are served in turn
// by one thread.
#include "link/munge.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/clock.hpp"
#include "bus/agent.hpp"
#include "link/calling.hpp"
#include "link/node_agents.hpp"
#include "link/tcp.hpp"

namespace hocket::link {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr Duration munge_limit = 20s;

bool has_munged() { return std::system("command -v munged munge >/dev/null 2>&1") == 0; }

// A munged with a key and a socket of its own.
class Munged {
 public:
  Munged() {
    std::ofstream{directory_ / "key"} << std::string(1024, 'k');
    chmod((directory_ / "key").c_str(), 0600);
    chmod(directory_.c_str(), 0755);
    start();
  }
  Munged(const Munged&) = delete;
  Munged& operator=(const Munged&) = delete;
  ~Munged() {
    end();
    std::filesystem::remove_all(directory_);
  }
  void start() const {
    const std::string at = " --socket=" + socket() + " --key-file=" + file("key") + " --pid-file=" + file("pid") +
                           " --log-file=" + file("log") + " --seed-file=" + file("seed");
    EXPECT_EQ(std::system(("munged --force" + at + " 2>/dev/null").c_str()), 0);
  }
  void end() const {
    int pid = 0;
    if (std::ifstream{file("pid")} >> pid) kill(pid, SIGTERM);
    for (const Time until = node_now() + munge_limit; std::filesystem::exists(file("pid")) && node_now() < until;)
      std::this_thread::sleep_for(5ms);
  }
  std::string socket() const { return file("socket"); }
  std::shared_ptr<const Munge> client() const { return Munge::load(socket()).value(); }

 private:
  std::string file(const char* name) const { return (directory_ / name).string(); }
  static std::filesystem::path make_directory() {
    std::string name = "/tmp/hocket-munge-XXXXXX";
    return mkdtemp(name.data());
  }
  std::filesystem::path directory_ = make_directory();
};

class MungeTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_munged()) GTEST_SKIP() << "munged and munge are not installed";
    std::signal(SIGPIPE, SIG_IGN);
    munged.emplace();
    munge = munged->client();
  }

  std::optional<Munged> munged;
  std::shared_ptr<const Munge> munge;
};

TEST_F(MungeTest, SaysWhichUserHasMadeACredential) {
  const auto made = munge->make("text");
  ASSERT_TRUE(made.ok()) << made.error().text;
  const auto vouched = munge->open(made.value());
  ASSERT_TRUE(vouched.ok()) << vouched.error().text;
  EXPECT_EQ(vouched.value().user, geteuid());
  EXPECT_EQ(vouched.value().payload, "text");
}

TEST_F(MungeTest, RefusesACredentialThatIsOldUsedOrBroken) {
  const std::string used = munge->make("text").value();
  EXPECT_TRUE(check_credential(*munge, used, "text").ok());
  EXPECT_THAT(check_credential(*munge, used, "text").error().text, HasSubstr("was used before"));
  const std::string old = munge->make("text", 1).value();
  std::this_thread::sleep_for(2500ms);
  EXPECT_THAT(check_credential(*munge, old, "text").error().text, HasSubstr("not valid at this time"));
  EXPECT_THAT(check_credential(*munge, munge->make("text").value(), "other").error().text,
              HasSubstr("for another connection"));
  EXPECT_FALSE(check_credential(*munge, "MUNGE:nonsense:", "text").ok());
  EXPECT_FALSE(check_credential(*munge, "", "text").ok());
}

TEST_F(MungeTest, RefusesACredentialOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const std::string command =
      "setpriv --reuid=54321 --regid=54321 --clear-groups munge --socket=" + munged->socket() + " --string=text";
  FILE* const output = popen(command.c_str(), "r");
  std::array<char, 4096> line{};
  ASSERT_NE(std::fgets(line.data(), line.size(), output), nullptr);
  ASSERT_EQ(pclose(output), 0);
  std::string credential{line.data()};
  credential.erase(credential.find_last_not_of("\r\n") + 1);
  EXPECT_THAT(check_credential(*munge, credential, "text").error().text, HasSubstr("user 54321 runs it"));
}

TEST_F(MungeTest, SaysThatMungedDoesNotAnswer) {
  const auto absent = Munge::load("/nowhere/socket").value();
  EXPECT_THAT(absent->make("text").error().text, HasSubstr("munged of this node does not answer"));
}

TEST_F(MungeTest, RefusesACredentialOfAnotherKey) {
  const Munged other;
  std::ofstream{std::filesystem::path{other.socket()}.parent_path() / "key"} << std::string(1024, 'x');
  other.end();
  other.start();
  EXPECT_THAT(check_credential(*munge, other.client()->make("text").value(), "text").error().text,
              HasSubstr("another MUNGE key"));
}

// A leader that takes agents by MUNGE.
class MungeLinkTest : public MungeTest {
 protected:
  void SetUp() override {
    MungeTest::SetUp();
    if (IsSkipped()) return;
    directory = "/tmp/hocket-link-XXXXXX";
    mkdtemp(directory.data());
    const auto warn = [this](const std::string& line) { told += line + "\n"; };
    bus = bus::Agent::listen(
              bus::socket_in(directory), "adm", [](const event::Event&) {}, warn)
              .value();
    {
      const Fd socket = std::move(listen_at("127.0.0.1:0").value().front());
      sockaddr_in at{};
      socklen_t size = sizeof at;
      getsockname(socket.get(), reinterpret_cast<sockaddr*>(&at), &size);
      address = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
    }
    tls = Tls::with_munge(munge).value();
    leader =
        NodeAgents::listen(address, Tls::with_munge(munge).value(), *bus, {link_version, "0.1.0", "adm", "11"}, warn)
            .value();
  }
  void TearDown() override {
    leader.reset();
    bus.reset();
    if (!directory.empty()) std::filesystem::remove_all(directory);
  }

  Calling::Result call(Calling& calling) {
    Calling::Result result = calling.begin(node_now());
    for (const Time until = node_now() + munge_limit; result == Calling::Result::undecided && node_now() < until;) {
      leader->serve();
      std::this_thread::sleep_for(1ms);
      result = calling.go_on(node_now());
    }
    for (int i = 0; i < 20; ++i) leader->serve();
    return result;
  }

  // Connects, says hello with the credential that `make` returns for the binding, and returns what the leader says of
  // it.
  std::string answer_to(const std::function<std::string(const std::string& binding)>& make) {
    Fd socket = begin_to_connect(resolve(address).value().front()).value();
    std::this_thread::sleep_for(20ms);
    Link link{LinkEnd::agent, std::move(tls->connected(std::move(socket))).value(), node_now()};
    std::string answer;
    bool said = false;
    for (const Time until = node_now() + munge_limit; answer.empty() && node_now() < until;) {
      leader->serve();
      const Status served = link.serve(node_now(), [&](const LinkMessage& message) {
        if (message.kind == MessageKind::welcome) answer = "welcome";
        if (message.kind == MessageKind::refused) answer = message.bytes;
        return success();
      });
      if (!served && answer.empty()) answer = served.error().text;
      if (link.is_greeted() && !std::exchange(said, true)) {
        const Introduction self{link_version, "0.1.0", "n1", "22", 4, 0, false, make(link.binding())};
        link.send(MessageKind::hello, 0, text_of(self), node_now());
      }
      std::this_thread::sleep_for(1ms);
    }
    return answer;
  }

  std::string directory;
  std::string address;
  std::string told;
  std::unique_ptr<bus::Agent> bus;
  std::unique_ptr<Tls> tls;
  std::unique_ptr<NodeAgents> leader;
};

TEST_F(MungeLinkTest, BothEndsVouchForThemselves) {
  Calling calling{address, *tls, {link_version, "0.1.0", "n1", "22", 4}};
  EXPECT_EQ(call(calling), Calling::Result::linked) << calling.why();
  EXPECT_EQ(calling.own_name(), "n1");
  EXPECT_THAT(told, HasSubstr("the agent of node n1"));
  EXPECT_EQ(leader->count(), 1U);
}

TEST_F(MungeLinkTest, RefusesCredentialsThatAreOldUsedOrOfAnotherConnection) {
  EXPECT_EQ(answer_to([&](const std::string& binding) { return munge->make(payload_of_agent(binding)).value(); }),
            "welcome");
  EXPECT_THAT(answer_to([&](const std::string& binding) {
                const std::string used = munge->make(payload_of_agent(binding)).value();
                EXPECT_TRUE(munge->open(used).ok());
                return used;
              }),
              HasSubstr("was used before"));
  EXPECT_THAT(answer_to([&](const std::string& binding) {
                const std::string old = munge->make(payload_of_agent(binding), 1).value();
                std::this_thread::sleep_for(2500ms);
                return old;
              }),
              HasSubstr("not valid at this time"));
  EXPECT_THAT(answer_to([&](const std::string&) { return munge->make(payload_of_agent("other")).value(); }),
              HasSubstr("for another connection"));
  EXPECT_THAT(answer_to([&](const std::string& binding) { return munge->make(payload_of_leader(binding)).value(); }),
              HasSubstr("for another connection"))
      << "the leader's own credential, sent back";
  EXPECT_FALSE(answer_to([](const std::string&) { return std::string{}; }) == "welcome");
  for (int i = 0; i < 20; ++i) leader->serve();
  EXPECT_EQ(leader->count(), 0U) << "none but the first was admitted, and that has gone";
}

TEST_F(MungeLinkTest, IsRetriedWhileMungedIsAbsent) {
  munged->end();
  Calling calling{address, *tls, {link_version, "0.1.0", "n1", "22", 4}};
  EXPECT_EQ(call(calling), Calling::Result::unanswered) << "so the agent tries again soon";
  EXPECT_THAT(calling.why(), HasSubstr("munged of this node does not answer"));
  EXPECT_TRUE(calling.has_new_reason());
  EXPECT_EQ(call(calling), Calling::Result::unanswered);
  EXPECT_FALSE(calling.has_new_reason()) << "the log has one line of it";
  munged->start();
  EXPECT_EQ(call(calling), Calling::Result::linked) << calling.why();
}

TEST_F(MungeLinkTest, IsRefusedToAndByAnEndWithAKey) {
  const auto key = Tls::with_key(std::string(32, 'k')).value();
  Calling calling{address, *key, {link_version, "0.1.0", "n1", "22", 4}};
  EXPECT_EQ(call(calling), Calling::Result::refused) << calling.why();
  EXPECT_EQ(leader->count(), 0U);
}

// A leader that cannot vouch for this connection: somebody who passes on what both ends say, in connections of his own.
TEST_F(MungeLinkTest, DoesNotTrustALeaderWithoutACredential) {
  leader.reset();
  const auto listeners = listen_at(address).value();
  Calling calling{address, *tls, {link_version, "0.1.0", "n1", "22", 4}};
  ASSERT_EQ(calling.begin(node_now()), Calling::Result::undecided);
  Fd socket;
  for (const Time until = node_now() + munge_limit; !socket && node_now() < until;) {
    std::this_thread::sleep_for(1ms);
    ASSERT_EQ(calling.go_on(node_now()), Calling::Result::undecided);
    socket = Fd{accept4(listeners.front().get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
  }
  ASSERT_TRUE(socket);
  Link link{LinkEnd::leader, std::move(tls->accepted(std::move(socket))).value(), node_now()};
  Calling::Result result = Calling::Result::undecided;
  for (const Time until = node_now() + munge_limit; result == Calling::Result::undecided && node_now() < until;) {
    (void)link.serve(node_now(), [&](const LinkMessage& message) {
      if (message.kind != MessageKind::hello) return success();
      const std::string credential = munge->make(payload_of_leader("of another connection")).value();
      link.send(MessageKind::welcome, 0, text_of(Admission{"n1", credential}), node_now());
      return success();
    });
    std::this_thread::sleep_for(1ms);
    result = calling.go_on(node_now());
  }
  EXPECT_EQ(result, Calling::Result::refused);
  EXPECT_THAT(calling.why(), HasSubstr("the leader is not trusted: its MUNGE credential is for another connection"));
}

}  // namespace
}  // namespace hocket::link
