#include "process/announced.hpp"

#include <algorithm>
#include <string_view>

#include "base/saturating.hpp"
#include "mpi_shim/warn.hpp"
#include "process/identity.hpp"
#include "session/target.hpp"

namespace hocket::runtime {

Announced& announced() {
  static Announced& one = *new Announced;
  return one;
}

void Announced::prepare(const Prepared::Pairs& pairs) {
  const std::lock_guard lock(mutex_);
  prepared_.push(pairs, [](std::string_view line) {
    if (identity().speaks()) warn(line);  // one warning is enough: all ranks prepare the same
  });
  moved_ = 0;
}

bool Announced::complete() {
  const std::lock_guard lock(mutex_);
  return prepared_.pop();
}

void Announced::describe(event::StartIo& start) {
  const std::lock_guard lock(mutex_);
  start.phase_bytes = std::max<std::int64_t>(0, prepared_.phase_bytes() - moved_);
  start.info = prepared_.text();
}

void Announced::describe_step(event::StartIo& start) {
  {
    const std::lock_guard lock(mutex_);
    moved_ = 0;
    start.target = prepared_.value("target");
    if (start.target.empty()) start.target = prepared_.value("hocket_target");
    start.file = prepared_.value("file");
  }
  if (start.target.empty()) start.target = target_of(start.file.empty() ? "." : start.file);
  describe(start);
}

void Announced::moved(std::int64_t bytes) {
  std::int64_t before = moved_.load(std::memory_order_relaxed);
  while (!moved_.compare_exchange_weak(before, saturating_sum(before, bytes), std::memory_order_relaxed)) {
  }
}

}  // namespace hocket::runtime
