// This process as a member of the control plane: it asks hocketd before collective accesses and reports I/O phases.
//
// Fail-open: every wait is bounded (ARCHITECTURE.md, "Waiting"), and nothing here makes the application fail. Where
// hocketd is not there or does not answer, the process goes on without it until its next I/O phase.
//
// A request is *granted* until it is finished, but that hocketd may tell it to pause (CALCioM, section III-A): who uses
// it stops, answers, and waits, bounded too, until it is granted again. The thread that renews leases hears of it while
// no other thread waits for anything.
//
// Thread-safe. Used in rank 0 of a world, and in rank 0 of a file's communicator.
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

// What a request is for, and so who may answer for it when it is to pause.
enum class Use {
  operation,  // a collective access: the thread that asked for it, in the middle of it
  started,    // one that goes on beside what the program does (nonblocking, split): nobody, it ends
  burst,      // independent accesses: who asked for it, between two of them
  session,    // what the application does between two calls of its own
};

// Where a request is.
enum class Standing {
  none,      // not asked for, or ended
  queued,    // waits for its first grant
  offered,   // was granted, and nobody has taken it up
  granted,   // has it
  to_pause,  // has it, and is to give it back
  paused,    // has given it back, and waits for it again
  expired,   // had it, and lost it as its lease ended
  alone,     // goes on without: hocketd is not there, or does not answer
};

class Member {
 public:
  // `lost` gets one line each time that hocketd was missing where it was needed.
  Member(const Settings& settings, event::Hello hello, std::function<void(std::string_view)> lost);

  // Says HELLO, without waiting for the answer.
  void join();

  // The first operation of an I/O phase comes: try again what failed in the phase before.
  void phase_begins() { may_retry_ = true; }

  // START_IO, and the wait for the grant. Gives the request's id, or none: go on uncoordinated.
  RequestId ask(event::StartIo start, Use use = Use::operation);

  // START_IO without a wait, for the one session; its id is none where hocketd is not there. Nobody renews its lease
  // before `take_up`: a grant that nobody comes for goes to others.
  RequestId inform(event::StartIo start);
  // Where the session is. Cheap: one load.
  Standing session() const { return session_.load(std::memory_order_relaxed); }
  // What was offered is used from now on.
  void take_up(RequestId request);
  // Waits until the request is granted, or goes on without.
  void await(RequestId request);

  // FINISH_IO of a request that `ask` or `inform` gave.
  void finish(event::FinishIo finish);

  // Whether a granted request of this process is to pause, and has not answered: kept in `wanted`, and `hook` is called
  // by the thread that hears of it. Before the first request.
  void tell_pauses(std::atomic<bool>& wanted, std::function<void()> hook);
  // PAUSED_IO for what is to pause and can: this thread's operation and the session; then the wait until they are
  // granted again, or go on without. Bursts answer for themselves, between two accesses. `bytes` of all processes and
  // `round` are the operations'. False: there was none.
  bool pause(std::int64_t bytes, std::int64_t round);
  // PAUSED_IO for this request, if it is to pause, without a wait.
  void answer_pause(RequestId request);
  Standing standing(RequestId request);
  // How much of the target's bandwidth a request may use while others have the target too (1 where it is not granted),
  // and whether it was granted all of it, all the time.
  struct Share {
    double part = 1;
    bool alone = false;
  };
  Share share(RequestId request);
  // Another number after each change of where any request is. Cheap: one load.
  std::uint64_t changes() const { return changes_.load(std::memory_order_acquire); }
  // Whether there is a request for an operation or the session. Cheap: one load.
  bool engaged() const { return engaged_.load(std::memory_order_relaxed); }
  // What all processes have moved in this thread's operation so far; for RENEW_IO.
  void progress(std::int64_t bytes);
  std::int64_t progress_of(RequestId request);
  // Called by the thread that renews leases: does what is due at a time, and says when there is more.
  void set_due(std::function<Time(Time)> due);
  // `due` is to be called soon: there may be something earlier.
  void look_at_due() { leases_.wake(); }

