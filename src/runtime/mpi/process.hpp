// The state of libhocket in this process: its place in the application, its running sums, its I/O phases and its
// connection to hocketd.
//
// All functions are thread-safe. Those without noexcept may throw std::bad_alloc. Before MPI_Init, after MPI_Finalize
// and in the child of a fork(), `active()` is false and no other function may be called.
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

// The data that every wrapped call touches, kept together: after a large copy the cache lines are cold, and each one
// costs. The first cache line has all that an access needs.
struct alignas(64) Hot {
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  std::atomic<bool> active = false;                  // Process::active()
  std::atomic<bool> reports = false;                 // Process::reports()
  std::atomic<bool> watches_posix = false;           // Process::watches_posix()
  std::atomic<bool> threads = true;                  // several threads may call MPI concurrently
  std::atomic<bool> pause_wanted = false;            // Process::pause_wanted()
  std::atomic<bool> own_files = false;               // hocket does the accesses of some file itself (io/)
  std::atomic<std::int64_t> phase_deadline = never;  // ns: an I/O phase is over after this time
  Counters counters;

  [[gnu::always_inline]] void count(Activity& activity, std::int64_t moved, Duration took) {
    activity.add(moved, took, threads.load(std::memory_order_relaxed));
  }
};
static_assert(offsetof(Hot, counters.comm) == 64);
inline constinit Hot hot;

// The processes for which an operation requests a grant in this process. A larger value includes the smaller ones.
enum class AsksFor { nobody, itself, all_of_file };

class Process {
 public:
  // Returns the one object, which the first use creates. It is never destroyed: other libraries' destructors may still
  // call MPI.
  static Process& get();

  // Start watching after MPI_Init, and stop before MPI_Finalize. `finalising` is collective over the world: it sums up
  // what BYE reports.
  void initialised() noexcept;
  void finalising() noexcept;
  static bool active() { return hot.active.load(std::memory_order_relaxed); }

  // True if the application is reported to hocketd. Otherwise there are counters and nothing else.
  static bool reports() { return hot.reports.load(std::memory_order_relaxed); }
  // True if POSIX I/O of this process's threads is watched. False unless `active()`.
  static bool watches_posix() { return hot.watches_posix.load(std::memory_order_acquire); }
  // True if collective accesses are control points.
  bool coordinates() const { return settings_.coordinates(); }
  // True if hocket does collective accesses itself.
  bool serves_io() const { return settings_.io == Io::hocket; }
  int world_size() const { return size_; }
  Duration phase_gap() const { return settings_.phase_gap; }
  bool is_spawned() const { return spawned_; }
  bool is_member() const { return reporter_.load() != nullptr; }

  // Reports the I/O phase that is over by `now`. It is called with each time that is read anyway.
  static void at(Time now) noexcept {
    if (to_ns(now) > hot.phase_deadline.load(std::memory_order_relaxed)) [[unlikely]]
      get().report_due(now);
  }

  // Begins an I/O operation. In a process that reports phases (rank 0, or a rank with requests of its own), it becomes
  // part of one. Then it returns true, and the caller must call `operation_ends`.
  bool operation_begins(Time start, AsksFor asks_for) noexcept;
  void operation_ends(const Operation& operation) noexcept;
  // Returns the time that this process has spent until `now`. Precondition: at `now` the thread was in no MPI call, and
  // all earlier calls are counted.
  Spent spent(Time now) const noexcept;
  // Sets the time that all processes of a file have spent, in the open phase.
  void told(const SpentByAll& all) noexcept;
  // Counts time in which a file was opened, closed or the like. The time may lie outside of phases.
  void file_touched(Time end, Duration io) noexcept;
  // Ends the I/O phase, because the last file of this process is closed.
  void files_closed() noexcept;

  // Returns true if floating-point operations are to be counted now. That is so if the latest operation is the first of
  // its phase, and this process can read its counters.
  bool phase_wants_flop() noexcept;
  // Adds up the floating-point operations of all processes of `comm` for the phase that has begun; none means this
  // process alone. Collective over `comm`; it waits for the others. `root` stores the sum if these are all computing
  // processes and each could read its counters.
  void count_flop(MPI_Comm comm, bool root) noexcept;

  // Sends START_IO and waits for the grant, in rank 0 of the file's communicator. Returns none if the access is to run
  // uncoordinated.
  RequestId ask(event::StartIo start, Use use) noexcept;
  // Sends FINISH_IO. Each of the file's `processes` is assumed to have moved as many bytes as this one, unless
  // `progress` has reported more. `in_one_call`: the time of the access shows how fast the target is.
  void finish(const event::FinishIo& finish, const std::string& target, int processes, bool in_one_call) noexcept;
  // Ends an access within a burst at `now`.
  void end_in_burst(Bursts::Burst& burst, Time now, Duration io, std::int64_t bytes, bool in_one_call) noexcept;

  // Returns the bursts through which independent accesses send requests. Returns nullptr if they need none: another
  // request of this process or a step of the application covers them, or there is no coordination. An access whose
  // request fails is counted by `uncoordinated`.
  Bursts* bursts() noexcept;
  void uncoordinated() noexcept { uncoordinated_.add(1); }
  static void in_step(bool inside) noexcept { in_step_ = inside; }

