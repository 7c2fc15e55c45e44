// A member against a controller in the same process: its main thread and its lease thread send on one connection. Built
// with -DHOCKET_SANITIZE=thread, this shows that they do so without a race.
#include "runtime/member.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "bus/local_socket.hpp"
#include "wire/frame.hpp"

namespace hocket::runtime {
namespace {

// Welcomes, grants at once (unless mute), and keeps what it was sent.
class Controller {
 public:
  explicit Controller(const std::string& path, bool mute = false) : mute_(mute) {
    auto listening = bus::listen_at(path);
    if (!listening) ADD_FAILURE() << listening.error().text;
    listener_ = std::move(listening).value();
    thread_ = std::thread([this] { serve(); });
  }
  ~Controller() { stop(); }

  void stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
    listener_ = bus::Fd{};
  }
  // After stop().
  template <class E>
  std::size_t count() const {
    std::size_t found = 0;
    for (const event::Body& body : taken_) found += std::holds_alternative<E>(body) ? 1 : 0;
    return found;
  }

 private:
  bool readable(const bus::Fd& fd) const {
    pollfd waited{fd.get(), POLLIN, 0};
    while (poll(&waited, 1, 20) == 0)
      if (stopping_) return false;
    return true;
  }

  void serve() {
    while (readable(listener_)) {
      const bus::Fd client{accept(listener_.get(), nullptr, nullptr)};
      wire::Splitter splitter;
      while (readable(client) && take_in(client, splitter)) {
      }
    }
  }

  bool take_in(const bus::Fd& client, wire::Splitter& splitter) {
    const auto space = splitter.space();
    const ssize_t n = read(client.get(), space.data, space.size);
    if (n <= 0) return false;
    splitter.filled(static_cast<std::size_t>(n));
    for (auto payload = splitter.next(); payload && payload.value(); payload = splitter.next()) {
      auto message = wire::decode(*payload.value());
      EXPECT_TRUE(message) << "a frame of the member is broken";
      if (!message) return false;
      taken_.push_back(message.value().event.body);
      answer(client, taken_.back());
    }
    return true;
  }

  void answer(const bus::Fd& client, const event::Body& body) const {
    std::string out;
    Status encoded = success();
    if (std::holds_alternative<event::Hello>(body))
      encoded = wire::encode(event::Welcome{AppId{1}, "a", "test", from_s(0.015)}, out);
    if (const auto* start = std::get_if<event::StartIo>(&body); start && !mute_) {
      // A new map before each grant.
      const std::string map = start->file == "no map" ? "s1" : "s1 /scratch unix:/s1\n";
      encoded = wire::encode(event::NewServerMap{static_cast<std::int64_t>(start->request.value), map}, out);
      if (encoded) encoded = wire::encode(event::GrantIo{start->request, {}, start->target}, out);
    }
    EXPECT_TRUE(encoded);
    if (out.empty()) return;
    EXPECT_EQ(send(client.get(), out.data(), out.size(), MSG_NOSIGNAL), static_cast<ssize_t>(out.size()));
  }

  bool mute_;
  bus::Fd listener_;
  std::atomic<bool> stopping_ = false;
  std::vector<event::Body> taken_;
  std::thread thread_;
};

class MemberTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/hocket-member-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
    settings_.socket = name + "/s";
    settings_.answer = from_s(0.2);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  Member make() {
    return {settings_, event::Hello{}, [this](std::string_view why) { lost_.emplace_back(why); }};
  }

  std::filesystem::path directory_;
  Settings settings_;
  std::vector<std::string> lost_;
};

