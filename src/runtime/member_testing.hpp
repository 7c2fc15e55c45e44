// Test support for Member: a stand-in for hocketd in the same process, and a fixture.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "bus/local_socket.hpp"
#include "runtime/member.hpp"
#include "wire/frame.hpp"

namespace hocket::runtime::testing {

// Returns true if the condition becomes true within 10 s.
template <class Condition>
bool eventually(Condition condition) {
  const Time end = node_now() + from_s(10);
  while (!condition()) {
    if (node_now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return true;
}

// A stand-in for hocketd. It welcomes members, grants requests at once (unless mute, or the file is "queued"), and
// records the messages that it receives.
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
  // Its reaction to PAUSED_IO.
  enum class AtPause { grant, silence, hang_up };
  std::atomic<AtPause> at_pause = AtPause::silence;

  // Sends a message to the connected member. For other threads than its own.
  void say(const event::Body& body) const { say_at_once({body}); }
  void say_at_once(const std::vector<event::Body>& bodies) const {
    std::string out;
    for (const event::Body& body : bodies) ASSERT_TRUE(wire::encode(body, out));
    ASSERT_EQ(send(client_, out.data(), out.size(), MSG_NOSIGNAL), static_cast<ssize_t>(out.size()));
  }
  // Waits up to 10 s for so many messages of that kind, and returns the last one.
  template <class E>
  E await_last(std::size_t count_of_them = 1) {
    const Time end = node_now() + from_s(10);
    while (node_now() < end) {
      {
        const std::lock_guard lock(mutex_);
        if (count<E>() >= count_of_them)
          for (auto body = taken_.rbegin(); body != taken_.rend(); ++body)
            if (const auto* found = std::get_if<E>(&*body)) return *found;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    ADD_FAILURE() << "no " << E::name << " within 10 s";
    return {};
  }

  // Counts the messages of that kind while the controller serves.
  template <class E>
  std::size_t taken() {
    const std::lock_guard lock(mutex_);
    return count<E>();
  }

  // Grants queued requests, the last one first, until it has granted so many; at most for 20 s.
  void grant_queued(std::size_t count_of_them) {
    std::set<std::uint64_t> granted;
    const Time end = node_now() + from_s(20);
    while (granted.size() < count_of_them && node_now() < end) {
      std::vector<RequestId> queued;
      {
        const std::lock_guard lock(mutex_);
        for (const event::Body& body : taken_)
          if (const auto* start = std::get_if<event::StartIo>(&body); start && start->file == "queued")
            if (granted.insert(start->request.value).second) queued.push_back(start->request);
      }
      for (auto request = queued.rbegin(); request != queued.rend(); ++request) say(event::GrantIo{*request, {}, "t"});
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }

  // Counts the messages of that kind. Call it after stop().
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
      client_ = client.get();
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
      const event::Body body = message.value().event.body;
      {
        const std::lock_guard lock(mutex_);
        taken_.push_back(body);
      }
      answer(client, body);
      if (std::holds_alternative<event::PausedIo>(body) && at_pause == AtPause::hang_up) return false;
    }
    return true;
  }

  void answer(const bus::Fd& client, const event::Body& body) const {
    std::string out;
    Status encoded = success();
    if (std::holds_alternative<event::Hello>(body))
      encoded = wire::encode(event::Welcome{AppId{1}, "a", "test", from_s(0.015)}, out);
    if (const auto* start = std::get_if<event::StartIo>(&body); start && start->file == "queued")
      encoded = wire::encode(event::QueuedIo{start->request, 1, "b"}, out);
    if (const auto* paused = std::get_if<event::PausedIo>(&body); paused && at_pause == AtPause::grant)
      encoded = wire::encode(event::GrantIo{paused->request, {}, "t"}, out);
    if (const auto* start = std::get_if<event::StartIo>(&body); start && !mute_ && start->file != "queued") {
      // Each grant follows a new server map.
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
  std::atomic<int> client_ = -1;
  std::mutex mutex_;  // guards taken_
  std::vector<event::Body> taken_;
  std::thread thread_;
};

class MemberTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/hocket-member-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
    settings_.socket = name + "/s";
    settings_.answer = from_s(20);  // longer than any test waits
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  Member make() {
    return {settings_, event::Hello{}, [this](std::string_view why) { lost_.emplace_back(why); }};
  }

  std::filesystem::path directory_;
  Settings settings_;
  std::vector<std::string> lost_;
};

}  // namespace hocket::runtime::testing
