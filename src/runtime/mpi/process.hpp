// What libhocket knows of the process that it is in: its place in the application, its sums, its phases, its
// connection.
//
// Everything here is thread-safe and throws nothing. Before MPI_Init, after MPI_Finalize and in the child of a fork(),
// `active()` is false and no other function may be called.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "base/clock.hpp"
#include "runtime/bursts.hpp"
#include "runtime/counters.hpp"
#include "runtime/flop_counter.hpp"
#include "runtime/iterations.hpp"
#include "runtime/member.hpp"
#include "runtime/phases.hpp"
#include "runtime/prepared.hpp"
#include "runtime/settings.hpp"

namespace hocket::runtime {

// What every wrapped call touches, together: after a large copy these cache lines are cold, and each costs. The first
// has all that an access needs.
struct alignas(64) Hot {
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  std::atomic<bool> active = false;                  // Process::active()
  std::atomic<bool> reports = false;                 // Process::reports()
  std::atomic<bool> watches_posix = false;           // Process::watches_posix()
  std::atomic<bool> threads = true;                  // whether several may call MPI at once
  std::atomic<bool> pause_wanted = false;            // Process::pause_wanted()
  std::atomic<bool> own_files = false;               // whether hocket does accesses itself of any file (io/)
  std::atomic<std::int64_t> phase_deadline = never;  // ns: from when on an I/O phase is over
  Counters counters;

  [[gnu::always_inline]] void count(Activity& activity, std::int64_t moved, Duration took) {
    activity.add(moved, took, threads.load(std::memory_order_relaxed));
  }
};
static_assert(offsetof(Hot, counters.comm) == 64);
inline constinit Hot hot;

// For which processes an operation asks for a grant, in this one.
enum class AsksFor { nobody, itself, all_of_file };

class Process {
 public:
  // Made by the first use, never destroyed: other libraries' destructors may still call MPI.
  static Process& get();

  // After MPI_Init of this process, and before its MPI_Finalize (collective over its world).
  void initialised() noexcept;
  void finalising() noexcept;
  static bool active() { return hot.active.load(std::memory_order_relaxed); }

  // Whether hocketd is told of this application. Where not, there are counters and nothing else.
  static bool reports() { return hot.reports.load(std::memory_order_relaxed); }
  // Whether it is told of what this process reads and writes past MPI, in any of its threads. False where it is not
  // `active()`.
  static bool watches_posix() { return hot.watches_posix.load(std::memory_order_acquire); }
  // Whether collective accesses are control points.
  bool coordinates() const { return settings_.coordinates(); }
  // Whether hocket does collective accesses itself.
  bool serves_io() const { return settings_.io == Io::hocket; }
  int world_size() const { return size_; }
  Duration phase_gap() const { return settings_.phase_gap; }
  bool is_spawned() const { return spawned_; }
  bool is_member() const { return reporter_.load() != nullptr; }

  // Called with each time that is read anyway: reports the I/O phase that is over by then.
  static void at(Time now) noexcept {
    if (to_ns(now) > hot.phase_deadline.load(std::memory_order_relaxed)) [[unlikely]]
      get().report_due(now);
  }

  // An I/O operation of this process begins: where this process reports phases (rank 0, and who asks), it becomes part
  // of one. True: it does, and `operation_ends` is to be called.
  bool operation_begins(Time start, AsksFor asks_for) noexcept;
  void operation_ends(const Operation& operation) noexcept;
  // What this process has spent until `now`, when it is in no call of MPI and all that came before is counted.
  Spent spent(Time now) const noexcept;
  // All processes of a file have told it, in the phase that is open.
  void told(const SpentByAll& all) noexcept;
  // A file was opened, closed or the like, within a phase or not.
  void file_touched(Time end, Duration io) noexcept;
  // The last file of this process is closed: no operation of this phase follows.
  void files_closed() noexcept;

  // Floating-point operations. Whether they are to be counted now: the operation that `operation_begins` was called for
  // last is the first of its phase, and this process can read its counters.
  bool phase_wants_flop() noexcept;
  // Adds up what the processes of `comm` have counted, for the phase that has begun: collective over it, waits for the
  // others. None: this process alone. Its `root` takes the sum, if they are all of those that compute and all could
  // read.
  void count_flop(MPI_Comm comm, bool root) noexcept;

  // START_IO and the wait for its grant; FINISH_IO. In rank 0 of the file's communicator. No id: uncoordinated.
  RequestId ask(event::StartIo start, Use use) noexcept;
  // `processes`: of the file, which are taken to have moved as much as this one each, or what `progress` has said.
  // `in_one_call`: its time tells how fast the target is.
  void finish(const event::FinishIo& finish, const std::string& target, int processes, bool in_one_call) noexcept;
  // An access within a burst has ended, at `now`.
  void end_in_burst(Bursts::Burst& burst, Time now, Duration io, std::int64_t bytes, bool in_one_call) noexcept;

  // Where independent accesses ask; nullptr where they need not, as this process has asked for more than one access, or
  // the application is in a step of its own. An access that has asked without success is `uncoordinated`.
  Bursts* bursts() noexcept;
  void uncoordinated() noexcept { uncoordinated_.add(1); }
  static void in_step(bool inside) noexcept { in_step_ = inside; }

