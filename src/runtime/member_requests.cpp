// The part of Member that keeps the standing of each request: hocketd's messages, pauses, and what other threads see.
#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "runtime/member.hpp"

namespace hocket::runtime {

// ---- pauses -------------------------------------------------------------------------------------------------------

void Member::tell_pauses(std::atomic<bool>& wanted, std::function<void()> hook) {
  const std::lock_guard lock(requests_mutex_);
  wanted_ = &wanted;
  hook_ = std::move(hook);
}

void Member::set_due(std::function<Time(Time)> due) {
  const std::lock_guard lock(requests_mutex_);
  due_ = std::move(due);
}

// Other threads answer for their own operations. This thread may answer for the session, because the application, which
// has called libhocket, is not in the middle of another part of its step.
bool Member::pause(std::int64_t bytes, std::int64_t round) {
  const auto self = std::this_thread::get_id();
  const auto stops = [&](const Request& request) {
    return request.use == Use::session || (request.use == Use::operation && request.owner == self);
  };
  const std::vector<RequestId> paused = answer(stops, bytes, round);
  if (paused.empty()) return false;
  Asking asking(*this);
  RequestId session;
  for (const RequestId request : paused) wait_and_take_up(asking, request, session);
  rejoin(asking, session);
  return true;
}

void Member::answer_pause(RequestId request) {
  answer([&](const Request& other) { return other.id == request; }, 0, -1);
}

// Pauses the session, if it is to pause: a thread that waits for a request does no other I/O of the step. Returns the
// session's id, or none.
RequestId Member::step_aside() {
  const auto paused = answer([](const Request& request) { return request.use == Use::session; }, 0, -1);
  return paused.empty() ? RequestId{} : paused.front();
}

// Sends PAUSED_IO for those of the requests in `which` that are to pause, and returns their ids.
template <class Which>
std::vector<RequestId> Member::answer(Which which, std::int64_t bytes, std::int64_t round) {
  std::vector<event::PausedIo> answers;
  {
    const std::lock_guard lock(requests_mutex_);
    for (Request& request : requests_) {
      if (request.standing != Standing::to_pause || !which(request)) continue;
      request.standing = Standing::paused;
      request.since = request.heard = node_now();
      const bool operation = request.use == Use::operation;
      answers.push_back({request.id, operation ? (bytes > 0 ? bytes : request.bytes) : request.bytes + bytes,
                         operation ? round : -1});
    }
    if (!answers.empty()) show();
  }
  std::vector<RequestId> answered;
  for (const event::PausedIo& answer : answers) {
    leases_.release(answer.request);
    send(answer);
    answered.push_back(answer.request);
  }
  return answered;
}

void Member::take_up(RequestId request) {
  {
    const std::lock_guard lock(requests_mutex_);
    Request* found = find(request);
    if (!found || !found->has_come()) return;
    found->used = true;
    if (found->standing == Standing::offered) {
      found->standing = Standing::granted;
      show();
    }
  }
  leases_.hold(request, lease_);
  // The request may have ended or paused in another thread before `hold`.
  const Standing now = standing(request);
  if (now != Standing::granted && now != Standing::to_pause) leases_.release(request);
}

// Takes up the grants of requests that were in use before they paused.
void Member::resume() {
  std::vector<RequestId> come;
  {
    const std::lock_guard lock(requests_mutex_);
    for (const Request& request : requests_)
      if (request.has_come() && request.used) come.push_back(request.id);
  }
  for (const RequestId request : come) take_up(request);
}

void Member::await(RequestId request) {
  answer_pause(request);
  Asking asking(*this);
  RequestId session;
  wait_and_take_up(asking, request, session);
  rejoin(asking, session);
}

// Waits for the grant and takes it up. If the connection has ended, the request continues uncoordinated.
void Member::wait_and_take_up(Asking& asking, RequestId request, RequestId& aside) {
  if (wait_for_grant(asking, request, aside) == Outcome::closed) has_gone(request);
  take_up(request);
}

// Waits for the session that `step_aside` has paused (none: there is none), now that this thread's own wait is over.
void Member::rejoin(Asking& asking, RequestId session) {
  if (RequestId again; session) wait_and_take_up(asking, session, again);
  resume();
}

Standing Member::standing(RequestId request) {
  const std::lock_guard lock(requests_mutex_);
  const Request* found = find(request);
  return found ? found->standing : Standing::none;
}

void Member::progress(std::int64_t bytes) {
  const std::lock_guard lock(requests_mutex_);
  for (Request& request : requests_)
    if (request.use == Use::operation && request.owner == std::this_thread::get_id()) request.bytes = bytes;
}

Member::Share Member::share(RequestId request) {
  const std::lock_guard lock(requests_mutex_);
  const Request* found = find(request);
  return found && found->standing == Standing::granted ? found->share : Share{};
}

std::int64_t Member::progress_of(RequestId request) {
  const std::lock_guard lock(requests_mutex_);
  const Request* found = find(request);
  return found ? found->bytes : 0;
}

// ---- what hocketd says of a request -------------------------------------------------------------------------------

void Member::hear(const event::GrantIo& grant) {
  const std::lock_guard lock(requests_mutex_);
  Request* found = find(grant.request);
  if (!found) return;
  if (found->waits()) found->standing = Standing::offered;
  found->share = {grant.share, found->share.alone && grant.share >= 1};
  show();
}

void Member::hear(const event::QueuedIo& queued) {
  const std::lock_guard lock(requests_mutex_);
  if (Request* found = find(queued.request)) found->heard = node_now();
}

void Member::hear(const event::PauseIo& pause) {
  bool in_use = false;
  bool burst = false;
  std::function<void()> hook;
  {
    const std::lock_guard lock(requests_mutex_);
    Request* found = find(pause.request);
    if (!found || (found->standing != Standing::granted && found->standing != Standing::offered)) return;
    in_use = found->standing == Standing::granted || found->use != Use::session || found->awaited;
    burst = found->use == Use::burst;
    found->standing = Standing::to_pause;
    show();
    hook = hook_;
  }
  if (burst) leases_.wake();  // the keeper answers if no access of the burst is under way
  if (in_use) return hook();
  answer_pause(pause.request);
}

void Member::hear(const event::LeaseExpired& expired) {
  {
    const std::lock_guard lock(requests_mutex_);
    Request* found = find(expired.request);
    if (!found) return;
    found->standing = Standing::expired;
    show();
  }
  leases_.release(expired.request);
}

// Updates all requests after the connection has ended: pauses need no answer, and no grant will come. Waiting threads
// notice by themselves. No thread waits for the session, so it continues uncoordinated here.
void Member::connection_ended() {
  if (waiting_session().request && !alone_) give_up("hocketd at " + settings_.socket + " has gone");
  const std::lock_guard lock(requests_mutex_);
  for (Request& request : requests_) {
    if (request.standing == Standing::to_pause) request.standing = Standing::granted;
    request.share = {};
    if (request.waits() && request.use == Use::session) request.standing = Standing::alone;
  }
  show();
}

// Gives up all requests that wait for their first grant, because REFUSED does not name the request.
void Member::hear(const event::Refused& refused) {
  std::vector<RequestId> queued;
  bool waited_for = false;
  {
    const std::lock_guard lock(requests_mutex_);
    for (const Request& request : requests_) {
      if (request.standing != Standing::queued) continue;
      queued.push_back(request.id);
      waited_for |= request.use != Use::session;
    }
  }
  if (waited_for) give_up("hocketd refuses: " + refused.text);
  for (const RequestId request : queued) {
    send(event::FinishIo{request, {}, 0, false});
    go_on_alone(request);
  }
}

// ---- all of them --------------------------------------------------------------------------------------------------

void Member::begin(RequestId request, Use use) {
  {
    const std::lock_guard lock(requests_mutex_);
    Request& begun = requests_.emplace_back();
    begun.id = request;
    begun.use = use;
    begun.owner = std::this_thread::get_id();
    begun.since = begun.heard = node_now();
    begun.connection = connections_;
    show();
  }
  if (use == Use::session) leases_.expect(true);
}

// Removes a request. Its bytes become the session's, if there is one.
void Member::forget(RequestId request) {
  bool session = false;
  {
    const std::lock_guard lock(requests_mutex_);
    const Request* found = find(request);
    if (!found) return;
    session = found->use == Use::session;
    const std::int64_t bytes = found->bytes;
    std::erase_if(requests_, [&](const Request& other) { return other.id == request; });
    for (Request& other : requests_)
      if (other.use == Use::session) other.bytes += bytes;
    show();
  }
  if (session) leases_.expect(false);
}

void Member::go_on_alone(RequestId request) {
  {
    const std::lock_guard lock(requests_mutex_);
    if (Request* found = find(request)) found->standing = Standing::alone;
    show();
  }
  leases_.release(request);
}

Member::Request* Member::find(RequestId request) {
  const auto found =
      std::find_if(requests_.begin(), requests_.end(), [&](const Request& r) { return r.id == request; });
  return found == requests_.end() ? nullptr : &*found;
}

// Updates the copies that other threads read without the lock.
void Member::show() {
  bool wanted = false;
  bool engaged = false;
  Standing session = Standing::none;
  for (const Request& request : requests_) {
    wanted |= request.standing == Standing::to_pause;
    if (request.use == Use::session) session = request.standing;
    engaged |= request.use != Use::burst;
  }
  engaged_ = engaged;
  // `wanted` is stored before `changes_`: a thread that sees the new number sees `wanted` too.
  if (wanted_) wanted_->store(wanted, std::memory_order_relaxed);
  ++changes_;
  session_ = session;
}

}  // namespace hocket::runtime
