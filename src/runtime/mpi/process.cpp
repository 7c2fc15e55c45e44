#include "runtime/mpi/process.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/host_name.hpp"
#include "base/saturating.hpp"
#include "runtime/mpi/calls.hpp"
#include "runtime/server_map.hpp"
#include "runtime/target.hpp"

namespace hocket::runtime {
namespace {

// This thread's collective access that has a grant of its own, for throttling; and Member::changes() when its bandwidth
// share was last read.
constinit thread_local PacedAccess under_way;
constinit thread_local std::uint64_t known_changes = 0;

std::string program_path() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : "";
}

std::vector<CountedEvent> events_of(FlopEvents events) {
  switch (events) {
    case FlopEvents::hardware: return flop_events(this_cpu(), this_linux());
    case FlopEvents::none: return {};
    case FlopEvents::task_clock: return {task_clock_event};
  }
  return {};
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

Process& Process::get() {
  static Process& process = *new Process;
  return process;
}

Process::Process()
    : settings_(
          read_settings(std::getenv, [this](std::string_view line) { wrong_settings_ += std::string(line) + "\n"; })) {}

void Process::initialised() noexcept {
  rank_ = mpi::rank_in(mpi::world());
  size_ = mpi::size_of(mpi::world());
  spawned_ = mpi::is_spawned();
  hot.threads = mpi::has_threads();
  started_ = node_now();
  // The child of a fork() lacks the lease thread, and the connection belongs to the parent.
  pthread_atfork(nullptr, nullptr, [] {
    Process& process = get();
    hot.active = false;
    hot.watches_posix = false;
    process.flop_.abandon();
    if (Reporter* reporter = process.reporter_) reporter->member.abandon();
  });
  if (settings_.coordinates()) flop_.open(events_of(settings_.flop_events));
  hot.reports = settings_.reports();
  hot.active = true;
  hot.watches_posix = settings_.reports() && settings_.posix;
  if (rank_ != 0) return;
  for (std::size_t begin = 0, end; (end = wrong_settings_.find('\n', begin)) != std::string::npos; begin = end + 1)
    if (!spawned_) warn(wrong_settings_.substr(begin, end - begin));
  if (reports()) become_reporter().member.join();
}

event::Hello Process::hello() const {
  event::Hello hello;
  hello.program = program_path();
  hello.job = settings_.job.empty() ? "pid-" + std::to_string(getpid()) : settings_.job;
  hello.application = settings_.name.empty() ? base_name(hello.program) : settings_.name;
  hello.mpi = mpi::name;
  hello.version = HOCKET_VERSION;
  hello.pid = getpid();
  hello.processes = rank_ == 0 ? size_ : 0;
  return hello;
}

Process::Reporter& Process::become_reporter(bool speaks) {
  if (Reporter* reporter = reporter_) return *reporter;
  const std::lock_guard lock(becoming_);
  if (!owned_) {
    owned_ = std::make_unique<Reporter>(
        settings_, hello(), [this](std::string_view why) { lost(why); }, started_);
    owned_->member.tell_pauses(hot.pause_wanted, [] {
      if (const auto hook = on_pause_.load()) hook();
    });
    owned_->speaks = speaks;
    reporter_ = owned_.get();
  }
  return *owned_;
}

// Warns once for the whole application that hocketd is missing: in rank 0 of its first world. That rank also reports
// missing grants of the other ranks, at the end.
void Process::lost(std::string_view why) {
  if (rank_ != 0 || spawned_ || warned_.exchange(true)) return;
  warn(std::string(why) + (coordinates() ? "; going on uncoordinated, asking again at each I/O phase"
                                         : "; going on unwatched, trying again after each I/O phase"));
}

std::string Process::application() {
  const event::Hello own = get().hello();
  const std::string alone = host_name() + ":" + std::to_string(own.pid) + ":" + std::to_string(to_ns(get().started_));
  return own.application + "@" + (get().settings_.job.empty() ? alone : own.job + ":" + base_name(own.program));
}

void Process::warn(std::string_view text) {
  const std::string line = "hocket: " + std::string(text) + "\n";
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) return;  // there is no other place to report it
}

Sums Process::sums() {
  const Counters& counters = hot.counters;
  return {counters.io(), counters.comm.time.duration(), counters.wait_time.duration()};
}

// Reports a phase that is over, if there is one, and updates the deadline of the open phase. `reporter.mutex` is held.
void Process::report(Reporter& reporter, std::optional<event::IoPhase> over) {
  const Time deadline = reporter.phases.deadline();
  hot.phase_deadline = deadline == Time::max() ? Hot::never : to_ns(deadline);
  if (!over) return;
  over->of_one_process = !reporter.speaks && reporter.asked == AsksFor::itself;
  if (reporter.speaks || reporter.asked != AsksFor::nobody) reporter.member.report(*over);
  reporter.asked = AsksFor::nobody;
}

void Process::report_due(Time now) {
  Reporter& reporter = *reporter_;
  const std::lock_guard lock(reporter.mutex);
  report(reporter, reporter.phases.due(now));
}

bool Process::operation_begins(Time start, AsksFor asks_for) noexcept {
  Reporter* reporter = asks_for == AsksFor::nobody ? reporter_.load() : &become_reporter();
  if (!reporter) return false;
  const std::lock_guard lock(reporter->mutex);
  report(*reporter, reporter->phases.begin(start));
  reporter->asked = std::max(reporter->asked, asks_for);
  if (reporter->phases.began()) {
    reporter->member.phase_begins();
    if (reporter->member.session() == Standing::none) moved_ = 0;
  }
  return true;
}

void Process::operation_ends(const Operation& operation) noexcept {
  Reporter& reporter = *reporter_;
  const std::lock_guard lock(reporter.mutex);
  reporter.phases.end(operation, sums());
  report(reporter, std::nullopt);
}

Spent Process::spent(Time now) const noexcept {
  const Sums own = sums();
  // Threads that communicate concurrently can account for more than the elapsed time.
  return {std::max(Duration{}, now - started_ - own.io - own.comm - own.wait), own.comm};
}

void Process::told(const SpentByAll& all) noexcept {
  Reporter* reporter = reporter_;
  if (!reporter) return;
  const std::lock_guard lock(reporter->mutex);
  reporter->phases.told(all);
}

void Process::file_touched(Time end, Duration io) noexcept {
  hot.counters.file_time.add(io);
  Reporter* reporter = reporter_;
  if (!reporter) return;
  const std::lock_guard lock(reporter->mutex);
  report(*reporter, reporter->phases.extend(end, io, sums()));
}

void Process::files_closed() noexcept {
  Reporter* reporter = reporter_;
  if (!reporter) return;
  reporter->bursts.finish(true);
  const std::lock_guard lock(reporter->mutex);
  report(*reporter, reporter->phases.finish());
}

void Process::control_point(const Progress& progress, bool leads) noexcept {
  Reporter* reporter = reporter_;
  if (!reporter) return;
  const std::lock_guard lock(reporter->mutex);
  reporter->speaks = leads;
  reporter->phases.control_point(progress);
  if (!leads) return;
  if (const auto report = reporter->iterations.control_point(progress, node_now(), sums())) {
    reporter->member.report_iterations(*report);
  }
}

bool Process::phase_wants_flop() noexcept {
  Reporter* reporter = reporter_;
  if (!reporter || !flop_.readable()) return false;
  const std::lock_guard lock(reporter->mutex);
  return reporter->phases.began();
}

void Process::count_flop(MPI_Comm comm, bool root) noexcept {
  const std::optional<double> own = flop_.read();
  std::array<double, 2> all = {own.value_or(0), own ? 1.0 : 0.0};  // operations; processes that could read theirs
  if (comm != mpi::no_comm()) mpi::sum(comm, all);
  Reporter* reporter = reporter_;
  if (!root || !reporter) return;
  const std::lock_guard lock(reporter->mutex);
  const std::int64_t computing = reporter->phases.progress().processes;
  if (all[1] == static_cast<double>(computing > 0 ? computing : size_)) reporter->phases.counted(all[0]);
}

RequestId Process::ask(event::StartIo start, Use use) noexcept {
  describe(start);
  Member& member = become_reporter().member;
  const std::string target = start.target;
  const RequestId request = member.ask(std::move(start), use);
  if (!request) {
    uncoordinated_.add(1);
    return request;
  }
  Pace pace;
  {
    const std::lock_guard lock(preparing_);
    pace = paces_[target];
  }
  // The access has not begun, so it can still pause.
  if (!keep(pace, member, request) && member.standing(request) == Standing::to_pause) member.await(request);
  if (use == Use::operation) under_way = {request, pace, member.share(request).part};
  return request;
}

void Process::finish(const event::FinishIo& finish, const std::string& target, int processes,
                     bool in_one_call) noexcept {
  Member& member = become_reporter().member;
  const std::int64_t all = std::max(member.progress_of(finish.request), saturating_product(finish.bytes, processes));
  member.progress(all);
  moved(all);
  if (in_one_call) {
    const std::lock_guard lock(preparing_);
    const Member::Share share = member.share(finish.request);
    const Time now = node_now();
    if (share.alone) {
      paces_[target].moved(now, finish.io, all, 1, true);
    } else if (under_way.request() == finish.request) {
      if (!under_way.moves()) under_way.moves_from(now - finish.io);
      under_way.change_share(share.part);
      paces_[target].go_on_from(under_way.so_far(now, all));
    }
  }
  if (under_way.request() == finish.request) under_way = {};
  member.finish(finish);
}

void Process::moved(std::int64_t bytes) {
  std::int64_t before = moved_.load(std::memory_order_relaxed);
  while (!moved_.compare_exchange_weak(before, saturating_sum(before, bytes), std::memory_order_relaxed)) {
  }
}

void Process::end_in_burst(Bursts::Burst& burst, Time now, Duration io, std::int64_t bytes, bool in_one_call) noexcept {
  moved(bytes);
  reporter_.load()->bursts.end(burst, now, io, bytes, in_one_call);
}

Bursts* Process::bursts() noexcept {
  if (!coordinates() || in_step_.load(std::memory_order_relaxed)) return nullptr;
  Reporter& reporter = become_reporter(false);
  return reporter.member.engaged() ? nullptr : &reporter.bursts;
}

void Process::prepare(const Prepared::Pairs& pairs) {
  const std::lock_guard lock(preparing_);
  prepared_.push(pairs, [](std::string_view line) {
    if (speaks()) warn(line);  // one warning is enough: all ranks prepare the same
  });
  moved_ = 0;
}

bool Process::complete() {
  const std::lock_guard lock(preparing_);
  return prepared_.pop();
}

// Fills in what was prepared: the bytes of the phase that are still to come, and all keys.
void Process::describe(event::StartIo& start) {
  const std::lock_guard lock(preparing_);
  start.phase_bytes = std::max<std::int64_t>(0, prepared_.phase_bytes() - moved_);
  start.info = prepared_.text();
}

void Process::describe_step(event::StartIo& start) {
  {
    const std::lock_guard lock(preparing_);
    moved_ = 0;
    start.target = prepared_.value("target");
    if (start.target.empty()) start.target = prepared_.value("hocket_target");
    start.file = prepared_.value("file");
  }
  if (start.target.empty()) start.target = target_of(start.file.empty() ? "." : start.file);
  describe(start);
}

Member& Process::member_of_step() {
  Member& member = become_reporter().member;
  member.phase_begins();
  return member;
}

bool Process::pause(std::int64_t bytes, std::int64_t round) noexcept {
  if (!pause_wanted()) return false;
  const Time start = node_now();
  const bool paused = reporter_.load()->member.pause(bytes, round);
  waited(node_now() - start);
  return paused;
}

void Process::on_pause(void (*hook)()) noexcept { on_pause_ = hook; }

void Process::waited(Duration wait) noexcept {
  waited_outside(wait);
  waited_ += wait;
  under_way.stopped(wait);
}

void Process::progress(std::int64_t bytes) noexcept {
  if (Reporter* reporter = reporter_) reporter->member.progress(bytes);
}

void Process::begins_to_move() noexcept { under_way.moves_from(node_now()); }

bool Process::has_share() noexcept {
  if (!under_way.request()) return false;
  Member& member = reporter_.load()->member;
  if (const std::uint64_t changes = member.changes(); changes != known_changes) {
    known_changes = changes;
    under_way.change_share(member.share(under_way.request()).part);
  }
  return under_way.share() < 1;
}

bool Process::ahead_of_share(std::int64_t bytes) noexcept { return under_way.is_ahead(node_now(), bytes); }

void Process::fall_back_to_share(std::int64_t bytes) noexcept {
  const Time start = node_now();
  keep(under_way.stop(start, bytes), reporter_.load()->member, under_way.request());
  waited(node_now() - start);
}

bool Process::tell(const event::Body& body) { return reports() && get().become_reporter().member.tell(body); }

std::optional<event::Body> Process::next_command() {
  if (!reports()) return std::nullopt;
  return get().become_reporter().member.next_command();
}

bool Process::connected() { return !reports() || get().become_reporter().member.connected(); }
bool Process::reconnect() { return reports() && get().become_reporter().member.reconnect(); }

std::int64_t Process::connections() { return reports() ? get().become_reporter().member.connections() : 0; }

std::shared_ptr<const event::ServerMap> Process::server_map() {
  if (Reporter* reporter = get().reporter_) return reporter->member.server_map();
  static const auto none = std::make_shared<const event::ServerMap>();
  return none;
}

std::shared_ptr<const event::ServerMap> Process::joined_server_map() {
  if (reports() && !get().is_member()) get().become_reporter().member.join();
  return server_map();
}

void Process::map_adopted(std::int64_t epoch) {
  if (Reporter* reporter = get().reporter_) reporter->member.tell(event::MapAdopted{epoch});
}

std::shared_ptr<const event::ServerMap> server_map() noexcept { return Process::server_map(); }
void map_adopted(std::int64_t epoch) noexcept { Process::map_adopted(epoch); }

void Process::finalising() noexcept {
  if (!active()) return;
  hot.watches_posix = false;  // before the sums: other threads may continue writing
  if (reports()) {
    files_closed();
    const Duration cpu = spent(node_now()).cpu;
    const Sums own = sums();
    const Counters& counters = hot.counters;
    std::array<std::int64_t, 9> all = {cpu.count(),           own.comm.count(),         own.io.count(),
                                       own.wait.count(),      counters.io_calls(),      counters.comm.calls.get(),
                                       counters.bytes_read(), counters.bytes_written(), uncoordinated_.get()};
    std::array<std::int64_t, 2> most = {cpu.count(), own.comm.count()};
    mpi::sum(mpi::world(), all);
    mpi::most(mpi::world(), most);
    mpi::forget_told();
    if (rank_ == 0 && all[8] > 0) lost("hocketd at " + settings_.socket + " was missing");
    event::Bye bye;
    if (rank_ == 0)
      bye = {Duration{all[0]},
             Duration{all[1]},
             Duration{all[2]},
             Duration{all[3]},
             all[4],
             all[5],
             all[6],
             all[7],
             size_,
             Duration{most[0]},
             Duration{most[1]}};
    // Members of other ranks send an empty BYE, because rank 0's has the sums of all.
    if (Reporter* reporter = reporter_) reporter->member.leave(bye);
  }
  hot.active = false;
  flop_.close();
}

}  // namespace hocket::runtime