  // Add and remove what the application announces of its I/O phases (prepared.hpp). It goes with each START_IO.
  void prepare(const Prepared::Pairs& pairs);
  bool complete();
  // Returns the connection of this process for a step of the application (include/hocket/coordinate.h).
  Member& member_of_step();
  // Fill in START_IO from what was announced: `describe_step` for a step, `describe` for an access.
  void describe_step(event::StartIo& start);
  void describe(event::StartIo& start);
  // These two return sums of this process so far.
  static Duration io_time() { return hot.counters.io(); }
  static std::int64_t bytes_moved() { return hot.counters.bytes_read() + hot.counters.bytes_written(); }
  // True if this process prints the application's warnings.
  static bool speaks() { return get().rank_ == 0 && !get().spawned_; }

  // True if a granted request of this process is to pause and has not answered yet. One load.
  static bool pause_wanted() noexcept { return hot.pause_wanted.load(std::memory_order_relaxed); }
  // Returns Member::changes(). For a process that has sent a request.
  static std::uint64_t changes() noexcept { return get().reporter_.load()->member.changes(); }
  // Answers PAUSE_IO for this thread's access and blocks, within the time limits, until it may continue. Precondition:
  // the access has stopped after `round` (-1: between two accesses) in all processes, which have moved `bytes` and hold
  // no lock of the file system. The time counts as `waited`. For the process that sent the request; returns false at
  // once if nothing of this thread is to pause.
  bool pause(std::int64_t bytes, std::int64_t round) noexcept;
  // Sets a function that wakes a sleeping thread when PAUSE_IO comes. The thread that receives PAUSE_IO calls it.
  static void on_pause(void (*hook)()) noexcept;
  // Counts time that this thread waited for a grant in the middle of an access, as waiting instead of I/O.
  static void waited(Duration wait) noexcept;
  // Counts such time outside of accesses.
  static void waited_outside(Duration wait) noexcept { hot.counters.wait_time.add(wait); }
  // Returns the time that this thread has `waited` since the last call.
  static Duration take_waited() noexcept { return std::exchange(waited_, Duration{}); }
  // Sets the bytes that all processes have moved in this thread's access so far. For the process that sent the request.
  void progress(std::int64_t bytes) noexcept;
  // Notes that the data of this thread's access begin to move, in rounds.
  static void begins_to_move() noexcept;
  // Returns true if this thread's access, which moves data in rounds, has less than all of the target's bandwidth. Two
  // loads while nothing changes.
  bool has_share() noexcept;
  // Returns true if all processes, having moved `bytes`, are so far ahead of that share that they should stop.
  bool ahead_of_share(std::int64_t bytes) noexcept;
  // Blocks, with all processes stopped, until they are no longer ahead, have another share, or are to pause. The time
  // counts as `waited`.
  void fall_back_to_share(std::int64_t bytes) noexcept;

  // Records a control point of a malleable program. `leads` is true in rank 0 of the computing processes. Another
  // process no longer reports phases without requests of its own: each one that joined later is rank 0 of its world.
  void control_point(const Progress& progress, bool leads) noexcept;

  // Send and receive the messages of a resize, in any process. They do nothing, and no command comes, if the
  // application is not reported.
  static bool tell(const event::Body& body);
  static std::optional<event::Body> next_command();
  static bool connected();
  static bool reconnect();
  static std::int64_t connections();
  // The functions of server_map.hpp.
  static std::shared_ptr<const event::ServerMap> server_map();
  // Returns the server map in any process: one without a connection joins first.
  static std::shared_ptr<const event::ServerMap> joined_server_map();
  static void map_adopted(std::int64_t epoch);
  static const std::string& hocketd_socket() { return get().settings_.socket; }
  // Returns a text that identifies the application among all present and past ones: its name, job and program. If
  // `hocket run` gave no job, the text identifies this process alone.
  static std::string application();
  // Returns the time in MPI communication so far; 0 in a process that is not watched.
  static Duration communication() { return sums().comm; }

  // Writes one line to stderr.
  static void warn(std::string_view text);

 private:
  // The connection to hocketd and the state that is reported through it.
  struct Reporter {
    Reporter(const Settings& settings, event::Hello hello, std::function<void(std::string_view)> lost, Time start)
        : member(settings, std::move(hello), std::move(lost)),
          bursts(member, settings.phase_gap),
          phases(settings.phase_gap, start) {
      member.set_due([this](Time now) { return bursts.due(now); });
    }
    Member member;
    Bursts bursts;
    std::mutex mutex;  // guards the members below
    PhaseTracker phases;
    IterationMeter iterations;
    bool speaks = true;               // reports every phase, for all processes
    AsksFor asked = AsksFor::nobody;  // the largest of the open phase's operations
  };

  Process();
  // Returns the reporter, and creates it at the first call. `speaks` is Reporter::speaks of a new one.
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

  std::string wrong_settings_;  // complaints, one a line, printed when the rank is known
  Settings settings_;           // after wrong_settings_, because reading it fills the complaints
  int rank_ = 0;
  int size_ = 1;
  bool spawned_ = false;
  Time started_{};
  std::atomic<bool> warned_ = false;
  FlopCounter flop_;
  Counter uncoordinated_;  // operations whose request failed
  std::mutex preparing_;   // guards prepared_ and paces_
  Prepared prepared_;
  std::map<std::string, Pace> paces_;    // by target: the accesses that this process requests for all ranks of a file
  std::atomic<std::int64_t> moved_ = 0;  // bytes moved by all processes since the I/O phase began or was prepared
  std::mutex becoming_;
  std::unique_ptr<Reporter> owned_;
  std::atomic<Reporter*> reporter_ = nullptr;  // nullptr in ranks without a connection
};

}  // namespace hocket::runtime
