#include "bus/client.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.hpp"
#include "event/filter.hpp"
#include "event/properties.hpp"

namespace hocket::bus {
namespace {

// Time limits towards the daemon, and the bound on unfetched messages.
constexpr Duration send_limit = std::chrono::seconds{2};
constexpr Duration answer_limit = std::chrono::seconds{5};
constexpr std::size_t queue_limit = 10'000;

// Waits until the socket takes bytes. Returns false if the deadline comes first.
bool wait_until_writable(const KeptFd& socket, Time deadline) {
  while (true) {
    const Duration left = std::max(deadline - node_now(), Duration::zero());
    const timespec timeout{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
    pollfd waited{socket.get(), POLLOUT, 0};
    const int ready = ppoll(&waited, 1, &timeout, nullptr);
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

// The bound keeps an unlimited timeout from overflowing when it is added to the time.
Time deadline_after(Duration timeout) {
  constexpr Duration a_year = std::chrono::hours{365 * 24};
  return node_now() + std::clamp(timeout, Duration::zero(), a_year);
}

// Appends a value. Returns true if the oldest one had to be dropped for it.
template <class T>
bool push_bounded(std::deque<T>& queue, T value) {
  const bool full = queue.size() >= queue_limit;
  if (full) queue.pop_front();
  queue.push_back(std::move(value));
  return full;
}

// Returns a monitor's finding. hocketd measures the rest itself, so only the server is told.
Result<event::SlowIoServer> told_slow(const event::Properties& properties) {
  const event::Value* server = event::find(properties, "server");
  const auto* name = server == nullptr ? nullptr : std::get_if<std::string>(server);
  if (name == nullptr || properties.size() != 1)
    return Error{"SLOW_IO_SERVER has one property, the text 'server': the name of an I/O server"};
  event::SlowIoServer told;
  told.server = *name;
  return told;
}

}  // namespace

Result<Client> Client::connect(const std::string& path, Duration timeout) {
  auto socket = connect_to(path, timeout);
  if (!socket) return socket.error();
  return Client{std::move(socket).value()};
}

Error Client::fail(std::string text) {
  socket_ = KeptFd{};
  return Error{std::move(text)};
}

Status Client::usable() {
  if (!socket_) return Error{"the connection to hocketd has ended"};
  if (socket_.is_ours()) return success();
  taken_away_ = true;
  return fail("the program has closed the descriptor of the connection to hocketd");
}

Status Client::send(const event::Body& body) {
  if (const Status ours = usable(); !ours) return ours;
  out_.clear();
  if (const Status encoded = wire::encode(body, out_); !encoded) return encoded;
  return send_encoded();
}

Status Client::send(const std::vector<event::Body>& bodies) {
  if (const Status ours = usable(); !ours) return ours;
  out_.clear();
  for (const event::Body& body : bodies) {
    if (const Status encoded = wire::encode(body, out_); !encoded) return encoded;
  }
  return send_encoded();
}

Status Client::send_encoded() {
  const Time deadline = deadline_after(send_limit);
  std::size_t sent = 0;
  while (sent < out_.size()) {
    const ssize_t n = ::send(socket_.get(), out_.data() + sent, out_.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      sent += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN) {
      if (!wait_until_writable(socket_, deadline)) return fail("hocketd accepted no data for 2 s; is it stopped?");
    } else if (errno != EINTR) {
      return fail("the connection to hocketd has ended: " + error_text(errno));
    }
  }
  return success();
}

Status Client::sort(std::string_view payload) {
  auto message = wire::decode(payload);
  if (!message) return fail("hocketd sent what is no event of this version: " + message.error().text);
  if (const auto* lost = std::get_if<event::EventsLost>(&message.value().event.body)) {
    events_lost_ += lost->events;
    return success();
  }
  const Subscription subscription = message.value().subscription;
  if (subscription == 0) {
    push_bounded(answers_, std::move(message.value().event));
    return success();
  }
  const auto found = subscriptions_.find(subscription);
  if (found == subscriptions_.end()) return success();  // unsubscribed meanwhile
  if (!found->second) {
    if (push_bounded(queue_, Queued{subscription, std::move(message.value().event)})) ++events_lost_;
    return success();
  }
  const Callback callback = found->second;  // a copy: it may unsubscribe itself
  callback(message.value().event);
  return success();
}

void Client::set_receive_limit(Duration limit) {
  if (limit == receive_limit_) return;
  receive_limit_ = limit;
  const auto microseconds = limit.count() / 1000;
  const timeval time{microseconds / 1'000'000, microseconds % 1'000'000};
  setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
}

// Reads once and waits until the deadline for bytes to come. Returns false if none came. Usually this takes one system
// call, because the socket keeps its receive timeout from call to call.
Result<bool> Client::take_in(Time deadline) {
  constexpr Duration step = std::chrono::milliseconds{1};
  while (true) {
    const Duration left = deadline - node_now();
    if (left > Duration::zero()) set_receive_limit((left / step + 1) * step);
    const auto space = splitter_.space();
    const ssize_t n = recv(socket_.get(), space.data, space.size, left > Duration::zero() ? 0 : MSG_DONTWAIT);
    if (n > 0) {
      splitter_.filled(static_cast<std::size_t>(n));
      return true;
    }
    if (n == 0) return fail("hocketd has closed the connection; hocketd.log may say why");
    if (errno != EAGAIN && errno != EINTR) return fail("the connection to hocketd has ended: " + error_text(errno));
    if (left <= Duration::zero()) return false;
  }
}

template <class Done>
Result<bool> Client::pump(Done done, Duration timeout) {
  const Time deadline = deadline_after(timeout);
  while (!done()) {
    if (const Status ours = usable(); !ours) return ours.error();
    const auto payload = splitter_.next();
    if (!payload) return fail("hocketd sent an invalid frame: " + payload.error().text);
    if (payload.value()) {
      if (const Status sorted = sort(*payload.value()); !sorted) return sorted.error();
    } else {
      const auto taken = take_in(deadline);
      if (!taken) return taken.error();
      if (!taken.value()) return false;
    }
  }
  return true;
}

Result<OptionalEvent> Client::receive(Duration timeout) {
  const auto come = pump([this] { return !answers_.empty(); }, timeout);
  if (!come) return come.error();
  if (!come.value()) return OptionalEvent{};
  OptionalEvent event{std::move(answers_.front())};
  answers_.pop_front();
  return event;
}

Result<OptionalEvent> Client::next(Subscription subscription, Duration timeout) {
  auto found = queue_.end();
  const auto find = [&] {
    found = std::find_if(queue_.begin(), queue_.end(),
                         [&](const Queued& q) { return subscription == any || q.subscription == subscription; });
    return found != queue_.end();
  };
  const auto come = pump(find, timeout);
  if (!come) return come.error();
  if (!come.value()) return OptionalEvent{};
  OptionalEvent event{std::move(found->event)};
  queue_.erase(found);
  return event;
}

// hocketd answers LIST after everything that was sent before it. A refusal of that has therefore come before the
// answer.
Result<std::vector<event::Event>> Client::list() {
  std::size_t seen = answers_.size();
  if (const Status sent = send(event::List{}); !sent) return sent.error();
  std::optional<std::string> refused;
  std::vector<event::Event> listed;
  const auto done = [&] {
    while (seen < answers_.size()) {
      const event::Body& body = answers_[seen].body;
      const bool ends = std::holds_alternative<event::Daemon>(body);
      const bool is_listed = ends || std::holds_alternative<event::Application>(body) ||
                             std::holds_alternative<event::IoServer>(body) || std::holds_alternative<event::Node>(body);
      const auto* refusal = std::get_if<event::Refused>(&body);
      if (refusal != nullptr) refused = refusal->text;
      if (is_listed) listed.push_back(std::move(answers_[seen]));
      if (is_listed || refusal != nullptr) {
        answers_.erase(answers_.begin() + static_cast<std::ptrdiff_t>(seen));
      } else {
        ++seen;
      }
      if (ends) return true;
    }
    return false;
  };
  const auto come = pump(done, answer_limit);
  if (!come) return come.error();
  if (!come.value()) return fail("hocketd did not answer within 5 s; is it stopped?");
  if (refused) return Error{*refused};
  return listed;
}

Status Client::synchronise() {
  const auto answer = list();
  return answer ? success() : Status{answer.error()};
}

Status Client::request(const event::Body& body) {
  if (const Status sent = send(body); !sent) return sent;
  return synchronise();
}

Result<Client::Subscription> Client::subscribe(const std::string& filter, Callback callback) {
  if (const auto parsed = event::Filter::parse(filter); !parsed) return parsed.error();
  const Subscription subscription = ++last_;
  subscriptions_[subscription] = std::move(callback);
  Status agreed = send(event::Subscribe{subscription, filter});
  if (agreed) agreed = synchronise();
  if (agreed) return subscription;
  subscriptions_.erase(subscription);
  // The refusal may concern an earlier message. Then hocketd has accepted the subscription, and it must be ended.
  (void)send(event::Unsubscribe{subscription});
  return agreed.error();
}

Status Client::unsubscribe(Subscription subscription) {
  if (subscriptions_.erase(subscription) == 0) {
    return Error{"there is no subscription " + std::to_string(subscription)};
  }
  std::erase_if(queue_, [&](const Queued& q) { return q.subscription == subscription; });
  std::erase_if(waited_for_, [&](const auto& waited) { return waited.second == subscription; });
  return send(event::Unsubscribe{subscription});
}

Status Client::publish(const std::string& type, event::Properties properties) {
  if (type == event::SlowIoServer::name) {
    const auto told = told_slow(properties);
    return told ? send(told.value()) : Status{told.error()};
  }
  const event::User user{type, std::move(properties)};
  if (const Status allowed = check(user); !allowed) return allowed;
  return send(user);
}

Result<OptionalEvent> Client::wait(const std::string& filter, Duration timeout) {
  auto found = waited_for_.find(filter);
  if (found == waited_for_.end()) {
    const auto subscription = subscribe(filter);
    if (!subscription) return subscription.error();
    found = waited_for_.emplace(filter, subscription.value()).first;
  }
  return next(found->second, timeout);
}

}  // namespace hocket::bus
