#include "runtime/member.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.hpp"

namespace hocket::runtime {
namespace {

// Time limit of connect. hocketd is on this node, so it accepts at once; a stopped one with a full backlog must not
// block the application.
constexpr Duration connect_limit = std::chrono::milliseconds{200};

}  // namespace

Member::Member(const Settings& settings, event::Hello hello, std::function<void(std::string_view)> lost)
    : settings_(settings),
      hello_(std::move(hello)),
      lost_(std::move(lost)),
      leases_({[this](RequestId request) { renew(request); }, [this] { return listen(); },
               [this](Time now) { return due(now); }}) {}

Member::Asking::~Asking() {
  if (!lock_) return;
  const bool listened_to = member_.listened_to_;  // true: the listening thread wakes the keeper later
  lock_.unlock();
  if (!listened_to && member_.missed_.exchange(false)) member_.leases_.wake();
}

void Member::join() {
  const Asking asking(*this);
  may_retry_ = false;
  if (!connect()) give_up("no hocketd answers at " + settings_.socket);
}

bool Member::connect() {
  auto client = bus::Client::connect(settings_.socket, connect_limit);
  if (!client) return false;
  {
    const std::lock_guard lock(connection_);
    client_.emplace(std::move(client).value());
    fd_ = client_->fd();
  }
  silent_ = false;
  ++connections_;
  return send(hello_);
}

void Member::disconnect() {
  const std::lock_guard lock(connection_);
  client_.reset();
  fd_ = -1;
}

bool Member::send(const event::Body& body) {
  const std::lock_guard lock(connection_);
  return client_ && client_->connected() && client_->send(body).ok();
}

// Continues uncoordinated until the next I/O phase, and says why. `asking_` is held.
void Member::give_up(std::string_view why) {
  if (leaving_) return;
  alone_ = true;
  lost_(why);
}

// Returns true if START_IO can be sent: the member is connected and hocketd answers. Once a phase it tries to
// reconnect.
bool Member::ready() {
  if (leaving_) return false;
  const bool retry = may_retry_.exchange(false);
  if (retry) alone_ = false;
  if (alone_) return false;
  if (silent_) {
    // hocketd did not answer in time before. Do not wait for it again before a message has come.
    take_what_came();
    if (fd_ < 0) silent_ = false;  // the connection has ended: a new hocketd may answer
    alone_ = silent_;
  }
  if (fd_ < 0 && !connect())
    give_up(connections_ > 0 ? "hocketd at " + settings_.socket + " has gone"
                             : "no hocketd answers at " + settings_.socket);
  return !alone_;
}

RequestId Member::ask(event::StartIo start, Use use) {
  Asking asking(*this);
  const bool phase_begins = may_retry_;
  if (!ready()) return {};
  RequestId session;  // the session, if it has paused for this request
  Outcome outcome = ask_for(start, use) ? wait_for_grant(asking, start.request, session) : Outcome::closed;
  // The daemon of the previous phase may have ended, and a new one may run: try that once.
  if (outcome == Outcome::closed && (phase_begins || !is_of_this_connection(start.request)) &&
      connect_anew(start.request)) {
    forget(start.request);
    outcome = ask_for(start, use) ? wait_for_grant(asking, start.request, session) : Outcome::closed;
  }
  if (outcome == Outcome::closed) has_gone(start.request);
  if (outcome == Outcome::granted)
    take_up(start.request);
  else
    forget(start.request);
  rejoin(asking, session);
  return outcome == Outcome::granted ? start.request : RequestId{};
}

RequestId Member::inform(event::StartIo start) {
  const Asking asking(*this);
  if (!ready()) return {};
  if (ask_for(start, Use::session)) return start.request;
  if (connect_anew(start.request)) {
    forget(start.request);
    if (ask_for(start, Use::session)) return start.request;
  }
  has_gone(start.request);
  forget(start.request);
  return {};
}

// Sends START_IO with the next id, because hocketd expects rising ids. Returns false if the connection has ended.
bool Member::ask_for(event::StartIo& start, Use use) {
  start.request = RequestId{++last_request_};
  begin(start.request, use);
  return send(start);
}

// Waits for the grant of a request that is queued or paused. It releases `asking_` while it sleeps, so other threads
// can ask meanwhile. If the session pauses for this wait, `aside` becomes its id.
Member::Outcome Member::wait_for_grant(Asking& asking, RequestId request, RequestId& aside) {
  bool looked = false;
  while (true) {
    Time end{};
    Time answer_by{};
    bool connected = fd_ >= 0;
    {
      const std::lock_guard lock(requests_mutex_);
      Request* found = find(request);
      if (!found || found->standing == Standing::alone || found->standing == Standing::expired) return Outcome::alone;
      found->awaited = found->waits();
      if (!found->awaited) return Outcome::granted;
      end = found->since + settings_.max_wait;
      answer_by = found->heard + settings_.answer;
      connected &= found->connection == connections_;
    }
    if (!connected) return Outcome::closed;
    const Time now = node_now();
    if (leaving_ || now >= std::min(answer_by, end)) {
      // If this process was stopped, its grant may have come meanwhile: look once before giving up.
      if (!leaving_ && !std::exchange(looked, true)) {
        take_what_came(true);
        continue;
      }
      give_up_waiting(request, now < end);
      return Outcome::alone;
    }
    if (const RequestId session = step_aside(); session) aside = session;
    sleep(asking, std::min(answer_by, end) - now);
    take_what_came();
    looked = false;
  }
}

// Sleeps until a message may have come, at most for `longest`. One thread polls the socket and notifies the others.
void Member::sleep(Asking& asking, Duration longest) {
  // Time limit of one poll(): a failing send in another thread closes the descriptor meanwhile.
  constexpr Duration slice = std::chrono::milliseconds{200};
  const Duration wait = std::min(longest, slice);
  ++waiting_;
  if (listened_to_) {
    came_.wait_for(asking.lock(), wait);
  } else {
    listened_to_ = true;
    asking.lock().unlock();
    const timespec timeout{0, wait.count()};
    pollfd waited{fd_, POLLIN, 0};
    ppoll(&waited, 1, &timeout, nullptr);
    asking.lock().lock();
    listened_to_ = false;
    came_.notify_all();  // a message has come, or another thread has to listen now
  }
  --waiting_;
  if (leaving_) came_.notify_all();
}

// Gives up a request whose time limit has passed. `silent`: hocketd has not answered, so further requests do not wait.
void Member::give_up_waiting(RequestId request, bool silent) {
  send(event::FinishIo{request, {}, 0, false});
  silent_ = silent;
  if (silent_)
    give_up("hocketd at " + settings_.socket + " has not answered for " + std::to_string(to_s(settings_.answer)) +
            " s (HOCKET_ANSWER_S)");
  else
    give_up("no grant within " + std::to_string(to_s(settings_.max_wait)) + " s (HOCKET_MAX_WAIT_S)");
  go_on_alone(request);  // last: a thread that sees it may leave at once, and then no message is sent any more
}

// Continues uncoordinated because the connection of this request has ended.
void Member::has_gone(RequestId request) {
  if (is_of_this_connection(request)) {
    disconnect();
    if (!alone_) give_up("hocketd at " + settings_.socket + " has gone");
  }
  go_on_alone(request);
}

// Connects to a new hocketd, if there is one, after the connection of this request has ended. Another thread may have
// done so already. Returns true if START_IO can be sent again.
bool Member::connect_anew(RequestId request) {
  if (!is_of_this_connection(request)) return !alone_;
  disconnect();
  const bool said = std::exchange(alone_, false);
  if (connect()) return true;
  alone_ = said;
  if (!said) give_up("hocketd at " + settings_.socket + " has gone");
  return false;
}

bool Member::is_of_this_connection(RequestId request) {
  const std::lock_guard lock(requests_mutex_);
  const Request* found = find(request);
  return found && found->connection == connections_;
}

// Returns the next event from hocketd. Returns nothing if none has come, or if the connection has ended (then fd_ < 0).
std::optional<event::Event> Member::next_event() {
  {
    const std::lock_guard lock(connection_);
    auto event = client_ && client_->connected() ? client_->receive(Duration::zero()) : Error{"not connected"};
    if (event) return std::move(event).value();
    fd_ = -1;
  }
  connection_ended();
  return std::nullopt;
}

void Member::take(const event::Body& body) {
  if (const auto* welcome = std::get_if<event::Welcome>(&body); welcome && welcome->lease > Duration::zero())
    lease_ = welcome->lease;
  if (const auto* grant = std::get_if<event::GrantIo>(&body)) hear(*grant);
  if (const auto* queued = std::get_if<event::QueuedIo>(&body)) hear(*queued);
  if (const auto* pause = std::get_if<event::PauseIo>(&body)) hear(*pause);
  if (const auto* expired = std::get_if<event::LeaseExpired>(&body)) hear(*expired);
  if (const auto* refused = std::get_if<event::Refused>(&body)) hear(*refused);
  if (std::holds_alternative<event::Reconfigure>(body) || std::holds_alternative<event::WithdrawResize>(body) ||
      std::holds_alternative<event::ProcessesReady>(body))
    commands_.push_back(body);
  if (const auto* told = std::get_if<event::NewServerMap>(&body)) {
    auto map = event::parse_server_map(told->epoch, told->text);
    if (!map) return lost_("hocketd sent no server map: " + map.error().text);
    auto shared = std::make_shared<const event::ServerMap>(std::move(map).value());
    const std::lock_guard lock(map_mutex_);
    map_ = std::move(shared);
  }
}

// Handles the messages that have come. `asking_` is held. While another thread listens it does nothing, unless
// `anyway`: that thread would not notice that its message has been taken, and would sleep on.
void Member::take_what_came(bool anyway) {
  while (fd_ >= 0 && (anyway || !listened_to_)) {
    const auto event = next_event();
    if (!event) break;
    take(event->body);
    silent_ = false;
  }
}

std::shared_ptr<const event::ServerMap> Member::server_map() {
  {
    const Asking asking(*this, std::try_to_lock);
    if (asking) take_what_came();
  }
  const std::lock_guard lock(map_mutex_);
  return map_;
}

std::optional<event::Body> Member::next_command() {
  const Asking asking(*this, std::try_to_lock);
  if (!asking) return std::nullopt;
  take_what_came();
  if (commands_.empty()) return std::nullopt;
  std::optional<event::Body> first = std::move(commands_.front());
  commands_.pop_front();
  return first;
}

bool Member::reconnect() {
  const Asking asking(*this, std::try_to_lock);
  if (!asking || waiting_ > 0) return false;
  disconnect();
  return connect();
}

void Member::report(const event::IoPhase& phase) {
  if (send(phase) || settings_.coordinate) return;
  const Asking asking(*this);
  disconnect();
  if (connect())
    send(phase);
  else
    give_up("no hocketd answers at " + settings_.socket);
}

void Member::report_iterations(const event::Iterations& iterations) {
  pollfd socket{fd_, POLLOUT, 0};
  if (socket.fd >= 0 && poll(&socket, 1, 0) == 1 && (socket.revents & POLLOUT) != 0) send(iterations);
}

void Member::finish(event::FinishIo finish) {
  forget(finish.request);
  leases_.release(finish.request);
  send(finish);
}

// ---- what the keeper does ------------------------------------------------------------------------------------------

int Member::listen() {
  missed_ = true;  // set before the attempt: a thread that releases `asking_` meanwhile sees it
  const Asking asking(*this, std::try_to_lock);
  if (!asking || listened_to_) return -1;
  missed_ = false;
  take_what_came();
  return fd_;
}

// Runs the timed duty, and enforces the time limits of a waiting session, because no thread waits for it.
Time Member::due(Time now) {
  std::function<Time(Time)> others;
  {
    const std::lock_guard lock(requests_mutex_);
    others = due_;
  }
  const Time next = others(now);
  if (const Waiting session = waiting_session(); now < session.until) return std::min(next, session.until);
  missed_ = true;
  const Asking asking(*this, std::try_to_lock);
  if (!asking) return next;
  missed_ = false;
  take_what_came(true);
  if (const Waiting session = waiting_session(); now >= session.until) give_up_waiting(session.request, session.silent);
  return next;
}

Member::Waiting Member::waiting_session() {
  const std::lock_guard lock(requests_mutex_);
  for (const Request& request : requests_) {
    if (request.use != Use::session || !request.waits()) continue;
    const Time end = request.since + settings_.max_wait;
    const Time answer_by = request.heard + settings_.answer;
    return {request.id, std::min(end, answer_by), answer_by < end};
  }
  return {};
}

// Sends RENEW_IO. The bytes of a session include those of all other requests, because these are part of its step.
void Member::renew(RequestId request) {
  event::RenewIo renewal{request};
  {
    const std::lock_guard lock(requests_mutex_);
    const Request* found = find(request);
    if (found) renewal.bytes = found->bytes;
    for (const Request& other : requests_)
      if (found && found->use == Use::session && other.id != request) renewal.bytes += other.bytes;
  }
  send(renewal);
}

// ---- leaving -------------------------------------------------------------------------------------------------------

void Member::leave(const event::Bye& bye) {
  leaving_ = true;  // threads that wait for a grant give up
  leases_.stop();
  Asking asking(*this);
  came_.notify_all();
  came_.wait_for(asking.lock(), std::chrono::seconds{1}, [&] { return waiting_ == 0; });
  if (fd_ < 0) return;
  if (!send(bye) && !alone_) lost_("hocketd at " + settings_.socket + " has gone");
  disconnect();
}

void Member::abandon() noexcept {
  const int fd = fd_.exchange(-1);
  if (fd >= 0) close(fd);
}

}  // namespace hocket::runtime
