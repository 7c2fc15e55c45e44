// The connection of this process to hocketd: a member requests grants before accesses and reports I/O phases.
//
// Fail-open: every wait is bounded (docs/design/sessions.md), and nothing here makes the application fail. If
// hocketd is missing or does not answer, the process continues uncoordinated until its next I/O phase.
//
// A request stays *granted* until it is finished, unless hocketd preempts it (CALCioM, section III-A). Then the access
// stops, answers, and waits, again bounded, until the request is granted again. The thread that renews leases receives
// PAUSE_IO while no other thread waits for a message. request_standings.hpp has the states of a request as a table.
//
// While the application is alone on a target, it has a *delegation*: requests there are granted at once, without a
// message or a system call, and what they report goes in batches (session_delegations.cpp, docs/design/delegation.md).
//
// Thread-safe. Used in rank 0 of a world or of a file's communicator, and in ranks that access files independently.
#pragma once

#include <sys/types.h>

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
#include "session/held_targets.hpp"
#include "session/lease.hpp"
#include "session/request_standings.hpp"
#include "session/settings.hpp"

namespace hocket::runtime {

// The purpose of a request. It decides which thread answers PAUSE_IO, and when.
enum class RequestPurpose {
  operation,  // a blocking collective access: its own thread answers, in the middle of the access
  started,    // an access that runs beside the program (nonblocking, split): no thread answers, the access ends
  burst,      // independent accesses: the requesting thread, or the keeper's, answers between two accesses
  step,       // a step of the application (hocket/io.h): it answers in a call of its own
};

class Session {
 public:
  // `lost` gets one line each time that hocketd was missing when it was needed.
  Session(const MemberSettings& settings, event::Hello hello, std::function<void(std::string_view)> lost);

  // Connects and sends HELLO, without waiting for WELCOME.
  void join();

  // Allows one new attempt to reach hocketd, because an I/O phase begins.
  void phase_begins() { may_retry_ = true; }

  // Sends START_IO and waits for the grant. Returns the request's id, or none if the access is to run uncoordinated.
  RequestId ask(event::StartIo start, RequestPurpose use = RequestPurpose::operation);

  // Sends START_IO for the step (at most one) without waiting. Returns none if hocketd is missing. The
  // lease is not renewed before `take_up`, so a grant that the application does not take up goes to others.
  RequestId inform(event::StartIo start);
  // Returns the step's standing. Cheap: one load.
  Standing step_standing() const { return step_standing_.load(std::memory_order_relaxed); }
  // Marks an offered grant as in use, and has its lease renewed from now on.
  void take_up(RequestId request);
  // Waits until the request is granted or continues uncoordinated. It answers a PAUSE_IO of the request first.
  void await(RequestId request);

  // Asks how long a request for the target would wait. Returns nothing if hocketd is missing or does not answer within
  // MemberSettings::answer. The caller gives `target` and `bytes`.
  std::optional<event::ExpectedWait> expected_wait(event::AskWait asked);

  // Learns which targets the operator holds, for an application that was told not to coordinate: it connects, and waits
  // for WELCOME no longer than MemberSettings::answer. Later calls take in what has come.
  void learn_held();
  // True if `learn_held` need not be called now: it was lately, or hocketd is missing. Async-signal-safe.
  bool knows_held(Time now) const { return is_alone() || to_ns(now) < held_until_.load(std::memory_order_relaxed); }
  const HeldTargets& held() const { return held_; }

  // Sends FINISH_IO for a request that `ask` or `inform` returned.
  void finish(event::FinishIo finish);

  // Sets where PAUSE_IO is shown. `wanted` is true while a granted request of this process is to pause and has not
  // answered. The thread that receives PAUSE_IO calls `hook`. Call this before the first request.
  void tell_pauses(std::atomic<bool>& wanted, std::function<void()> hook);
  // Sends PAUSED_IO for this thread's operation and for the step, if they are to pause. Then it waits until they are
  // granted again or continue uncoordinated. Bursts answer for themselves, between two accesses. `bytes` (moved by all
  // processes) and `round` describe the operation. Returns false if nothing was to pause.
  bool pause(std::int64_t bytes, std::int64_t round);
  // Sends PAUSED_IO for this request, if it is to pause, without waiting.
  void answer_pause(RequestId request);
  Standing standing(RequestId request);
  // Returns when PAUSE_IO of a request came that is still to pause.
  std::optional<Time> asked_to_pause(RequestId request);
  // The bandwidth share of a request.
  struct RequestShare {
    double part = 1;     // fraction of the target's bandwidth while others have the target too; 1 if not granted
    bool alone = false;  // the request has had all of the bandwidth since it was sent
  };
  RequestShare share(RequestId request);
  // Returns the same, or nothing if it takes too long. It allocates nothing (bounded_lock.hpp).
  std::optional<RequestShare> share_if_free(RequestId request);
  // Returns a number that differs after each change of any request's standing. Cheap: one load.
  std::uint64_t changes() const { return changes_.load(std::memory_order_acquire); }
  // True if `ask` would fail at once, until the next I/O phase. Cheap: two loads.
  bool is_alone() const { return alone_ && !may_retry_; }
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
  // Sends INFORM_IO, in a batch while a target is delegated to this process.
  void inform_of(const event::InformIo& inform);
  // Returns the next RECONFIGURE, WITHDRAW_RESIZE or PROCESSES_READY that has come. Returns nothing if none has, or if
  // another thread uses the connection.
  std::optional<event::Body> next_command();
  // Returns the latest server map, with epoch 0 before the first. Never null; each map that comes is a new object. The
  // call takes in messages that have come, unless another thread uses the connection.
  std::shared_ptr<const event::ServerMap> server_map();
  bool connected() const { return fd_ >= 0; }
  // Returns how often this session has connected. A new hocketd does not know what its predecessor was sent.
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
  enum class GrantOutcome { granted, alone, closed };

