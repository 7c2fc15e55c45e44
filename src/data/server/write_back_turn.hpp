// What the loop of a server and the thread that asks for turns (turn_taker.hpp) share about one application at one
// target. Thread-safe; the loop never waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "event/applicant.hpp"

namespace hocket::server {

class WriteBackTurn {
 public:
  // `wake` makes the thread look; it may be called from any thread.
  WriteBackTurn(event::Applicant for_whom, std::function<void()> wake)
      : whose(std::move(for_whom)), wake_(std::move(wake)) {}

  const event::Applicant whose;

  // ---- for the loop

  // Note that the server begins to hold writes of a file, or holds none any more.
  void hold() {
    if (files_.fetch_add(1) == 0) wake_();
  }
  void release() {
    if (files_.fetch_sub(1) == 1) wake_();
  }
  void add_bytes(std::int64_t bytes) { bytes_ += bytes; }
  // True if writes may be stored now that nobody waits for.
  bool may_store() const { return may_store_; }
  // Counts a batch as under way, if it may begin. The turn is not given back before `leave`. `count` counts one that
  // begins in any case.
  bool enter() {
    if (!may_store_) return false;
    count();
    if (may_store_) return true;
    leave();
    return false;
  }
  void count() { ++under_way_; }
  void leave() {
    if (--under_way_ == 0 && !may_store_) wake_();
  }

  // ---- for the thread

  // Set if writes may be stored. After `false`, no batch begins, and those under way are counted (sequentially
  // consistent: `enter` counts first and then looks).
  void set_may_store(bool may) { may_store_ = may; }
  bool holds() const { return files_ > 0; }
  bool is_under_way() const { return under_way_ > 0; }
  std::int64_t bytes() const { return bytes_; }

 private:
  const std::function<void()> wake_;
  std::atomic<std::int64_t> files_ = 0;
  std::atomic<std::int64_t> bytes_ = 0;
  std::atomic<std::int64_t> under_way_ = 0;
  std::atomic<bool> may_store_ = false;
};
using WriteBackTurnPtr = std::shared_ptr<WriteBackTurn>;

}  // namespace hocket::server
