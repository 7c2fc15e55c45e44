// Test support: a stand-in for hocketd in the same process. The real node agent carries the messages, in a thread of
// its own, and the test says how each message is answered. Scenarios have tests/kit/stand_in_hocketd.py.
#pragma once

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "bus/agent.hpp"

namespace hocket::bus::testing {

// Returns true if the condition becomes true within 20 s.
template <class Condition>
bool eventually(Condition condition) {
  const Time end = node_now() + std::chrono::seconds{20};
  while (!condition()) {
    if (node_now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return true;
}

// Records the messages of all members. Thread-safe, except that `say` must not be called from `react`.
class StandIn {
 public:
  struct Reaction {
    std::vector<event::Body> answers;
    bool hangs_up = false;  // all connections are closed after the answers
  };
  // Returns the reaction to a message. Called from the stand-in's thread.
  using React = std::function<Reaction(const event::Body&)>;

  StandIn(std::string socket, React react)
      : socket_(std::move(socket)), react_(std::move(react)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    listen();
    thread_ = std::thread{[this] { serve(); }};
  }
  ~StandIn() { stop(); }
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

  // Takes the messages that were sent before, then closes all connections and the socket.
  void stop() {
    if (!thread_.joinable()) return;
    stopping_ = true;
    eventfd_write(wake_.get(), 1);
    thread_.join();
  }

  // Sends the messages together to the member that said HELLO last. Returns when the agent has sent them.
  void say(const std::vector<event::Body>& bodies) {
    {
      const std::lock_guard lock(mutex_);
      to_say_.insert(to_say_.end(), bodies.begin(), bodies.end());
    }
    eventfd_write(wake_.get(), 1);
    EXPECT_TRUE(eventually([this] {
      const std::lock_guard lock(mutex_);
      return to_say_.empty();
    })) << "the stand-in has stopped";
  }

  // Returns the messages of that kind so far.
  template <class E>
  std::vector<E> taken() const {
    const std::lock_guard lock(mutex_);
    std::vector<E> found;
    for (const event::Body& body : taken_) {
      if (const E* one = std::get_if<E>(&body)) found.push_back(*one);
    }
    return found;
  }
  // Waits until there are `count` messages of that kind, and returns them.
  template <class E>
  std::vector<E> await(std::size_t count = 1) const {
    std::vector<E> found;
    EXPECT_TRUE(eventually([&] {
      found = taken<E>();
      return found.size() >= count;
    })) << found.size()
        << " " << E::name << ", not " << count;
    return found;
  }
  // Returns all messages so far, in the order in which they came.
  std::vector<event::Body> everything() const {
    const std::lock_guard lock(mutex_);
    return taken_;
  }
  // Returns the name of the last message; "" if none has come.
  std::string last() const {
    const std::lock_guard lock(mutex_);
    return taken_.empty() ? "" : std::string{event::type_name(taken_.back())};
  }

 private:
  void listen() {
    auto agent = Agent::listen(
        socket_, "node1", [this](const event::Event& said) { take(said); },
        [](const std::string& text) { ADD_FAILURE() << text; });
    if (!agent) {
      ADD_FAILURE() << agent.error().text;
      return;
    }
    agent_ = std::move(agent).value();
    agent_->watch(wake_.get(), [this] { say_all(); });
  }

  void serve() {
    while (agent_ && !stopping_) run(std::nullopt);
    while (agent_ && run(Duration{})) {
    }
    agent_.reset();
  }

  bool run(std::optional<Duration> timeout) {
    const bool any = agent_->run(timeout);
    if (std::exchange(hangs_up_, false)) {
      agent_.reset();
      listen();
    }
    return any;
  }

  void take(const event::Event& said) {
    const MemberId from = said.origin.member;
    if (std::holds_alternative<event::Hello>(said.body)) member_ = from;
    {
      const std::lock_guard lock(mutex_);
      taken_.push_back(said.body);
    }
    const Reaction reaction = react_(said.body);
    for (const event::Body& answer : reaction.answers) agent_->send(from, answer);
    hangs_up_ |= reaction.hangs_up;
  }

  void say_all() {
    eventfd_t count = 0;
    eventfd_read(wake_.get(), &count);
    const std::lock_guard lock(mutex_);
    for (const event::Body& body : to_say_) agent_->send(member_, body);
    agent_->flush();
    to_say_.clear();
  }

  const std::string socket_;
  const React react_;
  const Fd wake_;  // readable when there is something to say, or the end has come
  std::atomic<bool> stopping_ = false;
  // These belong to the thread, which the constructor starts last.
  std::unique_ptr<Agent> agent_;
  MemberId member_;
  bool hangs_up_ = false;

  mutable std::mutex mutex_;  // guards what follows
  std::vector<event::Body> taken_;
  std::vector<event::Body> to_say_;

  std::thread thread_;
};

}  // namespace hocket::bus::testing
