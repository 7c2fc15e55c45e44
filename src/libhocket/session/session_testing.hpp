// Test support for Session: a stand-in for hocketd in the same process, and a fixture.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "bus/stand_in_testing.hpp"
#include "session/session.hpp"

namespace hocket::runtime::testing {

using bus::testing::eventually;

// hocketd as a member sees it. It welcomes members, grants requests at once (unless mute, or the file is "queued"), and
// records the messages that it receives. With the grant of the file "delegated" it delegates the target.
class Controller {
 public:
  explicit Controller(const std::string& path, bool mute = false)
      : mute_(mute), stand_in_(path, [this](const event::Body& said) { return react(said); }) {}

  void stop() { stand_in_.stop(); }
  // Its reaction to PAUSED_IO.
  enum class AtPause { grant, silence, hang_up };
  std::atomic<AtPause> at_pause = AtPause::silence;

  // Sends a message to the connected member.
  void say(const event::Body& body) { say_at_once({body}); }
  void say_at_once(const std::vector<event::Body>& bodies) { stand_in_.say(bodies); }
  // Waits for so many messages of that kind, and returns the last one.
  template <class E>
  E await_last(std::size_t count_of_them = 1) {
    const std::vector<E> found = stand_in_.await<E>(count_of_them);
    return found.empty() ? E{} : found.back();
  }

  // Counts the messages of that kind.
  template <class E>
  std::size_t count() const {
    return stand_in_.taken<E>().size();
  }

  // Return the messages so far: those of that kind, or all.
  template <class E>
  std::vector<E> all() const {
    return stand_in_.taken<E>();
  }
  std::vector<event::Body> everything() const { return stand_in_.everything(); }

  // Grants queued requests, the last one first, until it has granted so many; at most for 20 s.
  void grant_queued(std::size_t count_of_them) {
    std::set<std::uint64_t> granted;
    const Time end = node_now() + from_s(20);
    while (granted.size() < count_of_them && node_now() < end) {
      std::vector<RequestId> queued;
      for (const event::StartIo& start : stand_in_.taken<event::StartIo>())
        if (start.file == "queued" && granted.insert(start.request.value).second) queued.push_back(start.request);
      for (auto request = queued.rbegin(); request != queued.rend(); ++request) say(event::GrantIo{*request, {}, "t"});
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }

 private:
  using Reaction = bus::testing::StandIn::Reaction;

  Reaction react(const event::Body& said) const {
    if (std::holds_alternative<event::Hello>(said)) return {{event::Welcome{AppId{1}, "a", "test", from_s(0.015)}}};
    if (const auto* paused = std::get_if<event::PausedIo>(&said)) {
      if (at_pause == AtPause::grant) return {{event::GrantIo{paused->request, {}, "t"}}};
      return {{}, at_pause == AtPause::hang_up};
    }
    if (const auto* asked = std::get_if<event::AskWait>(&said)) {
      if (mute_) return {};
      // A late answer to an earlier question comes first.
      return {{event::ExpectedWait{asked->number - 1, asked->target, from_s(9), {}, 9},
               event::ExpectedWait{asked->number, asked->target, from_s(2), from_s(0.5), 3}}};
    }
    const auto* start = std::get_if<event::StartIo>(&said);
    if (start == nullptr) return {};
    if (start->delegation) return {};
    if (start->file == "delegated") return {{event::GrantIo{start->request, {}, start->target, 1, true}}};
    if (start->file == "queued") return {{event::QueuedIo{start->request, 1, "b"}}};
    if (mute_) return {};
    // Each grant follows a new server map.
    const std::string map = start->file == "no map" ? "s1" : "s1 /scratch unix:/s1\n";
    return {{event::NewServerMap{static_cast<std::int64_t>(start->request.value), map},
             event::GrantIo{start->request, {}, start->target}}};
  }

  const bool mute_;
  bus::testing::StandIn stand_in_;  // the last member: its thread calls `react`
};

class SessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/hocket-session-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
    settings_.socket = name + "/s";
    settings_.answer = from_s(20);  // longer than any test waits
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  Session make() {
    return {settings_, event::Hello{}, [this](std::string_view why) { lost_.emplace_back(why); }};
  }

  std::filesystem::path directory_;
  MemberSettings settings_;
  std::vector<std::string> lost_;
};

}  // namespace hocket::runtime::testing