  // A request from START_IO to FINISH_IO.
  struct SessionRequest {
    RequestId id;
    RequestId delegation;                    // under which it was begun; none: with a GRANT_IO of its own
    bool delegated = false;                  // the delegation was not recalled, so that it needs no lease
    std::string target, file_system, parts;  // as in START_IO
    RequestPurpose use = RequestPurpose::operation;
    std::thread::id owner;               // the thread that sent START_IO
    Standing standing = Standing::none;  // assigned by `change` alone
    Time since{};                        // begin of the current wait
    Time heard{};                        // last message that it is still queued
    Time pause_came{};                   // arrival of the last PAUSE_IO
    RequestShare share{1, true};         // bandwidth share of the target
    std::int64_t connection = 0;         // value of connections_ when it was sent
    std::int64_t bytes = 0;              // bytes moved by all processes since START_IO
    bool used = false;                   // has been taken up
    bool awaited = false;                // a thread waits for it, and will take it up
    bool waits() const { return is_waiting(standing); }
    // True if a grant has come that may not have been taken up. PAUSE_IO may have followed already: the access begins
    // and then stops at its next opportunity.
    bool has_come() const { return standing_step(standing, StandingInput::take_up).does(StandingAction::hold); }
  };

  // Holds `asking_`. When it ends, it wakes the keeper if the keeper could not listen meanwhile.
  class AskingLock {
   public:
    explicit AskingLock(Session& session) : session_(session), lock_(session.asking_) {}
    AskingLock(Session& session, std::try_to_lock_t) : session_(session), lock_(session.asking_, std::try_to_lock) {}
    ~AskingLock();
    AskingLock(const AskingLock&) = delete;
    AskingLock& operator=(const AskingLock&) = delete;
    explicit operator bool() const { return lock_.owns_lock(); }
    std::unique_lock<std::mutex>& lock() { return lock_; }

   private:
    Session& session_;
    std::unique_lock<std::mutex> lock_;
  };

  bool connect();
  // True if the program has closed the connection's descriptor.
  bool was_taken_away();
  bool ready();
  bool send(const event::Body& body);
  bool ask_for(event::StartIo& start, RequestPurpose use);

  // session_delegations.cpp. A delegation of this process: requests with the same three texts are granted at once.
  struct Delegation {
    RequestId id;
    std::string target, file_system, parts;
  };
  // A message of a batch.
  struct UnsentEvent {
    event::Body body;
    Time since{};  // time of the event; 0: it is sent without an age
  };
  // Begins a request under a delegation and returns its id; none if there is no such delegation.
  RequestId begin_delegated(event::StartIo& start, RequestPurpose use);
  // Removes a request under a delegation, and adds its FINISH_IO to the batch. Returns false if it is no such request.
  bool finish_delegated(const event::FinishIo& finish);
  // Adds the event to the batch, if there is a delegation. Returns false if not.
  bool add_to_batch(const event::Body& body);
  // Sends what waits in the batch. Returns false if the connection has ended.
  bool send_batch();
  std::vector<event::Body> take_batch();
  // Takes a delegation, which came with the grant of the request, the first one under it. `requests_mutex_` is held.
  void take_delegation(SessionRequest& request);
  // Returns a delegation to hocketd. What was begun under it is granted as any other request from then on.
  void return_delegation(RequestId id);
  // Ends a delegation whose lease has expired, and the grants of what was begun under it.
  void delegation_expired(RequestId id);
  // True if the request was begun under a delegation that was not recalled.
  bool has_no_lease(RequestId request);
  // Removes a delegation, and returns the number of those removed. `requests_mutex_` is held.
  std::size_t erase_delegation(RequestId id);
  // Forgets all delegations and the batch, because the connection has ended.
  void forget_delegations();
  GrantOutcome wait_for_grant(AskingLock& asking, RequestId request, RequestId& aside);
  void wait_and_take_up(AskingLock& asking, RequestId request, RequestId& aside);
  void sleep(AskingLock& asking, Duration longest);
  std::optional<event::Event> next_event();
  void take(const event::Body& body);
  void hear(const event::Welcome& welcome);
  void take_what_came(bool anyway = false);
  void give_up(std::string_view why);
  void give_up_waiting(RequestId request, StandingInput why);
  void has_gone(RequestId request);
  bool connect_anew(RequestId request);
  bool is_of_this_connection(RequestId request);
  void disconnect();

