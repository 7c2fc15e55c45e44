#include "process/reporter.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "mpi_shim/warn.hpp"
#include "process/announced.hpp"
#include "process/identity.hpp"
#include "process/server_map.hpp"
#include "session/bounded_lock.hpp"

namespace hocket::runtime {
namespace {

constinit std::atomic<Reporter*> reporter = nullptr;  // nullptr in ranks without a connection
constinit std::mutex becoming;
constinit std::atomic<void (*)()> pause_hook = nullptr;
constinit std::atomic<bool> warned = false;

}  // namespace

Reporter* Reporter::find() noexcept { return reporter.load(); }

Reporter& Reporter::get(bool speaks) {
  if (Reporter* const own = find()) return *own;
  const std::lock_guard lock(becoming);
  if (!find()) reporter = new Reporter(speaks);
  return *find();
}

Reporter::Reporter(bool speaks)
    : session_(identity().settings, hello(), warn_of_missing_hocketd),
      bursts_(session_, identity().settings.phase_gap),
      phases_(identity().settings.phase_gap, identity().started),
      speaks_(speaks) {
  session_.set_due([this](Time now) { return bursts_.due(now); });
  session_.tell_pauses(hot.pause_wanted, [] {
    if (const auto hook = pause_hook.load()) hook();
  });
}

// Returns the I/O phases. `mutex_` is held.
PhaseTracker& Reporter::phases() {
  if (ended_unknown_.load(std::memory_order_relaxed) > 0) phases_.ended_unknown(ended_unknown_.exchange(0));
  return phases_;
}

// Reports a phase that is over, if there is one, and updates the deadline of the open phase. `mutex_` is held.
void Reporter::report(std::optional<event::IoPhase> over) {
  const Time deadline = phases().deadline();
  hot.phase_deadline = deadline == Time::max() ? Hot::never : to_ns(deadline);
  if (!over) return;
  over->announced_left = announced().left_by_steps();
  over->of_one_process = !speaks_ && asked_ == AsksFor::itself;
  if (speaks_ || asked_ != AsksFor::nobody) session_.report(*over);
  asked_ = AsksFor::nobody;
}

void Reporter::report_due(Time now) {
  const std::lock_guard lock(mutex_);
  report(phases().due(now));
}

void Reporter::operation_begins(Time start, AsksFor asks_for) noexcept {
  const std::lock_guard lock(mutex_);
  report(phases().begin(start));
  asked_ = std::max(asked_, asks_for);
  if (!phases().began()) return;
  session_.phase_begins();
  if (session_.step_standing() == Standing::none) announced().phase_begins();
}

void Reporter::operation_ends(const Operation& operation) noexcept {
  const std::lock_guard lock(mutex_);
  phases().end(operation, hot.sums());
  report(std::nullopt);
}

bool Reporter::operation_begins_at_once(Time start, AsksFor asks_for) noexcept {
  const BoundedLock lock(mutex_);
  if (!lock || !phases().continues(start)) return false;
  report(phases().begin(start));
  asked_ = std::max(asked_, asks_for);
  return true;
}

void Reporter::operation_ends_at_once(const Operation& operation) noexcept {
  const BoundedLock lock(mutex_);
  if (!lock) {
    ++ended_unknown_;
    return;
  }
  phases().end(operation, hot.sums());
  report(std::nullopt);
}

void Reporter::extend_phase(Time end, Duration io) noexcept {
  const std::lock_guard lock(mutex_);
  report(phases().extend(end, io, hot.sums()));
}

void Reporter::end_phase() noexcept {
  bursts_.finish(true);
  const std::lock_guard lock(mutex_);
  report(phases().finish());
}

void Reporter::files_closed() noexcept {
  if (hot.in_step.load(std::memory_order_relaxed) || announced().more_to_come()) return bursts_.finish(false);
  end_phase();
}

void Reporter::control_point(const IterationProgress& progress, bool leads) noexcept {
  const std::lock_guard lock(mutex_);
  speaks_ = leads;
  phases().control_point(progress);
  if (!leads) return;
  if (const auto report = iterations_.control_point(progress, node_now(), hot.sums()))
    session_.report_iterations(*report);
}

bool Reporter::in_phase(Time now) noexcept {
  const std::lock_guard lock(mutex_);
  return phases().continues(now);
}

bool Reporter::phase_began() noexcept {
  const std::lock_guard lock(mutex_);
  return phases().began();
}

void Reporter::flop_counted(double operations, std::int64_t processes, std::int64_t world) noexcept {
  const std::lock_guard lock(mutex_);
  const std::int64_t computing = phases().progress().processes;
  if (processes == (computing > 0 ? computing : world)) phases().counted(operations);
}

void Reporter::spent_by_all(const SpentTotals& all) noexcept {
  const std::lock_guard lock(mutex_);
  phases().told(all);
}

void file_touched(Time end, Duration io) noexcept {
  hot.counters.file_time.add(io);
  if (Reporter* const own = Reporter::find()) own->extend_phase(end, io);
}

Session* connection() { return hot.is_reported() ? &Reporter::get().session() : nullptr; }

const HeldTargets& held_targets() {
  Session& session = Reporter::get(false).session();
  if (!session.knows_held(node_now())) session.learn_held();
  return session.held();
}

Bursts* independent_bursts(FunctionRef<bool(const HeldTargets&)> is_held) noexcept {
  const Identity& process = identity();
  if (!process.settings.reports()) return nullptr;
  if (process.coordinates() ? hot.in_step.load(std::memory_order_relaxed) : !is_held(held_targets())) return nullptr;
  Reporter& own = Reporter::get(false);
  return own.session().engaged() ? nullptr : &own.bursts();
}

void on_pause(void (*hook)()) noexcept { pause_hook = hook; }

void wrong_information(const std::string& error) {
  warn(error);
  if (!hot.is_active() || !identity().coordinates()) return;
  const bool is_new = Reporter::find() == nullptr;
  Session& session = Reporter::get(false).session();
  if (is_new) session.join();
  event::InformIo wrong;
  wrong.error = error;
  session.tell(wrong);
}

void warn_of_missing_hocketd(std::string_view why) {
  const Identity& own = identity();
  if (!own.speaks() || warned.exchange(true)) return;
  warn(std::string(why) + (own.coordinates()
                               ? "; the application continues uncoordinated, and asks again at each I/O phase"
                               : "; the application continues unwatched, and tries again after each I/O phase"));
}

std::shared_ptr<const event::ServerMap> server_map() noexcept {
  if (Reporter* const own = Reporter::find()) return own->session().server_map();
  static const auto none = std::make_shared<const event::ServerMap>();
  return none;
}

std::shared_ptr<const event::ServerMap> joined_server_map() {
  if (hot.is_reported() && !Reporter::find()) Reporter::get().session().join();
  return server_map();
}

void map_adopted(event::MapAdopted said) noexcept {
  if (Reporter* const own = Reporter::find()) own->session().tell(std::move(said));
}

}  // namespace hocket::runtime
