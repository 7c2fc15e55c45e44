#include "process/announced.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/saturating.hpp"
#include "mpi_shim/warn.hpp"
#include "process/identity.hpp"
#include "process/reporter.hpp"
#include "session/file_layout.hpp"
#include "session/target.hpp"

namespace hocket::runtime {
namespace {

// Fills in the fields that START_IO and INFORM_IO share.
template <class E>
void tell(E& told, const IoLeft& left, const std::string& info) {
  told.phase_bytes = left.bytes;
  told.files = left.files;
  told.rounds = left.rounds;
  told.bytes_per_round = left.bytes_per_round;
  told.info = info;
}

// Returns the target of the file system of a step: that of its file, else of the working directory; "" if it names only
// another file system.
std::string file_system_of(const std::string& file, const std::string& named) {
  if (file.empty() && names_file_system(named)) return "";
  return target_of(file.empty() ? "." : file);
}

}  // namespace

Announced& announced() {
  static Announced& one = *new Announced;
  return one;
}

void Announced::prepare(const Prepared::Pairs& pairs) {
  std::vector<std::string> wrong;
  {
    const std::lock_guard lock(mutex_);
    if (!prepared_.announces()) has_steps_ = false;
    prepared_.push(pairs, done(), [&](std::string_view line) { wrong.emplace_back(line); });
    changed_ = true;
  }
  if (!identity().speaks()) return;  // one warning is enough: all ranks prepare the same
  for (const std::string& line : wrong) wrong_information(line);
}

bool Announced::announces() {
  const std::lock_guard lock(mutex_);
  return prepared_.announces();
}

Prepared::Popped Announced::complete() {
  const std::lock_guard lock(mutex_);
  changed_ = true;
  return prepared_.pop();
}

void Announced::describe(event::StartIo& start) {
  const std::lock_guard lock(mutex_);
  tell(start, prepared_.left(done()), prepared_.text());
  changed_ = false;
}

std::string Announced::announced_target() const {
  const std::string target = prepared_.value("target");
  return target_called(target.empty() ? prepared_.value("hocket_target") : target);
}

std::optional<std::string> Announced::announced_parts() const {
  for (const char* key : {"targets", "hocket_targets"}) {
    if (std::string value = prepared_.value(key); !value.empty()) return value;
  }
  return std::nullopt;
}

FileParts Announced::parts_of(const std::optional<std::string>& announced, const std::string& file,
                              const std::string& target, bool is_named) {
  FileParts parts = choose_parts(announced, is_named ? std::nullopt : layout_of(file));
  if (parts.error.empty()) return parts;
  bool is_new = false;
  {
    const std::lock_guard lock(mutex_);
    is_new = std::exchange(ignored_, parts) != parts;
  }
  if (is_new) warn(ignored_line(parts, "hocket_targets", file, target));
  return parts;
}

void Announced::describe_wait(event::AskWait& asked) {
  std::string file;
  std::optional<std::string> targets;
  {
    const std::lock_guard lock(mutex_);
    asked.target = announced_target();
    file = prepared_.value("file");
    targets = announced_parts();
    asked.bytes = prepared_.left(done()).bytes;
  }
  const bool is_named = !asked.target.empty();
  (is_named ? asked.file_system : asked.target) = file_system_of(file, asked.target);
  if (const FileParts parts = parts_of(targets, file, asked.target, is_named); parts.error.empty())
    asked.parts = parts.names;
}

void Announced::describe_step(event::StartIo& start) {
  std::optional<std::string> targets;
  {
    const std::lock_guard lock(mutex_);
    has_steps_ = true;
    start.target = announced_target();
    start.file = prepared_.value("file");
    targets = announced_parts();
  }
  const bool is_named = !start.target.empty();
  (is_named ? start.file_system : start.target) = file_system_of(start.file, start.target);
  parts_of(targets, start.file, start.target, is_named).describe(start);
  describe(start);
}

std::optional<event::InformIo> Announced::news() {
  const std::lock_guard lock(mutex_);
  if (!changed_) return std::nullopt;
  changed_ = false;
  event::InformIo news;
  tell(news, prepared_.left(done()), prepared_.text());
  return news;
}

void Announced::moved(std::int64_t bytes) {
  std::int64_t before = moved_.load(std::memory_order_relaxed);
  while (!moved_.compare_exchange_weak(before, saturating_sum(before, bytes), std::memory_order_relaxed)) {
  }
}

void Announced::file_done() {
  static std::atomic<bool> told = false;
  ++files_;
  std::int64_t announced = 0;
  {
    const std::lock_guard lock(mutex_);
    announced = prepared_.files_exceeded(done());
  }
  if (announced == 0 || !identity().speaks() || told.exchange(true)) return;
  wrong_information("hocket_io_prepare: files=" + std::to_string(announced) +
                    " were announced, and more are accessed before hocket_io_complete: nothing is known of these; "
                    "announce all");
}

// True if more of the announced phase is to come. `mutex_` is held.
bool Announced::is_left() {
  const IoLeft left = prepared_.left(done());
  return left.bytes > 0 || left.files > 0;
}

void Announced::phase_begins() {
  const std::lock_guard lock(mutex_);
  if (!has_steps_ || !is_left()) prepared_.count_anew(done());
}

bool Announced::more_to_come() {
  const std::lock_guard lock(mutex_);
  return is_left();
}

std::int64_t Announced::left_by_steps() {
  const std::lock_guard lock(mutex_);
  return has_steps_ ? prepared_.left(done()).bytes : 0;
}

}  // namespace hocket::runtime