  // The step, if it waits. No thread waits for a step, so the keeper enforces its time limits.
  struct StepWait {
    RequestId request;         // none: the step does not wait
    Time until = Time::max();  // the earlier of the two time limits
    StandingInput limit = StandingInput::long_wait;
  };
  StepWait waiting_step();

  // The callbacks of LeaseKeeper::Duties.
  int listen();
  Time due(Time now);
  Time due_but_batch(Time now);
  void renew(RequestId request);

  void hear(const event::GrantIo& grant);
  void hear(const event::QueuedIo& queued);
  void hear(const event::PauseIo& pause);
  void hear(const event::LeaseExpired& expired);
  void hear(const event::Refused& refused);
  void hear(const event::RecallIo& recall) { return_delegation(recall.request); }
  void connection_ended();
  template <class Which>
  std::vector<RequestId> answer(Which which, std::int64_t bytes, std::int64_t round);
  RequestId step_aside();
  void rejoin(AskingLock& asking, RequestId io_step);
  void resume();

  // These three feed an input into the state machine of a request (request_standings.hpp). `begin` adds the request,
  // and `remove` removes it if the input ends it. Both leave the actions to the caller; `apply` carries them out.
  StandingStep begin(event::StartIo& start, RequestPurpose use);
  StandingStep remove(RequestId request, StandingInput input);
  void apply(RequestId request, StandingInput input);
  // Sends the FINISH_IO of an input that gives the request up. Call it before `apply`, because a thread that sees the
  // new standing may send its own FINISH_IO.
  void withdraw(RequestId request, StandingInput input);
  // Holds or releases the lease, as the step says. No lock may be held.
  void carry_out(RequestId request, const StandingStep& step);
  // These five need `requests_mutex_` held. `change` is the only function that assigns a standing.
  static StandingStep change(SessionRequest& request, StandingInput input);
  // Adds a request with the next number, because hocketd expects rising ones, and sets the number in `start`.
  SessionRequest& add(event::StartIo& start, RequestPurpose use);
  void forget(RequestId request);
  SessionRequest* find(RequestId request);
  void show();

  const MemberSettings settings_;
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
  std::atomic<bool> alone_ = false;                  // changed under asking_: uncoordinated until the next phase
  bool silent_ = false;                              // under asking_: connected, but hocketd did not answer in time
  std::int64_t last_question_ = 0;                   // under asking_: number of the last ASK_WAIT
  std::vector<event::ExpectedWait> expected_waits_;  // under asking_: answers that no thread has taken yet
  std::deque<event::Body> commands_;                 // under asking_: commands that `next_command` will return
  std::atomic<Duration> lease_{std::chrono::seconds{5}};  // WELCOME brings hocketd's
  HeldTargets held_;                                      // set under asking_
  std::atomic<bool> welcomed_ = false;                    // on this connection; changed under asking_
  std::atomic<std::int64_t> held_until_ = 0;              // ns: until then `held_` is new enough
  std::mutex map_mutex_;
  std::shared_ptr<const event::ServerMap> map_ = std::make_shared<event::ServerMap>();  // under map_mutex_
  std::atomic<int> fd_ = -1;
  std::atomic<ino_t> inode_ = 0;  // of the socket fd_
  std::atomic<std::int64_t> connections_ = 0;
  std::atomic<bool> missed_ = false;  // the keeper could not listen, because another thread had `asking_`

  std::mutex requests_mutex_;  // guards the members up to due_; no other mutex is taken while it is held
  std::vector<SessionRequest> requests_;
  std::uint64_t last_request_ = 0;
  std::vector<Delegation> delegations_;
  // Messages that are sent later, in this order. Each START_IO passes through it, so that their numbers rise.
  std::vector<UnsentEvent> batch_;
  std::atomic<bool>* wanted_ = nullptr;
  std::function<void()> hook_ = [] {};
  std::function<Time(Time)> due_ = [](Time) { return Time::max(); };
  // The next four are copies that other threads read without the lock (`show`).
  std::atomic<Standing> step_standing_ = Standing::none;
  std::atomic<bool> engaged_ = false;
  std::atomic<bool> delegated_ = false;  // there is a delegation
  std::atomic<std::uint64_t> changes_ = 0;
  LeaseKeeper leases_;
};

}  // namespace hocket::runtime
