// Keeps what the application has announced of its I/O phases, and how much of it has been done (prepared.hpp). It goes
// with each START_IO.
//
// Thread-safe. The functions may throw std::bad_alloc.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "event/event.hpp"
#include "session/file_parts.hpp"
#include "session/prepared.hpp"

namespace hocket::runtime {

class Announced {
 public:
  // Adds a level of announcements.
  void prepare(const Prepared::Pairs& pairs);
  // Removes the latest level, if there is one.
  Prepared::Popped complete();
  // True if a level announces I/O.
  bool announces();
  // Fills in START_IO of a step from what was announced.
  void describe_step(event::StartIo& start);
  // Names the target of a step, and the bytes that are still to come of its phase.
  void describe_wait(event::AskWait& asked);
  // Fills in START_IO of an access: what is still to come of the phase, and all keys.
  void describe(event::StartIo& start);
  // Returns what was announced, if it has changed since hocketd was told last.
  std::optional<event::InformIo> news();

  // Adds bytes that all processes have moved. Allocates nothing.
  void moved(std::int64_t bytes);
  // Returns the bytes that all processes have moved since the program began, as far as this process knows.
  std::int64_t moved() const { return moved_; }
  // Adds a file that was accessed and closed.
  void file_done();
  // Notes that an I/O phase begins after a gap. What the steps of an announced phase have left undone is still to come.
  // Otherwise the announcement is about each phase anew.
  void phase_begins();
  // True if more of the announced phase is to come, as far as this process knows.
  bool more_to_come();
  // Returns the announced bytes that steps have left undone; 0: none, or unknown.
  std::int64_t left_by_steps();

 private:
  IoDone done() const { return {moved_, files_}; }
  bool is_left();
  // Returns the target of a step; "": the one of the announced file or of the working directory. `mutex_` is held.
  std::string announced_target() const;
  // Returns the parts of the target that were announced, else those of the announced file. Without a lock.
  FileParts parts_of(const std::optional<std::string>& announced, const std::string& file, const std::string& target,
                     bool is_named);
  std::optional<std::string> announced_parts() const;  // `mutex_` is held

  std::mutex mutex_;  // guards the next four
  Prepared prepared_;
  bool has_steps_ = false;  // a step has begun since the first level: bytes are counted over all processes
  bool changed_ = false;    // since hocketd was told last
  FileParts ignored_;       // the last announced parts that could not be meant
  std::atomic<std::int64_t> moved_ = 0;
  std::atomic<std::int64_t> files_ = 0;
};

// Returns the one object, which is never destroyed.
Announced& announced();

}  // namespace hocket::runtime
