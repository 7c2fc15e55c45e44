// The connection of this process to hocketd: a member requests grants before accesses and reports I/O phases.
//
// Fail-open: every wait is bounded (docs/design/sessions.md), and nothing here makes the application fail. If
// hocketd is missing or does not answer, the process continues uncoordinated until its next I/O phase.
//
// A request stays *granted* until it is finished, unless hocketd preempts it (CALCioM, section III-A). Then the access
// stops, answers, and waits, again bounded, until the request is granted again. The thread that renews leases receives
// PAUSE_IO while no other thread waits for a message.
//
// Thread-safe. Used in rank 0 of a world or of a file's communicator, and in ranks that access files independently.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "bus/client.hpp"
#include "event/event.hpp"
#include "event/server_map.hpp"
#include "runtime/lease.hpp"
#include "runtime/settings.hpp"

namespace hocket::runtime {

// The purpose of a request. It decides which thread answers PAUSE_IO, and when.
enum class Use {
  operation,  // a blocking collective access: its own thread answers, in the middle of the access
  started,    // an access that runs beside the program (nonblocking, split): no thread answers, the access ends
  burst,      // independent accesses: the requesting thread, or the keeper's, answers between two accesses
  session,    // a step of the application (hocket/coordinate.h): it answers in a call of its own
};

// The state of a request, as this process knows it.
enum class Standing {
  none,      // not requested, or finished
  queued,    // waiting for its first grant
  offered,   // granted, but not taken up yet
  granted,   // granted and in use
  to_pause,  // granted, and to be given back: PAUSE_IO has come
  paused,    // given back, waiting for the next grant
  expired,   // lost, because its lease has expired
  alone,     // continues uncoordinated: hocketd is missing or does not answer
};

class Member {
 public:
  // `lost` gets one line each time that hocketd was missing when it was needed.
  Member(const Settings& settings, event::Hello hello, std::function<void(std::string_view)> lost);

  // Connects and sends HELLO, without waiting for WELCOME.
  void join();

  // Allows one new attempt to reach hocketd, because an I/O phase begins.
  void phase_begins() { may_retry_ = true; }

  // Sends START_IO and waits for the grant. Returns the request's id, or none if the access is to run uncoordinated.
  RequestId ask(event::StartIo start, Use use = Use::operation);

  // Sends START_IO for the session (at most one) without waiting. Returns none if hocketd is missing. The
  // lease is not renewed before `take_up`, so a grant that the application does not take up goes to others.
  RequestId inform(event::StartIo start);
  // Returns the session's standing. Cheap: one load.
  Standing session() const { return session_.load(std::memory_order_relaxed); }
  // Marks an offered grant as in use, and has its lease renewed from now on.
  void take_up(RequestId request);
  // Waits until the request is granted or continues uncoordinated. It answers a PAUSE_IO of the request first.
  void await(RequestId request);

  // Sends FINISH_IO for a request that `ask` or `inform` returned.
  void finish(event::FinishIo finish);

  // Sets where PAUSE_IO is shown. `wanted` is true while a granted request of this process is to pause and has not
  // answered. The thread that receives PAUSE_IO calls `hook`. Call this before the first request.
  void tell_pauses(std::atomic<bool>& wanted, std::function<void()> hook);
  // Sends PAUSED_IO for this thread's operation and for the session, if they are to pause. Then it waits until they are
  // granted again or continue uncoordinated. Bursts answer for themselves, between two accesses. `bytes` (moved by all
  // processes) and `round` describe the operation. Returns false if nothing was to pause.
  bool pause(std::int64_t bytes, std::int64_t round);
  // Sends PAUSED_IO for this request, if it is to pause, without waiting.
  void answer_pause(RequestId request);
  Standing standing(RequestId request);
  // The bandwidth share of a request.
  struct Share {
    double part = 1;     // fraction of the target's bandwidth while others have the target too; 1 if not granted
    bool alone = false;  // the request has had all of the bandwidth since it was sent
  };
  Share share(RequestId request);
  // Returns a number that differs after each change of any request's standing. Cheap: one load.
  std::uint64_t changes() const { return changes_.load(std::memory_order_acquire); }
  // True if there is a request that is not a burst's. Cheap: one load.
  bool engaged() const { return engaged_.load(std::memory_order_relaxed); }
  // Sets the bytes that all processes have moved in this thread's operation so far. RENEW_IO reports them.
  void progress(std::int64_t bytes);
  std::int64_t progress_of(RequestId request);
  // Sets the timed duty of the lease thread. It does what is due, and returns the time of its next call.
  void set_due(std::function<Time(Time)> due);
  // Has the timed duty called soon, because something may be due earlier than it said.
  void look_at_due() { leases_.wake(); }

  // Sends IO_PHASE. Without coordination, it also reconnects if the connection has ended, because no other call would
  // notice.
  void report(const event::IoPhase& phase);
  // Sends ITERATIONS, unless hocketd's socket is full: the report is not worth a wait.
  void report_iterations(const event::Iterations& iterations);

  // Sends an event of malleability. Returns false if hocketd is missing.
  bool tell(const event::Body& body) { return send(body); }
  // Returns the next RECONFIGURE, WITHDRAW_RESIZE or PROCESSES_READY that has come. Returns nothing if none has, or if
  // another thread uses the connection.
  std::optional<event::Body> next_command();
  // Returns the latest server map, with epoch 0 before the first. Never null; each map that comes is a new object. The
  // call takes in messages that have come, unless another thread uses the connection.
  std::shared_ptr<const event::ServerMap> server_map();
  bool connected() const { return fd_ >= 0; }
  // Returns how often this member has connected. A new hocketd does not know what its predecessor was sent.
  std::int64_t connections() const { return connections_; }
  // Connects anew and sends HELLO. Returns false if hocketd is missing or another thread uses the connection.
  bool reconnect();

