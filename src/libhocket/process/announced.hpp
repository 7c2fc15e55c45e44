// What the application has announced of its I/O phases, and how much of it has been moved (prepared.hpp). It goes with
// each START_IO.
//
// Thread-safe. The functions may throw std::bad_alloc.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "event/event.hpp"
#include "session/prepared.hpp"

namespace hocket::runtime {

class Announced {
 public:
  // Adds a level of announcements, and counts the bytes of the phase anew.
  void prepare(const Prepared::Pairs& pairs);
  // Removes the latest level. Returns false if there is none.
  bool complete();
  // Fills in START_IO of a step from what was announced, and counts the bytes of the phase anew.
  void describe_step(event::StartIo& start);
  // Fills in START_IO of an access: the bytes of the phase that are still to come, and all keys.
  void describe(event::StartIo& start);

  // Adds bytes that all processes have moved.
  void moved(std::int64_t bytes);
  // Counts the bytes anew, because an I/O phase begins.
  void phase_begins() { moved_ = 0; }

 private:
  std::mutex mutex_;  // guards prepared_
  Prepared prepared_;
  std::atomic<std::int64_t> moved_ = 0;  // bytes moved by all processes since the I/O phase began or was prepared
};

// Returns the one object, which is never destroyed.
Announced& announced();

}  // namespace hocket::runtime
