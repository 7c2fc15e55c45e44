#include "coordinator/servers/server_states.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "coordinator/state_table_testing.hpp"

namespace hocket::coordinator::server_states {
namespace {

using A = ServerAction;
using I = ServerInput;
using S = ServerState;
using Lines = std::vector<std::string>;

constexpr testing::Names<6> states{"unknown", "up", "drained", "slow", "hung", "lost"};
constexpr testing::Names<13> inputs{"arrive", "slow", "slow_alone",   "recover", "need",  "drain", "add",
                                    "silent", "beat", "beat_drained", "lose",    "leave", "end"};
constexpr testing::Names<7> actions{"", "enter", "refuse", "hold_off", "vouch", "forget", "kill"};

Lines effects_in(S state) {
  return testing::effects_in(state, &server_step, states, inputs,
                             [](A action) { return actions.at(static_cast<std::size_t>(action)); });
}

TEST(ServerStates, AServerComesAndMayComeAgain) {
  EXPECT_EQ(effects_in(S::unknown),
            (Lines{"arrive -> up: enter", "slow: refuse", "slow_alone: refuse", "drain: refuse", "add: refuse"}));
  EXPECT_EQ(effects_in(S::lost),
            (Lines{"arrive -> up: enter", "slow: refuse", "slow_alone: refuse", "drain: refuse", "add: refuse"}));
}

TEST(ServerStates, OneOfTheMapIsTakenOutUnlessItIsTheLast) {
  EXPECT_EQ(effects_in(S::up),
            (Lines{"arrive: refuse", "slow -> slow: hold_off", "slow_alone: refuse", "drain -> drained",
                   "silent -> hung: kill", "lose -> lost", "leave -> unknown: forget", "end -> lost"}));
}

TEST(ServerStates, ADrainedOneStaysOutUntilItIsAdded) {
  EXPECT_EQ(effects_in(S::drained), (Lines{"arrive: refuse", "add -> up: vouch", "silent -> hung: kill", "lose -> lost",
                                           "leave -> unknown: forget", "end -> lost"}));
}

TEST(ServerStates, ASlowOneComesBack) {
  EXPECT_EQ(effects_in(S::slow),
            (Lines{"arrive: refuse", "recover -> up", "need -> up", "drain -> drained", "add -> up: vouch",
                   "silent -> hung: kill", "lose -> lost", "leave -> unknown: forget", "end -> lost"}));
}

TEST(ServerStates, AHungOneIsGoneOnlyWhenItsProcessIs) {
  EXPECT_EQ(effects_in(S::hung), (Lines{"arrive: refuse", "drain: refuse", "add: refuse", "beat -> up",
                                        "beat_drained -> drained", "leave -> unknown: forget", "end -> lost"}));
}

TEST(ServerStates, HaveNames) {
  for (const S state : {S::up, S::drained, S::slow, S::hung, S::lost}) {
    EXPECT_EQ(name_of(state), states.at(static_cast<std::size_t>(state)));
  }
  EXPECT_EQ(name_of(S::unknown), "");
}

// A server as its operator sees it: what was done to it, but no state.
struct Seen {
  bool connected = false;
  bool listed = false;
  bool drained = false;
  bool held_off = false;
  bool hung = false;
  bool is_in_map() const { return connected && !drained && !held_off && !hung; }

  void take(I input, A action) {
    // Nothing but a heartbeat, an orderly end, or the end of its process changes what is known of a hung one.
    if (hung && input != I::beat && input != I::beat_drained && input != I::leave && input != I::end) return;
    switch (input) {
      case I::arrive:
        if (!connected) *this = {true, true};
        break;
      case I::slow: held_off |= is_in_map(); break;
      case I::slow_alone: break;
      case I::recover:
      case I::need: held_off = false; break;
      case I::drain:
      case I::add:
        if (!connected) break;
        drained = input == I::drain;
        held_off = false;
        break;
      case I::silent:
        hung = connected;
        held_off = false;
        break;
      case I::beat:
      case I::beat_drained:
        if (hung) *this = {true, true, input == I::beat_drained};
        break;
      case I::lose:
      case I::end:
        if (connected) *this = {false, true};
        break;
      case I::leave:
        if (connected) *this = {};
        break;
    }
    EXPECT_EQ(action == A::hold_off, input == I::slow && held_off && action != A::nothing);
  }
};

TEST(ServerStatesProperty, AServerIsInTheMapUnlessItIsKnownWhyNot) {
  constexpr std::size_t servers = 4;
  std::int64_t held_off = 0, needed = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random{seed};
    std::array<S, servers> state{};
    std::array<Seen, servers> seen{};
    const auto feed = [&](std::size_t server, I input) {
      const ServerStep step = server_step(state.at(server), input);
      state.at(server) = step.next;
      seen.at(server).take(input, step.action);
      held_off += step.action == A::hold_off;
    };
    const auto in_map = [&] { return std::count(state.begin(), state.end(), S::up); };
    // If the map is empty, a slow server is better than none.
    const auto fill = [&] {
      const auto slow = std::find(state.begin(), state.end(), S::slow);
      if (in_map() > 0 || slow == state.end()) return;
      feed(static_cast<std::size_t>(slow - state.begin()), I::need);
      ++needed;
    };
    for (int i = 0; i < 300; ++i) {
      const std::size_t server = random() % servers;
      auto input = static_cast<I>(random() % inputs.size());
      if (input == I::need) continue;  // `fill` feeds it
      if (input == I::slow || input == I::slow_alone) input = in_map() > 1 ? I::slow : I::slow_alone;
      if (input == I::silent && random() % 2 == 0) continue;
      feed(server, input);
      fill();
      for (std::size_t each = 0; each < servers; ++each) {
        const Seen& one = seen.at(each);
        EXPECT_EQ(state.at(each) == S::up, one.is_in_map()) << "server " << each;
        EXPECT_EQ(state.at(each) != S::unknown, one.listed) << "server " << each;
        EXPECT_EQ(state.at(each) == S::slow, one.held_off) << "server " << each;
        EXPECT_EQ(state.at(each) == S::hung, one.hung) << "server " << each;
      }
      EXPECT_TRUE(in_map() > 0 || std::count(state.begin(), state.end(), S::slow) == 0);
    }
    // Every hold-off ends, and an operator can have each connected server back. A hung one continues, or ends.
    for (std::size_t each = 0; each < servers; ++each) {
      if (state.at(each) == S::hung) feed(each, each % 2 == 0 ? I::beat : I::end);
      feed(each, I::recover);
      feed(each, I::add);
      EXPECT_EQ(state.at(each) == S::up, seen.at(each).connected);
    }
    if (::testing::Test::HasFailure()) FAIL();
  }
  EXPECT_GT(held_off, 1'000) << "the histories reached too little";
  EXPECT_GT(needed, 300);
}

}  // namespace
}  // namespace hocket::coordinator::server_states