TEST_F(MemberTest, MainAndLeaseThreadSendOnOneConnection) {
  Controller controller(settings_.socket);
  Member member = make();
  member.join();
  const Time end = node_now() + from_s(0.3);
  std::size_t operations = 0;
  while (node_now() < end) {
    const RequestId request = member.ask({{}, "t", "f", "MPI_File_write_all", 0});
    ASSERT_TRUE(request);
    ++operations;
    // Held for a while now and then, so that the lease thread comes to it.
    if (operations % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds{12});
    member.report({});
    member.finish({request, {}, 1, false});
  }
  member.leave({});
  controller.stop();
  EXPECT_EQ(controller.count<event::StartIo>(), operations);
  EXPECT_EQ(controller.count<event::FinishIo>(), operations);
  EXPECT_EQ(controller.count<event::IoPhase>(), operations);
  EXPECT_GT(controller.count<event::RenewIo>(), 0U);
  EXPECT_EQ(controller.count<event::Bye>(), 1U);
  EXPECT_TRUE(lost_.empty());
}

TEST_F(MemberTest, ThreadsAskAtOnce) {
  Controller controller(settings_.socket);
  Member member = make();
  std::vector<std::thread> threads;
  std::atomic<int> granted = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 50; ++n) {
        const RequestId request = member.ask({{}, "t", "f", "MPI_File_write_all", 0});
        granted += request ? 1 : 0;
        if (request) member.finish({request, {}, 1, false});
      }
    });
  for (std::thread& thread : threads) thread.join();
  member.leave({});
  controller.stop();
  EXPECT_EQ(granted, 200);
  EXPECT_EQ(controller.count<event::FinishIo>(), 200U);
}

TEST_F(MemberTest, KeepsTheServerMapThatCameLast) {
  Controller controller(settings_.socket);
  Member member = make();
  const auto none = member.server_map();
  ASSERT_TRUE(none);
  EXPECT_EQ(*none, event::ServerMap{});
  member.finish({member.ask({}), {}, 0, false});
  const auto first = member.server_map();
  EXPECT_EQ(*first, (event::ServerMap{1, {{"s1", "/scratch", "unix:/s1"}}}));
  EXPECT_EQ(member.server_map(), first) << "the same pointer while no other has come";
  member.finish({member.ask({}), {}, 0, false});
  const auto second = member.server_map();
  EXPECT_NE(second, first) << "another map, though the servers are the same";
  EXPECT_EQ(second->epoch, 2);
  EXPECT_TRUE(lost_.empty());
  member.finish({member.ask({{}, "t", "no map", "MPI_File_write_all", 0}), {}, 0, false});
  EXPECT_EQ(member.server_map(), second) << "what is no map changes nothing";
  EXPECT_EQ(lost_.size(), 1U);
  EXPECT_TRUE(member.tell(event::MapAdopted{2}));
  member.leave({});
  controller.stop();
  EXPECT_EQ(controller.count<event::MapAdopted>(), 1U);
}

TEST_F(MemberTest, WaitsOnceForAControllerThatIsSilent) {
  Controller controller(settings_.socket, true);
  Member member = make();
  const Time start = node_now();
  member.join();
  EXPECT_FALSE(member.ask({}));
  EXPECT_GE(node_now() - start, from_s(0.2));
  const Time later = node_now();
  EXPECT_FALSE(member.ask({})) << "the same phase";
  member.phase_begins();
  EXPECT_FALSE(member.ask({})) << "the next phase: WELCOME was all that was ever said";
  EXPECT_LT(node_now() - later, from_s(0.15));
  EXPECT_EQ(lost_.size(), 1U);
  member.leave({});
}

TEST_F(MemberTest, AsksAgainInTheNextPhaseOfAControllerThatCameBack) {
  Member member = make();
  member.join();
  EXPECT_EQ(lost_.size(), 1U);
  EXPECT_FALSE(member.ask({}));
  Controller controller(settings_.socket);
  EXPECT_FALSE(member.ask({})) << "not within the phase";
  member.phase_begins();
  const RequestId request = member.ask({});
  EXPECT_TRUE(request);
  member.finish({request, {}, 0, false});
  member.leave({});
}

}  // namespace
}  // namespace hocket::runtime