  // Where nothing is asked, no other moment finds out that hocketd has gone, or come: tries to join again.
  void report(const event::IoPhase& phase);
  // Nobody waits for it: left out where hocketd does not take it in at once.
  void report_iterations(const event::Iterations& iterations);

  // Malleability. An event to hocketd; false: it is not there.
  bool tell(const event::Body& body) { return send(body); }
  // The next RECONFIGURE or PROCESSES_READY that has come; nothing where none has, or another thread waits for a grant.
  std::optional<event::Body> next_command();
  // The server map that came last, of epoch 0 where none has; never null, another pointer for each that came. Looks
  // whether one has come, unless another thread waits for a grant.
  std::shared_ptr<const event::ServerMap> server_map();
  bool connected() const { return fd_ >= 0; }
  // How often it has connected: what hocketd was told before, a new one does not know.
  std::int64_t connections() const { return connections_; }
  // HELLO to a hocketd that may be there again.
  bool reconnect();

  // BYE, the last word: the lease thread has ended and the connection is closed when it returns. Other threads that
  // wait for a grant go on without.
  void leave(const event::Bye& bye);

  // In the child after fork(): the connection is the parent's. Async-signal-safe.
  void abandon() noexcept;

 private:
  enum class Outcome { granted, alone, closed };

  struct Request {
    RequestId id;
    Use use = Use::operation;
    std::thread::id owner;
    Standing standing = Standing::queued;
    Time since{};                 // it has waited
    Time heard{};                 // that it waits
    Share share{1, true};         // of the target's bandwidth
    std::int64_t connection = 0;  // that it was sent on
    std::int64_t bytes = 0;       // moved by all processes since it was asked for
    bool used = false;            // was taken up
    bool awaited = false;         // a thread waits for it, and takes it up
    bool waits() const { return standing == Standing::queued || standing == Standing::paused; }
    // It has been granted since nobody had it. Told to pause already, perhaps: who gets to that stops then.
    bool has_come() const { return standing == Standing::offered || standing == Standing::to_pause; }
  };

  // `asking_`, and the keeper is told where it was kept from listening meanwhile.
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

  // The session that waits, until when, and whether only an answer is awaited until then.
  struct Waiting {
    RequestId request;
    Time until = Time::max();
    bool silent = false;
  };
  Waiting waiting_session();

  // The keeper's duties.
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
  // `requests_mutex_` is held.
  Request* find(RequestId request);
  void show();

  const Settings settings_;
  const event::Hello hello_;
  const std::function<void(std::string_view)> lost_;

  std::mutex asking_;             // not while a thread sleeps; taken before `connection_`
  std::condition_variable came_;  // something was taken in, or nobody listens any more
  bool listened_to_ = false;      // under asking_: a thread sleeps until something comes
  int waiting_ = 0;               // under asking_: threads that sleep
  std::mutex connection_;
  std::optional<bus::Client> client_;  // under connection_
  std::atomic<bool> leaving_ = false;
  std::atomic<bool> may_retry_ = true;
  bool alone_ = false;   // under asking_: not asking until the next phase
  bool silent_ = false;  // under asking_: connected, but nothing is heard
  std::uint64_t last_request_ = 0;
  std::deque<event::Body> commands_;                      // under asking_: that have come, and nobody has taken
  std::atomic<Duration> lease_{std::chrono::seconds{5}};  // until WELCOME says
  std::mutex map_mutex_;
  std::shared_ptr<const event::ServerMap> map_ = std::make_shared<event::ServerMap>();  // under map_mutex_
  std::atomic<int> fd_ = -1;
  std::atomic<std::int64_t> connections_ = 0;
  std::atomic<bool> missed_ = false;  // the keeper could not listen, as another thread had `asking_`

  std::mutex requests_mutex_;  // of what follows; no other is taken under it
  std::vector<Request> requests_;
  std::atomic<bool>* wanted_ = nullptr;
  std::function<void()> hook_ = [] {};
  std::function<Time(Time)> due_ = [](Time) { return Time::max(); };
  std::atomic<Standing> session_ = Standing::none;
  std::atomic<bool> engaged_ = false;
  std::atomic<std::uint64_t> changes_ = 0;
  LeaseKeeper leases_;
};

}  // namespace hocket::runtime
