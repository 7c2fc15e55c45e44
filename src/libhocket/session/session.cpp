#include "session/session.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/batches.hpp"
#include "base/clock.hpp"
#include "session/heartbeat.hpp"

namespace hocket::runtime {
namespace {

// Time limit of connect. hocketd is on this node, so it accepts at once; a stopped one with a full backlog must not
// block the application.
constexpr Duration connect_limit = std::chrono::milliseconds{200};
// A process that was told not to coordinate looks for HELD_TARGETS so often.
constexpr Duration held_lasts = std::chrono::seconds{1};
constexpr std::string_view taken_away = "the program has closed descriptors of hocket, or uses their numbers";

}  // namespace

Session::Session(const MemberSettings& settings, event::Hello hello, std::function<void(std::string_view)> lost)
    : settings_(settings),
      hello_(std::move(hello)),
      lost_(std::move(lost)),
      leases_({[this](RequestId request) { renew(request); }, [this] { return listen(); },
               [this](Time now) { return due(now); }}) {}

Session::AskingLock::~AskingLock() {
  if (!lock_) return;
  const bool listened_to = session_.listened_to_;  // true: the listening thread wakes the keeper later
  lock_.unlock();
  if (!listened_to && session_.missed_.exchange(false)) session_.leases_.wake();
}

void Session::join() {
  const AskingLock asking(*this);
  may_retry_ = false;
  if (!connect()) give_up("no hocketd answers at " + settings_.socket);
}

bool Session::connect() {
  auto client = bus::Client::connect(settings_.socket, connect_limit);
  if (!client) return false;
  {
    const std::lock_guard lock(connection_);
    client_.emplace(std::move(client).value());
    fd_ = client_->fd();
    struct stat status {};
    if (fstat(fd_, &status) == 0) inode_ = status.st_ino;
  }
  forget_delegations();
  silent_ = false;
  welcomed_ = false;
  held_until_ = 0;
  ++connections_;
  return send(hello_);
}

void Session::disconnect() {
  forget_delegations();
  const std::lock_guard lock(connection_);
  client_.reset();
  fd_ = -1;
}

bool Session::was_taken_away() {
  const std::lock_guard lock(connection_);
  return client_ && client_->taken_away();
}

// What waits in the batch goes first.
bool Session::send(const event::Body& body) {
  const std::lock_guard lock(connection_);
  std::vector<event::Body> all = take_batch();
  if (!client_ || !client_->connected()) return false;
  if (all.empty()) return client_->send(body).ok();
  all.push_back(body);
  return client_->send(all).ok();
}

// Continues uncoordinated until the next I/O phase, and says why. `asking_` is held.
void Session::give_up(std::string_view why) {
  if (leaving_) return;
  alone_ = true;
  lost_(why);
}

// Returns true if START_IO can be sent: the session is connected and hocketd answers. Once a phase it tries to
// reconnect.
bool Session::ready() {
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

RequestId Session::ask(event::StartIo start, RequestPurpose use) {
  if (const RequestId begun = begin_delegated(start, use)) {
    take_up(begun);
    return begun;
  }
  AskingLock asking(*this);
  const bool phase_begins = may_retry_;
  if (!ready()) return {};
  RequestId io_step;  // the step, if it has paused for this request
  GrantOutcome outcome = ask_for(start, use) ? wait_for_grant(asking, start.request, io_step) : GrantOutcome::closed;
  // The daemon of the previous phase may have ended, and a new one may run: try that once.
  if (outcome == GrantOutcome::closed && (phase_begins || !is_of_this_connection(start.request)) &&
      connect_anew(start.request)) {
    remove(start.request, StandingInput::drop);
    outcome = ask_for(start, use) ? wait_for_grant(asking, start.request, io_step) : GrantOutcome::closed;
  }
  if (outcome == GrantOutcome::closed) has_gone(start.request);
  if (outcome == GrantOutcome::granted)
    take_up(start.request);
  else
    remove(start.request, StandingInput::drop);
  rejoin(asking, io_step);
  return outcome == GrantOutcome::granted ? start.request : RequestId{};
}

RequestId Session::inform(event::StartIo start) {
  if (const RequestId begun = begin_delegated(start, RequestPurpose::step)) return begun;
  const AskingLock asking(*this);
  if (!ready()) return {};
  if (ask_for(start, RequestPurpose::step)) return start.request;
  if (connect_anew(start.request)) {
    remove(start.request, StandingInput::drop);
    if (ask_for(start, RequestPurpose::step)) return start.request;
  }
  has_gone(start.request);
  remove(start.request, StandingInput::drop);
  return {};
}

// Sends START_IO with the next id. Returns false if the connection has ended.
bool Session::ask_for(event::StartIo& start, RequestPurpose use) {
  return begin(start, use).does(StandingAction::send_start) && send_batch();
}

// Waits for the grant of a request that is queued or paused. It releases `asking_` while it sleeps, so other threads
// can ask meanwhile. If the step pauses for this wait, `aside` becomes its id.
Session::GrantOutcome Session::wait_for_grant(AskingLock& asking, RequestId request, RequestId& aside) {
  bool looked = false;
  while (true) {
    beat();
    Time end{};
    Time answer_by{};
    bool connected = fd_ >= 0;
    {
      const std::lock_guard lock(requests_mutex_);
      SessionRequest* found = find(request);
      if (!found || found->standing == Standing::alone || found->standing == Standing::expired)
        return GrantOutcome::alone;
      found->awaited = found->waits();
      if (!found->awaited) return GrantOutcome::granted;
      end = found->since + settings_.max_wait;
      answer_by = found->heard + settings_.answer;
      connected &= found->connection == connections_;
    }
    if (!connected) return GrantOutcome::closed;
    const Time now = node_now();
    if (leaving_ || now >= std::min(answer_by, end)) {
      // If this process was stopped, its grant may have come meanwhile: look once before giving up.
      if (!leaving_ && !std::exchange(looked, true)) {
        take_what_came(true);
        continue;
      }
      const StandingInput limit = now < end ? StandingInput::silence : StandingInput::long_wait;
      give_up_waiting(request, leaving_ ? StandingInput::leave : limit);
      return GrantOutcome::alone;
    }
    if (const RequestId io_step = step_aside(); io_step) aside = io_step;
    sleep(asking, std::min(answer_by, end) - now);
    take_what_came();
    looked = false;
  }
}

// Sleeps until a message may have come, at most for `longest`. One thread polls the socket and notifies the others.
void Session::sleep(AskingLock& asking, Duration longest) {
  // One poll() is short: a failing send in another thread closes the descriptor meanwhile.
  const Duration wait = std::min(longest, between_beats);
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

// Gives up a request whose time limit has passed. After `silence`, further requests do not wait.
void Session::give_up_waiting(RequestId request, StandingInput why) {
  withdraw(request, why);
  silent_ = why == StandingInput::silence;
  if (silent_)
    give_up("hocketd at " + settings_.socket + " has not answered for " + std::to_string(to_s(settings_.answer)) +
            " s (HOCKET_ANSWER_S)");
  else
    give_up("no grant within " + std::to_string(to_s(settings_.max_wait)) + " s (HOCKET_MAX_WAIT_S)");
  apply(request, why);  // last: a thread that sees it may leave at once, and then no message is sent any more
}

// Continues uncoordinated because the connection of this request has ended.
void Session::has_gone(RequestId request) {
  if (is_of_this_connection(request)) {
    disconnect();
    if (!alone_) give_up("hocketd at " + settings_.socket + " has gone");
  }
  apply(request, StandingInput::no_connection);
}

// Connects to a new hocketd, if there is one, after the connection of this request has ended. Another thread may have
// done so already. Returns true if START_IO can be sent again.
bool Session::connect_anew(RequestId request) {
  if (!is_of_this_connection(request)) return !alone_;
  if (was_taken_away()) {
    if (!alone_) give_up(taken_away);
    return false;
  }
  disconnect();
  const bool said = alone_.exchange(false);
  if (connect()) return true;
  alone_ = said;
  if (!said) give_up("hocketd at " + settings_.socket + " has gone");
  return false;
}

bool Session::is_of_this_connection(RequestId request) {
  const std::lock_guard lock(requests_mutex_);
  const SessionRequest* found = find(request);
  return found && found->connection == connections_;
}

// Returns the next event from hocketd. Returns nothing if none has come, or if the connection has ended (then fd_ < 0).
std::optional<event::Event> Session::next_event() {
  {
    const std::lock_guard lock(connection_);
    auto event = client_ && client_->connected() ? client_->receive(Duration::zero()) : Error{"not connected"};
    if (event) return std::move(event).value();
    fd_ = -1;
  }
  connection_ended();
  if (was_taken_away() && !alone_) give_up(taken_away);
  return std::nullopt;
}

void Session::take(const event::Body& body) {
  if (const auto* welcome = std::get_if<event::Welcome>(&body)) hear(*welcome);
  if (const auto* held = std::get_if<event::HeldTargets>(&body)) held_.set(held->targets);
  if (const auto* grant = std::get_if<event::GrantIo>(&body)) hear(*grant);
  if (const auto* queued = std::get_if<event::QueuedIo>(&body)) hear(*queued);
  if (const auto* pause = std::get_if<event::PauseIo>(&body)) hear(*pause);
  if (const auto* recall = std::get_if<event::RecallIo>(&body)) hear(*recall);
  if (const auto* expired = std::get_if<event::LeaseExpired>(&body)) hear(*expired);
  if (const auto* refused = std::get_if<event::Refused>(&body)) hear(*refused);
  if (const auto* expected = std::get_if<event::ExpectedWait>(&body)) expected_waits_.push_back(*expected);
  if (std::holds_alternative<event::Reconfigure>(body) || std::holds_alternative<event::WithdrawResize>(body) ||
      std::holds_alternative<event::ProcessesReady>(body) || std::holds_alternative<event::Reconfiguration>(body))
    commands_.push_back(body);
  if (const auto* told = std::get_if<event::NewServerMap>(&body)) {
    auto map = event::parse_server_map(told->epoch, told->text);
    if (!map) return lost_("hocketd sent an invalid server map: " + map.error().text);
    map.value().tuning = told->tuning;
    auto shared = std::make_shared<const event::ServerMap>(std::move(map).value());
    const std::lock_guard lock(map_mutex_);
    map_ = std::move(shared);
  }
}

// Handles the messages that have come. `asking_` is held. While another thread listens it does nothing, unless
// `anyway`: that thread would not notice that its message has been taken, and would sleep on.
void Session::take_what_came(bool anyway) {
  while (fd_ >= 0 && (anyway || !listened_to_)) {
    const auto event = next_event();
    if (!event) break;
    take(event->body);
    silent_ = false;
  }
}

std::optional<event::ExpectedWait> Session::expected_wait(event::AskWait asked) {
  AskingLock asking(*this);
  if (!ready()) return std::nullopt;
  asked.number = ++last_question_;
  std::optional<event::ExpectedWait> answer;
  const auto is_answer = [&](const event::ExpectedWait& one) { return one.number == asked.number; };
  const Time end = node_now() + settings_.answer;
  const std::int64_t connection = connections_;
  if (!send(asked)) return std::nullopt;
  while (!answer && !leaving_ && fd_ >= 0 && connection == connections_) {
    const auto found = std::find_if(expected_waits_.begin(), expected_waits_.end(), is_answer);
    if (found != expected_waits_.end()) answer = *found;
    const Time now = node_now();
    if (answer || now >= end) break;
    beat();
    sleep(asking, end - now);
    take_what_came();
  }
  // Removes late answers to earlier questions, too, but none that another thread waits for.
  std::erase_if(expected_waits_, is_answer);
  return answer;
}

void Session::hear(const event::Welcome& welcome) {
  if (welcome.lease > Duration::zero()) lease_ = welcome.lease;
  held_.set(welcome.held_targets);
  welcomed_ = true;
}

void Session::learn_held() {
  AskingLock asking(*this);
  if (!ready()) return;
  take_what_came();
  const Time end = node_now() + settings_.answer;
  const std::int64_t connection = connections_;
  while (!welcomed_ && !leaving_ && fd_ >= 0 && connection == connections_) {
    const Time now = node_now();
    if (now >= end) {
      silent_ = true;
      return give_up("hocketd at " + settings_.socket + " has not answered for " +
                     std::to_string(to_s(settings_.answer)) + " s (HOCKET_ANSWER_S)");
    }
    beat();
    sleep(asking, end - now);
    take_what_came();
  }
  if (welcomed_) held_until_ = to_ns(node_now() + held_lasts);
}

std::shared_ptr<const event::ServerMap> Session::server_map() {
  {
    const AskingLock asking(*this, std::try_to_lock);
    if (asking) take_what_came();
  }
  const std::lock_guard lock(map_mutex_);
  return map_;
}

std::optional<event::Body> Session::next_command() {
  const AskingLock asking(*this, std::try_to_lock);
  if (!asking) return std::nullopt;
  take_what_came();
  if (commands_.empty()) return std::nullopt;
  std::optional<event::Body> first = std::move(commands_.front());
  commands_.pop_front();
  return first;
}

bool Session::reconnect() {
  const AskingLock asking(*this, std::try_to_lock);
  if (!asking || waiting_ > 0) return false;
  disconnect();
  return connect();
}

void Session::report(const event::IoPhase& phase) {
  if (add_to_batch(phase)) return;
  if (send(phase) || settings_.coordinate) return;
  const AskingLock asking(*this);
  disconnect();
  if (connect())
    send(phase);
  else
    give_up("no hocketd answers at " + settings_.socket);
}

void Session::report_iterations(const event::Iterations& iterations) {
  pollfd socket{fd_, POLLOUT, 0};
  if (socket.fd >= 0 && poll(&socket, 1, 0) == 1 && (socket.revents & POLLOUT) != 0) send(iterations);
}

void Session::finish(event::FinishIo finish) {
  if (finish_delegated(finish)) return;
  const StandingStep step = remove(finish.request, StandingInput::finish);
  carry_out(finish.request, step);
  if (step.does(StandingAction::send_finish)) send(finish);
}

// ---- what the keeper does ------------------------------------------------------------------------------------------

int Session::listen() {
  missed_ = true;  // set before the attempt: a thread that releases `asking_` meanwhile sees it
  const AskingLock asking(*this, std::try_to_lock);
  if (!asking || listened_to_) return -1;
  missed_ = false;
  take_what_came();
  return fd_;
}

// Runs the timed duty, sends the batch, and enforces the time limits of a waiting step, because no thread waits for it.
Time Session::due(Time now) {
  if (delegated_) {
    send_batch();
    return std::min(due_but_batch(now), now + longest_batch);
  }
  return due_but_batch(now);
}

Time Session::due_but_batch(Time now) {
  std::function<Time(Time)> others;
  {
    const std::lock_guard lock(requests_mutex_);
    others = due_;
  }
  const Time next = others(now);
  if (const StepWait wait = waiting_step(); now < wait.until) return std::min(next, wait.until);
  missed_ = true;
  const AskingLock asking(*this, std::try_to_lock);
  if (!asking) return next;
  missed_ = false;
  take_what_came(true);
  if (const StepWait wait = waiting_step(); now >= wait.until) give_up_waiting(wait.request, wait.limit);
  return next;
}

Session::StepWait Session::waiting_step() {
  const std::lock_guard lock(requests_mutex_);
  for (const SessionRequest& request : requests_) {
    if (request.use != RequestPurpose::step || !request.waits()) continue;
    const Time end = request.since + settings_.max_wait;
    const Time answer_by = request.heard + settings_.answer;
    const StandingInput limit = answer_by < end ? StandingInput::silence : StandingInput::long_wait;
    return {request.id, std::min(end, answer_by), limit};
  }
  return {};
}

// Sends RENEW_IO. The bytes of a step include those of all other requests, because these are part of it.
void Session::renew(RequestId request) {
  event::RenewIo renewal{request};
  {
    const std::lock_guard lock(requests_mutex_);
    const SessionRequest* found = find(request);
    if (found) renewal.bytes = found->bytes;
    for (const SessionRequest& other : requests_)
      if (found && found->use == RequestPurpose::step && other.id != request) renewal.bytes += other.bytes;
  }
  send(renewal);
}

// ---- leaving -------------------------------------------------------------------------------------------------------

void Session::leave(const event::Bye& bye) {
  leaving_ = true;  // threads that wait for a grant give up
  leases_.stop();
  AskingLock asking(*this);
  came_.notify_all();
  came_.wait_for(asking.lock(), std::chrono::seconds{1}, [&] { return waiting_ == 0; });
  if (fd_ < 0) return;
  if (!send(bye) && !alone_) lost_("hocketd at " + settings_.socket + " has gone");
  disconnect();
}

void Session::abandon() noexcept {
  const int fd = fd_.exchange(-1);
  struct stat status {};
  if (fd >= 0 && fstat(fd, &status) == 0 && status.st_ino == inode_) close(fd);
}

}  // namespace hocket::runtime