  // What the application says of its I/O phases (prepared.hpp); goes with each START_IO.
  void prepare(const Prepared::Pairs& pairs);
  bool complete();
  // A step of the application itself (include/hocket/coordinate.h): who asks for it; what and how much it is about.
  Member& member_of_step();
  void describe_step(event::StartIo& start);
  void describe(event::StartIo& start);
  // Of this process so far.
  static Duration io_time() { return hot.counters.io(); }
  static std::int64_t bytes_moved() { return hot.counters.bytes_read() + hot.counters.bytes_written(); }
  // Whether this process's warnings are the application's.
  static bool speaks() { return get().rank_ == 0 && !get().spawned_; }

  // Whether this process has been told to pause a request that it was granted, and has not answered yet. One load.
  static bool pause_wanted() noexcept { return hot.pause_wanted.load(std::memory_order_relaxed); }
  // Another number after each change of where any request is; in a process that asked.
  static std::uint64_t changes() noexcept { return get().reporter_.load()->member.changes(); }
  // The access of this thread has stopped after `round` (-1: between two accesses), in all processes, which have moved
  // `bytes` and hold no lock of the file system: says so, and waits, bounded, until it may go on. That time is
  // `waited`. In the process that asked; false, at once, where nothing of this thread is to pause.
  bool pause(std::int64_t bytes, std::int64_t round) noexcept;
  // `hook` is called when this process is told to pause, by whichever thread hears of it: to wake one that sleeps.
  static void on_pause(void (*hook)()) noexcept;
  // This thread has waited for a grant in the middle of an access: wait, not I/O.
  static void waited(Duration wait) noexcept;
  // The same outside of accesses.
  static void waited_outside(Duration wait) noexcept { hot.counters.wait_time.add(wait); }
  // What it has `waited` since this was called last.
  static Duration take_waited() noexcept { return std::exchange(waited_, Duration{}); }
  // What all processes have moved in this thread's access so far, where that is known. In the process that asked.
  void progress(std::int64_t bytes) noexcept;
  // The data of this thread's access begin to move, in rounds.
  static void begins_to_move() noexcept;
  // In the middle of that: whether it may use no more than a part of the target's bandwidth. Two loads while nothing
  // changes.
  bool has_share() noexcept;
  // Then: whether all processes, which have moved `bytes`, are so far ahead of that that they are to stop.
  bool ahead_of_share(std::int64_t bytes) noexcept;
  // They have stopped: waits until they are not, or have another share, or are to pause. That time is `waited`.
  void fall_back_to_share(std::int64_t bytes) noexcept;

  // A control point of a malleable program. Who does not `lead` it (rank 0 of those that compute) keeps quiet about
  // phases that it did not ask for: each process that joined later is rank 0 of a world of its own.
  void control_point(const Progress& progress, bool leads) noexcept;

  // Malleability: what a resize tells hocketd and hears from it. In any process; nothing happens, and nothing comes,
  // where the application is not watched.
  static bool tell(const event::Body& body);
  static std::optional<event::Body> next_command();
  static bool connected();
  static bool reconnect();
  static std::int64_t connections();
  // What server_map.hpp says.
  static std::shared_ptr<const event::ServerMap> server_map();
  // The same in any process: one that hocketd has not heard of says that it is there.
  static std::shared_ptr<const event::ServerMap> joined_server_map();
  static void map_adopted(std::int64_t epoch);
  static const std::string& hocketd_socket() { return get().settings_.socket; }
  // Which application this is of those that there are and were: its name, its job and its program. Where `hocket run`
  // gave no job, this process alone.
  static std::string application();
  // Time in MPI communication so far; 0 in a process that is not watched.
  static Duration communication() { return sums().comm; }

  // One line on stderr.
  static void warn(std::string_view text);

 private:
  struct Reporter {
    Reporter(const Settings& settings, event::Hello hello, std::function<void(std::string_view)> lost, Time start)
        : member(settings, std::move(hello), std::move(lost)),
          bursts(member, settings.phase_gap),
          phases(settings.phase_gap, start) {
      member.set_due([this](Time now) { return bursts.due(now); });
    }
    Member member;
    Bursts bursts;
    std::mutex mutex;  // of what follows
    PhaseTracker phases;
    IterationMeter iterations;
    bool speaks = true;               // for all, of every phase
    AsksFor asked = AsksFor::nobody;  // for an operation of the phase that is open: the widest
  };

  Process();
  // `speaks`: what a process that was none before says of I/O phases that it did not ask for is heard.
  Reporter& become_reporter(bool speaks = true);
  void moved(std::int64_t bytes);
  void lost(std::string_view why);
  void report_due(Time now);
  void report(Reporter& reporter, std::optional<event::IoPhase> over);
  static Sums sums();
  event::Hello hello() const;

  static inline constinit thread_local Duration waited_{};
  static inline constinit std::atomic<void (*)()> on_pause_ = nullptr;
  static inline constinit std::atomic<bool> in_step_ = false;

  std::string wrong_settings_;  // complaints, one a line, said once it is known which rank this is
  Settings settings_;           // reading it fills the complaints
  int rank_ = 0;
  int size_ = 1;
  bool spawned_ = false;
  Time started_{};
  std::atomic<bool> warned_ = false;
  FlopCounter flop_;
  Counter uncoordinated_;  // operations that should have been granted and were not
  std::mutex preparing_;   // of what follows
  Prepared prepared_;
  std::map<std::string, Pace> paces_;    // by target: of the accesses that this process asks for, for all
  std::atomic<std::int64_t> moved_ = 0;  // by all processes, of what was prepared, since the I/O phase began
  std::mutex becoming_;
  std::unique_ptr<Reporter> owned_;
  std::atomic<Reporter*> reporter_ = nullptr;  // in ranks that have a connection
};

}  // namespace hocket::runtime
