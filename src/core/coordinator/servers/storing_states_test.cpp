#include "coordinator/servers/storing_states.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "coordinator/state_table_testing.hpp"

namespace hocket::coordinator::storing_states {
namespace {

using I = StoringInput;
using S = StoringState;
using Lines = std::vector<std::string>;

constexpr testing::Names<3> states{"clear", "owes", "cut"};
constexpr testing::Names<5> inputs{"tell", "answer", "lose", "end", "arrive"};

Lines effects_in(S state) {
  return testing::effects_in(state, &storing_step, states, inputs,
                             [](StoringAction action) { return action == StoringAction::send ? "send" : ""; });
}

TEST(StoringStates, AServerThatWasToldOwesUntilItAnswersOrEnds) {
  EXPECT_EQ(effects_in(S::clear), (Lines{"tell -> owes: send", "lose -> cut"}));
  EXPECT_EQ(effects_in(S::owes), (Lines{"tell: send", "answer -> clear", "lose -> cut", "end -> clear"}));
  EXPECT_EQ(effects_in(S::cut), (Lines{"end -> clear", "arrive -> clear"}));
}

// A server as it is: which epochs it may hold data of.
struct Holder {
  bool alive = true;
  bool connected = true;
  std::int64_t holds_of = 0;  // the oldest epoch of which it holds data; 0: it holds nothing
  std::int64_t told = 0;
};

// Servers hold, store, lose their connections and end, while the map changes. No epoch begins while a server holds data
// of an earlier one, and every history ends with the newest epoch.
TEST(StoringStatesProperty, NoEpochBeginsBeforeAllHaveStored) {
  std::int64_t begun = 0, waited = 0;
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random{seed};
    std::array<Holder, 3> servers{};
    std::array<S, 3> state{};
    std::int64_t epoch = 1, handed = 1;
    const auto feed = [&](std::size_t i, I input) {
      const StoringStep step = storing_step(state.at(i), input);
      state.at(i) = step.next;
      if (step.action == StoringAction::send) servers.at(i).told = epoch;
    };
    const auto hand_out = [&] {
      for (const S one : state) {
        if (one != S::clear) return;
      }
      if (handed == epoch) return;
      handed = epoch;
      ++begun;
      for (const Holder& server : servers) {
        EXPECT_TRUE(server.holds_of == 0 || server.holds_of == epoch) << "it holds data of epoch " << server.holds_of;
      }
    };
    const auto change_map = [&] {
      ++epoch;
      for (std::size_t i = 0; i < servers.size(); ++i) feed(i, I::tell);
    };
    const auto answer = [&](std::size_t i) {
      Holder& server = servers.at(i);
      if (!server.alive || !server.connected || server.told == 0) return;
      const std::int64_t stored = server.told;  // it stores everything, and answers the last map that it was sent
      server.holds_of = server.told = 0;
      if (stored == epoch) feed(i, I::answer);
    };
    const auto end = [&](std::size_t i) {
      servers.at(i) = {.alive = false, .connected = false};
      feed(i, I::end);
    };
    for (int step = 0; step < 200; ++step) {
      const std::size_t i = random() % servers.size();
      Holder& server = servers.at(i);
      switch (random() % 8) {
        case 0: change_map(); break;
        case 1:
        case 2:  // a client that has the handed map writes; only a server that was told nothing newer holds the data
          if (server.alive && server.told == 0 && server.holds_of == 0 && handed == epoch) server.holds_of = handed;
          break;
        case 3:
        case 4: answer(i); break;
        case 5:
          if (!server.connected || random() % 4 != 0) break;
          server.connected = false;
          feed(i, I::lose);
          change_map();
          break;
        case 6:
          if (!server.connected && random() % 2 == 0) end(i);
          break;
        case 7:
          if (server.connected) break;
          if (!server.alive) server = {};
          server.connected = true;
          feed(i, I::arrive);
          change_map();
          break;
      }
      hand_out();
      waited += handed != epoch;
      if (::testing::Test::HasFailure()) FAIL() << "after step " << step;
    }
    for (std::size_t i = 0; i < servers.size(); ++i) servers.at(i).connected ? answer(i) : end(i);
    hand_out();
    EXPECT_EQ(handed, epoch) << "the newest epoch never begins";
  }
  EXPECT_GT(begun, 5'000) << "the histories reached too little";
  EXPECT_GT(waited, 10'000);
}

}  // namespace
}  // namespace hocket::coordinator::storing_states
