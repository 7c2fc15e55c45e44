// The parts of the simulation of faults apart from servers and clients: virtual time, random numbers, coroutines, the
// file system, and the truth about each byte.
//
// The file has groups of bytes around the boundaries of stripes, so that a short access meets one server or two. A byte
// here is called a cell. Each write has a number of its own, which is the value of all its cells. Each cell has one
// client that writes it; all clients read it.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <coroutine>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "layout/stripes.hpp"

namespace hocket::server::faults {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Value = std::uint32_t;  // 0: never written

constexpr int groups = 6;
constexpr int cells_of_group = 8;
constexpr int cells = groups * cells_of_group;

constexpr std::int64_t offset_of(int cell) {
  return (cell / cells_of_group + 1) * layout::stripe_bytes - cells_of_group / 2 + cell % cells_of_group;
}
constexpr int cell_at(std::int64_t offset) {
  const std::int64_t moved = offset + cells_of_group / 2;
  return static_cast<int>((moved / layout::stripe_bytes - 1) * cells_of_group + moved % layout::stripe_bytes);
}

// Consecutive cells of one group.
struct Cells {
  int first = 0;
  int count = 0;
  int end() const { return first + count; }
};

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t n) { return engine_() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  Duration upto(Duration most) { return Duration{static_cast<std::int64_t>(below(most.count() + 1))}; }

 private:
  std::mt19937_64 engine_;
};

// Virtual time: runs what is due, in order.
class Clock {
 public:
  Time now() const { return now_; }
  void in(Duration delay, std::function<void()> run) { at(now_ + delay, std::move(run)); }
  void at(Time time, std::function<void()> run) {
    due_.emplace(std::pair{std::max(time, now_), ++number_}, std::move(run));
  }
  void step() {
    auto first = due_.extract(due_.begin());
    now_ = first.key().first;
    first.mapped()();
  }

 private:
  Time now_ = Time{} + seconds{1000};
  std::uint64_t number_ = 0;
  std::map<std::pair<Time, std::uint64_t>, std::function<void()>> due_;
};

// A coroutine that its caller awaits; or that starts by start(), for the outermost one.
class Flow {
 public:
  struct promise_type {
    std::coroutine_handle<> caller = std::noop_coroutine();
    Flow get_return_object() { return Flow{std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    struct Return {
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> done) noexcept {
        return done.promise().caller;
      }
      void await_resume() noexcept {}
    };
    Return final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };

  Flow() = default;
  Flow(Flow&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Flow& operator=(Flow&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Flow() {
    if (handle_) handle_.destroy();
  }
  void start() { handle_.resume(); }

  bool await_ready() { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) {
    handle_.promise().caller = caller;
    return handle_;
  }
  void await_resume() {}

 private:
  explicit Flow(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

// The file system, and what may be true of each cell.
class Storage {
 public:
  // A read that is under way, with the values that it may return.
  struct Reading {
    Cells range;
    std::vector<std::set<Value>> allowed;
  };

  Value read(int cell) const { return state_[cell].file; }
  // Returns errno.
  int write(int cell, Value value) {
    if (room <= 0) return ENOSPC;
    --room;
    state_[cell].file = value;
    return 0;
  }
  std::int64_t room = most_room;  // cells that can still be written, also anew
  static constexpr std::int64_t most_room = 1'000'000;
  bool has_lost() const { return has_lost_; }

  void begin_write(Cells range, Value value) {
    for (int cell = range.first; cell < range.end(); ++cell) {
      state_[cell].known = false;
      state_[cell].allowed.insert(value);
      changed(cell);
    }
  }
  // The write has succeeded. `is_held(cell)`: some server holds the value.
  void acknowledge(Cells range, Value value, const std::function<bool(int)>& is_held) {
    for (int cell = range.first; cell < range.end(); ++cell) {
      State& state = state_[cell];
      const bool was_lost = state.lost.contains(value);
      EXPECT_TRUE(state.file == value || is_held(cell) || was_lost) << "acknowledged, and nowhere: cell " << cell;
      state.below.insert(state.allowed.begin(), state.allowed.end());
      if (state.file == value) state.below.clear();
      state.allowed = {value};
      if (was_lost && state.file != value) state.allowed.insert(state.below.begin(), state.below.end());
      state.lost.clear();
      state.acknowledged = value;
      state.known = true;
      changed(cell);
    }
  }
  // A server has lost a value that it held.
  void lose(int cell, Value value) {
    State& state = state_[cell];
    state.lost.insert(value);
    state.allowed.insert(state.below.begin(), state.below.end());
    has_lost_ = true;
    changed(cell);
  }
  // A sync or close of the client that writes these cells has succeeded.
  void stored(int cell) {
    State& state = state_[cell];
    if (!state.known) return;
    EXPECT_EQ(state.file, state.acknowledged) << "not stored, and no error told: cell " << cell;
    state.allowed = {state.acknowledged};
    state.below.clear();
    changed(cell);
  }
  // A sync or close has told an error: the client writes again what it needs.
  void told(int cell) { state_[cell].known = false; }

  void begin(Reading& reading) {
    for (int cell = reading.range.first; cell < reading.range.end(); ++cell)
      reading.allowed.push_back(state_[cell].allowed);
    readings_.insert(&reading);
  }
  void end(Reading& reading) { readings_.erase(&reading); }
  void check_end() const {
    for (int cell = 0; cell < cells; ++cell)
      EXPECT_TRUE(state_[cell].allowed.contains(state_[cell].file))
          << "older data in the end: cell " << cell << " has " << state_[cell].file << ", not "
          << ::testing::PrintToString(state_[cell].allowed);
  }

 private:
  struct State {
    Value file = 0;
    Value acknowledged = 0;
    bool known = true;           // the last write has succeeded, and no error was told since
    std::set<Value> allowed{0};  // that a read may return, and the file may have in the end
    std::set<Value> below;       // that show if a server loses what it holds
    std::set<Value> lost;        // before they were acknowledged
  };
  void changed(int cell) {
    for (Reading* reading : readings_) {
      if (cell < reading->range.first || cell >= reading->range.end()) continue;
      const auto& allowed = state_[cell].allowed;
      reading->allowed[cell - reading->range.first].insert(allowed.begin(), allowed.end());
    }
  }

  std::vector<State> state_{cells};
  std::set<Reading*> readings_;
  bool has_lost_ = false;
};

}  // namespace hocket::server::faults
