// The little language of the coordinator's tests: a call is an event, and its value is what the coordinator commands,
// one line for each command. In a test on an AccessScript:
//
//   hello(1, "job-a", "a");
//   EXPECT_EQ(start(0, 1, 7), Lines{"1 GRANT_IO 7 waited 0"});  // at 0 ms, member 1 makes its request 7
//   hello(2, "job-b", "b");
//   EXPECT_EQ(start(5, 2, 3), Lines{"2 QUEUED_IO 3 position 1 behind a"});
//   EXPECT_EQ(finish(10, 1, 7), Lines{"2 GRANT_IO 3 waited 5"});
//
// A line begins with the member that gets the command, or with 0 for the daemon; testing.hpp prints the rest.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/coordinator.hpp"
#include "coordinator/testing.hpp"

namespace hocket::coordinator::testing {

using Lines = std::vector<std::string>;

// A lease of 10 s, an idle hold of 100 ms, a time slice of 3 s, and a reminder each second.
inline CoordinatorSettings usual_settings(const policy::Policy& policy = policy::fcfs) {
  return {{&policy},
          std::chrono::seconds{10},
          std::chrono::milliseconds{100},
          std::chrono::seconds{3},
          std::chrono::seconds{1}};
}

// A coordinator, and the verbs for its events.
class Script : public ::testing::Test {
 protected:
  explicit Script(const CoordinatorSettings& settings = usual_settings()) : made_(std::in_place, settings) {}
  // Replaces the coordinator by a new one with these settings.
  void restart(const CoordinatorSettings& settings) { made_.emplace(settings); }

  // Returns a command as a line, or nothing if the test does not look at it.
  virtual std::optional<std::string> line_of(const Command& command) { return describe(command); }

  Lines handle(const event::Event& event) {
    Lines lines;
    for (const Command& command : coordinator.handle(event)) {
      if (std::optional<std::string> shown = line_of(command)) lines.push_back(*std::move(shown));
    }
    return lines;
  }
  // Handles an event of the member; of no member (a timer, the daemon) for member 0.
  Lines at(std::int64_t ms, std::uint64_t member, event::Body body) {
    return handle(event_of(ms, member, std::move(body)));
  }
  Lines hello(std::uint64_t member, const std::string& job = "job", const std::string& name = "app",
              std::int64_t processes = 4, std::int64_t ms = 0) {
    return at(ms, member, event::Hello{job, name, "/bin/" + name, "mpich", "0.1", 99, processes});
  }
  Lines start(std::int64_t ms, std::uint64_t member, std::uint64_t request, const std::string& target = "dev:8:1",
              std::int64_t bytes = 10, const std::string& operation = "MPI_File_write_all") {
    return at(ms, member, event::StartIo{RequestId{request}, target, "/f", operation, bytes});
  }
  Lines finish(std::int64_t ms, std::uint64_t member, std::uint64_t request, bool phase_over = true) {
    return at(ms, member, event::FinishIo{RequestId{request}, {}, 0, phase_over});
  }
  Lines tick(std::int64_t ms) { return at(ms, 0, event::Tick{}); }

  // Returns the time of the next TICK in milliseconds; -1 if there is none.
  std::int64_t deadline_ms() const {
    const std::optional<Time> deadline = coordinator.deadline();
    return deadline ? to_ns(*deadline) / 1'000'000 : -1;
  }

 private:
  std::optional<Coordinator> made_;

 protected:
  Coordinator& coordinator = *made_;
};

// Leaves out the DECISIONs about waits, which go to no member. waiting_test.cpp checks those.
class AccessScript : public Script {
 protected:
  explicit AccessScript(const CoordinatorSettings& settings = usual_settings()) : Script(settings) {}
  std::optional<std::string> line_of(const Command& command) override {
    const auto* decision = std::get_if<event::Decision>(&command.body);
    if (decision != nullptr && decision->action == "wait") return std::nullopt;
    return describe(command);
  }
};

}  // namespace hocket::coordinator::testing