  // Sends BYE. When it returns, the lease thread has ended and the connection is closed. Other threads that wait for a
  // grant continue uncoordinated; it waits at most a second for them.
  void leave(const event::Bye& bye);

  // Closes the descriptor in the child of a fork(): the connection belongs to the parent. Async-signal-safe.
  void abandon() noexcept;

 private:
  // The result of a wait for a grant. `closed`: the connection on which the request was sent has ended.
  enum class Outcome { granted, alone, closed };

  // A request from START_IO to FINISH_IO.
  struct Request {
    RequestId id;
    Use use = Use::operation;
    std::thread::id owner;  // the thread that sent START_IO
    Standing standing = Standing::queued;
    Time since{};                 // begin of the current wait
    Time heard{};                 // last message that it is still queued
    Share share{1, true};         // bandwidth share of the target
    std::int64_t connection = 0;  // value of connections_ when it was sent
    std::int64_t bytes = 0;       // bytes moved by all processes since START_IO
    bool used = false;            // has been taken up
    bool awaited = false;         // a thread waits for it, and will take it up
    bool waits() const { return standing == Standing::queued || standing == Standing::paused; }
    // True if a grant has come that may not have been taken up. PAUSE_IO may have followed already: the access begins
    // and then stops at its next opportunity.
    bool has_come() const { return standing == Standing::offered || standing == Standing::to_pause; }
  };

  // Holds `asking_`. When it ends, it wakes the keeper if the keeper could not listen meanwhile.
  class Asking {
   public:
    explicit Asking(Member& member) : member_(member), lock_(member.asking_) {}
    Asking(Member& member, std::try_to_lock_t) : member_(member), lock_(member.asking_, std::try_to_lock) {}
    ~Asking();
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;
    explicit operator bool() const { return lock_.owns_lock(); }
    std::unique_lock<std::mutex>& lock() { return lock_; }

   private:
    Member& member_;
    std::unique_lock<std::mutex> lock_;
  };

  bool connect();
  bool ready();
  bool send(const event::Body& body);
  bool ask_for(event::StartIo& start, Use use);
  Outcome wait_for_grant(Asking& asking, RequestId request, RequestId& aside);
  void wait_and_take_up(Asking& asking, RequestId request, RequestId& aside);
  void sleep(Asking& asking, Duration longest);
  std::optional<event::Event> next_event();
  void take(const event::Body& body);
  void take_what_came(bool anyway = false);
  void give_up(std::string_view why);
  void give_up_waiting(RequestId request, bool silent);
  void has_gone(RequestId request);
  bool connect_anew(RequestId request);
  bool is_of_this_connection(RequestId request);
  void disconnect();

  // The session, if it waits. No thread waits for a session, so the keeper enforces its time limits.
  struct Waiting {
    RequestId request;         // none: the session does not wait
    Time until = Time::max();  // the earlier of the two time limits
    bool silent = false;       // that limit is HOCKET_ANSWER_S
  };
  Waiting waiting_session();

  // The callbacks of LeaseKeeper::Duties.
  int listen();
  Time due(Time now);
  void renew(RequestId request);

  void hear(const event::GrantIo& grant);
  void hear(const event::QueuedIo& queued);
  void hear(const event::PauseIo& pause);
  void hear(const event::LeaseExpired& expired);
  void hear(const event::Refused& refused);
  void connection_ended();
  template <class Which>
  std::vector<RequestId> answer(Which which, std::int64_t bytes, std::int64_t round);
  RequestId step_aside();
  void rejoin(Asking& asking, RequestId session);
  void resume();
  void go_on_alone(RequestId request);
  void begin(RequestId request, Use use);
  void forget(RequestId request);
  // These two need `requests_mutex_` held.
  Request* find(RequestId request);
  void show();

  const Settings settings_;
  const event::Hello hello_;
  const std::function<void(std::string_view)> lost_;

  std::mutex asking_;             // guards asking and receiving; free while a thread sleeps; taken before connection_
  std::condition_variable came_;  // messages were handled, or no thread listens any more
  bool listened_to_ = false;      // under asking_: a thread sleeps on the socket
  int waiting_ = 0;               // under asking_: threads that sleep
  std::mutex connection_;
  std::optional<bus::Client> client_;  // under connection_
  std::atomic<bool> leaving_ = false;
  std::atomic<bool> may_retry_ = true;
  bool alone_ = false;   // under asking_: uncoordinated until the next phase
  bool silent_ = false;  // under asking_: connected, but hocketd did not answer in time
  std::uint64_t last_request_ = 0;
  std::deque<event::Body> commands_;                      // under asking_: commands that `next_command` will return
  std::atomic<Duration> lease_{std::chrono::seconds{5}};  // WELCOME brings hocketd's
  std::mutex map_mutex_;
  std::shared_ptr<const event::ServerMap> map_ = std::make_shared<event::ServerMap>();  // under map_mutex_
  std::atomic<int> fd_ = -1;
  std::atomic<std::int64_t> connections_ = 0;
  std::atomic<bool> missed_ = false;  // the keeper could not listen, because another thread had `asking_`

  std::mutex requests_mutex_;  // guards the members up to due_; no other mutex is taken while it is held
  std::vector<Request> requests_;
  std::atomic<bool>* wanted_ = nullptr;
  std::function<void()> hook_ = [] {};
  std::function<Time(Time)> due_ = [](Time) { return Time::max(); };
  // The next three are copies that other threads read without the lock (`show`).
  std::atomic<Standing> session_ = Standing::none;
  std::atomic<bool> engaged_ = false;
  std::atomic<std::uint64_t> changes_ = 0;
  LeaseKeeper leases_;
};

}  // namespace hocket::runtime
