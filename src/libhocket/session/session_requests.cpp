// The part of Session that keeps the standing of each request: hocketd's messages, pauses, and what other threads see.
#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "session/bounded_lock.hpp"
#include "session/session.hpp"

namespace hocket::runtime {

// ---- pauses -------------------------------------------------------------------------------------------------------

void Session::tell_pauses(std::atomic<bool>& wanted, std::function<void()> hook) {
  const std::lock_guard lock(requests_mutex_);
  wanted_ = &wanted;
  hook_ = std::move(hook);
}

void Session::set_due(std::function<Time(Time)> due) {
  const std::lock_guard lock(requests_mutex_);
  due_ = std::move(due);
}

// Other threads answer for their own operations. This thread may answer for the step, because the application, which
// has called libhocket, is not in the middle of another part of it.
bool Session::pause(std::int64_t bytes, std::int64_t round) {
  const auto self = std::this_thread::get_id();
  const auto stops = [&](const SessionRequest& request) {
    return request.use == RequestPurpose::step || (request.use == RequestPurpose::operation && request.owner == self);
  };
  const std::vector<RequestId> paused = answer(stops, bytes, round);
  if (paused.empty()) return false;
  AskingLock asking(*this);
  RequestId io_step;
  for (const RequestId request : paused) wait_and_take_up(asking, request, io_step);
  rejoin(asking, io_step);
  return true;
}

void Session::answer_pause(RequestId request) {
  answer([&](const SessionRequest& other) { return other.id == request; }, 0, -1);
}

// Pauses the step, if it is to pause: a thread that waits for a request does no other I/O of it. Returns the
// step's id, or none.
RequestId Session::step_aside() {
  const auto paused = answer([](const SessionRequest& request) { return request.use == RequestPurpose::step; }, 0, -1);
  return paused.empty() ? RequestId{} : paused.front();
}

// Sends PAUSED_IO for those of the requests in `which` that are to pause, and returns their ids.
template <class Which>
std::vector<RequestId> Session::answer(Which which, std::int64_t bytes, std::int64_t round) {
  std::vector<event::PausedIo> answers;
  StandingStep step;  // the same for all of them
  {
    const std::lock_guard lock(requests_mutex_);
    for (SessionRequest& request : requests_) {
      if (!which(request)) continue;
      const StandingStep stopped = change(request, StandingInput::stop);
      if (!stopped.does(StandingAction::send_paused)) continue;
      step = stopped;
      request.delegated = false;  // it will be granted as any other, with a lease
      const bool operation = request.use == RequestPurpose::operation;
      answers.push_back({request.id, operation ? (bytes > 0 ? bytes : request.bytes) : request.bytes + bytes,
                         operation ? round : -1});
    }
    if (!answers.empty()) show();
  }
  std::vector<RequestId> answered;
  for (const event::PausedIo& answer : answers) {
    carry_out(answer.request, step);
    send(answer);
    answered.push_back(answer.request);
  }
  return answered;
}

void Session::take_up(RequestId request) { apply(request, StandingInput::take_up); }

// Takes up the grants of requests that were in use before they paused.
void Session::resume() {
  std::vector<RequestId> come;
  {
    const std::lock_guard lock(requests_mutex_);
    for (const SessionRequest& request : requests_)
      if (request.has_come() && request.used) come.push_back(request.id);
  }
  for (const RequestId request : come) take_up(request);
}

void Session::await(RequestId request) {
  answer_pause(request);
  AskingLock asking(*this);
  RequestId io_step;
  wait_and_take_up(asking, request, io_step);
  rejoin(asking, io_step);
}

// Waits for the grant and takes it up. If the connection has ended, the request continues uncoordinated.
void Session::wait_and_take_up(AskingLock& asking, RequestId request, RequestId& aside) {
  if (wait_for_grant(asking, request, aside) == GrantOutcome::closed) has_gone(request);
  take_up(request);
}

// Waits for the step that `step_aside` has paused (none: there is none), now that this thread's own wait is over.
void Session::rejoin(AskingLock& asking, RequestId io_step) {
  if (RequestId again; io_step) wait_and_take_up(asking, io_step, again);
  resume();
}

Standing Session::standing(RequestId request) {
  const std::lock_guard lock(requests_mutex_);
  const SessionRequest* found = find(request);
  return found ? found->standing : Standing::none;
}

std::optional<Time> Session::asked_to_pause(RequestId request) {
  const std::lock_guard lock(requests_mutex_);
  const SessionRequest* found = find(request);
  return found && found->standing == Standing::to_pause ? std::optional(found->pause_came) : std::nullopt;
}

void Session::progress(std::int64_t bytes) {
  const std::lock_guard lock(requests_mutex_);
  for (SessionRequest& request : requests_)
    if (request.use == RequestPurpose::operation && request.owner == std::this_thread::get_id()) request.bytes = bytes;
}

Session::RequestShare Session::share(RequestId request) {
  const std::lock_guard lock(requests_mutex_);
  const SessionRequest* found = find(request);
  return found && found->standing == Standing::granted ? found->share : RequestShare{};
}

std::optional<Session::RequestShare> Session::share_if_free(RequestId request) {
  const BoundedLock lock(requests_mutex_);
  if (!lock) return std::nullopt;
  const SessionRequest* found = find(request);
  return found && found->standing == Standing::granted ? found->share : RequestShare{};
}

std::int64_t Session::progress_of(RequestId request) {
  const std::lock_guard lock(requests_mutex_);
  const SessionRequest* found = find(request);
  return found ? found->bytes : 0;
}

// ---- what hocketd says of a request -------------------------------------------------------------------------------

void Session::hear(const event::GrantIo& grant) {
  bool in_vain = true;
  {
    const std::lock_guard lock(requests_mutex_);
    SessionRequest* found = find(grant.request);
    if (found && change(*found, StandingInput::grant).does(StandingAction::take_share)) {
      in_vain = false;
      found->share = {grant.share, found->share.alone && grant.share >= 1};
      if (grant.delegated) take_delegation(*found);
      show();
    }
  }
  if (!grant.delegated) return;
  if (in_vain) return return_delegation(grant.request);
  leases_.expect(true);  // RECALL_IO may come
}

void Session::hear(const event::QueuedIo& queued) {
  const std::lock_guard lock(requests_mutex_);
  if (SessionRequest* found = find(queued.request)) change(*found, StandingInput::queue);
}

void Session::hear(const event::PauseIo& pause) {
  StandingStep step;
  bool burst = false;
  std::function<void()> hook;
  {
    const std::lock_guard lock(requests_mutex_);
    SessionRequest* found = find(pause.request);
    if (!found) return;
    const bool unattended = found->use == RequestPurpose::step && !found->awaited;
    step = change(*found, unattended ? StandingInput::pause_unattended : StandingInput::pause);
    if (!step.does(StandingAction::tell | StandingAction::answer)) return;
    found->pause_came = node_now();
    burst = found->use == RequestPurpose::burst;
    show();
    hook = hook_;
  }
  if (burst) leases_.wake();  // the keeper answers if no access of the burst is under way
  if (step.does(StandingAction::tell)) return hook();
  answer_pause(pause.request);
}

// The number is that of a request, or of one whose grant brought a delegation.
void Session::hear(const event::LeaseExpired& expired) {
  delegation_expired(expired.request);
  apply(expired.request, StandingInput::expire);
}

// Updates all requests after the connection has ended: pauses need no answer, and no grant will come. Waiting threads
// notice by themselves. No thread waits for the step, so it continues uncoordinated here.
void Session::connection_ended() {
  forget_delegations();
  if (waiting_step().request && !alone_) give_up("hocketd at " + settings_.socket + " has gone");
  const std::lock_guard lock(requests_mutex_);
  for (SessionRequest& request : requests_)
    change(request, request.use == RequestPurpose::step ? StandingInput::lose_step : StandingInput::lose);
  show();
}

// Gives up all requests that wait for their first grant, because REFUSED does not name the request.
void Session::hear(const event::Refused& refused) {
  std::vector<RequestId> queued;
  bool waited_for = false;
  {
    const std::lock_guard lock(requests_mutex_);
    for (const SessionRequest& request : requests_) {
      if (!standing_step(request.standing, StandingInput::refuse).does(StandingAction::withdraw)) continue;
      queued.push_back(request.id);
      waited_for |= request.use != RequestPurpose::step;
    }
  }
  if (waited_for) give_up("hocketd refuses: " + refused.text);
  for (const RequestId request : queued) {
    withdraw(request, StandingInput::refuse);
    apply(request, StandingInput::refuse);
  }
}

// ---- all of them --------------------------------------------------------------------------------------------------

Session::SessionRequest& Session::add(event::StartIo& start, RequestPurpose use) {
  start.request = RequestId{++last_request_};
  SessionRequest& begun = requests_.emplace_back();
  begun.id = start.request;
  begun.target = start.target;
  begun.file_system = start.file_system;
  begun.parts = start.parts;
  begun.use = use;
  begun.owner = std::this_thread::get_id();
  begun.connection = connections_;
  return begun;
}

StandingStep Session::begin(event::StartIo& start, RequestPurpose use) {
  StandingStep step;
  {
    const std::lock_guard lock(requests_mutex_);
    step = change(add(start, use), StandingInput::ask);
    batch_.push_back({start});
    show();
  }
  if (use == RequestPurpose::step) leases_.expect(true);
  return step;
}

// Removes a request from the list. Its bytes become the step's, if there is one.
void Session::forget(RequestId request) {
  const SessionRequest* found = find(request);
  const std::int64_t bytes = found ? found->bytes : 0;
  std::erase_if(requests_, [&](const SessionRequest& other) { return other.id == request; });
  for (SessionRequest& other : requests_)
    if (other.use == RequestPurpose::step) other.bytes += bytes;
}

// Removes a request if the input ends it.
StandingStep Session::remove(RequestId request, StandingInput input) {
  bool is_io_step = false;
  StandingStep step;
  {
    const std::lock_guard lock(requests_mutex_);
    SessionRequest* found = find(request);
    if (!found) return standing_step(Standing::none, input);
    step = change(*found, input);
    if (step.next != Standing::none) return step;
    is_io_step = found->use == RequestPurpose::step;
    forget(request);
    show();
  }
  if (is_io_step) leases_.expect(false);
  return step;
}

void Session::apply(RequestId request, StandingInput input) {
  StandingStep step = standing_step(Standing::none, input);
  {
    const std::lock_guard lock(requests_mutex_);
    if (SessionRequest* found = find(request)) {
      const Standing before = found->standing;
      step = change(*found, input);
      if (step.next != before) show();
    }
  }
  carry_out(request, step);
}

void Session::withdraw(RequestId request, StandingInput input) {
  const bool withdraws = standing_step(standing(request), input).does(StandingAction::withdraw);
  if (withdraws) send(event::FinishIo{request, {}, 0, false});
}

void Session::carry_out(RequestId request, const StandingStep& step) {
  if (step.does(StandingAction::release)) leases_.release(request);
  if (!step.does(StandingAction::hold) || has_no_lease(request)) return;
  leases_.hold(request, lease_);
  // The request may have ended or paused in another thread before `hold`.
  const Standing now = standing(request);
  if (now != Standing::granted && now != Standing::to_pause) leases_.release(request);
}

StandingStep Session::change(SessionRequest& request, StandingInput input) {
  const StandingStep step = standing_step(request.standing, input);
  request.standing = step.next;
  if (step.does(StandingAction::start_waiting)) request.since = request.heard = node_now();
  if (step.does(StandingAction::hear)) request.heard = node_now();
  if (step.does(StandingAction::hold)) request.used = true;
  if (step.does(StandingAction::whole_share)) request.share = {};
  return step;
}

Session::SessionRequest* Session::find(RequestId request) {
  const auto found =
      std::find_if(requests_.begin(), requests_.end(), [&](const SessionRequest& r) { return r.id == request; });
  return found == requests_.end() ? nullptr : &*found;
}

// Updates the copies that other threads read without the lock.
void Session::show() {
  bool wanted = false;
  bool engaged = false;
  Standing io_step = Standing::none;
  for (const SessionRequest& request : requests_) {
    wanted |= request.standing == Standing::to_pause;
    if (request.use == RequestPurpose::step) io_step = request.standing;
    engaged |= request.use != RequestPurpose::burst;
  }
  engaged_ = engaged;
  // `wanted` is stored before `changes_`: a thread that sees the new number sees `wanted` too.
  if (wanted_) wanted_->store(wanted, std::memory_order_relaxed);
  ++changes_;
  step_standing_ = io_step;
}

}  // namespace hocket::runtime
