#include "metrics/http_server.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.hpp"
#include "metrics/exposition.hpp"

namespace hocket::metrics {
namespace {

// Keys of epoll events; a connection has its number, which is above these.
constexpr std::uint64_t listener_key = 0;
constexpr std::uint64_t timer_key = 1;
constexpr std::uint64_t first_number = 2;

constexpr std::size_t events_in_a_call = 16;
constexpr std::size_t most_drained_bytes = 65536;
constexpr Duration accept_pause = std::chrono::milliseconds{100};

std::string_view reason_of(HttpStatus status) {
  switch (status) {
    case HttpStatus::ok: return "OK";
    case HttpStatus::bad_request: return "Bad Request";
    case HttpStatus::not_found: return "Not Found";
    case HttpStatus::method_not_allowed: return "Method Not Allowed";
    case HttpStatus::timeout: return "Request Timeout";
    case HttpStatus::too_large: return "Request Header Fields Too Large";
    case HttpStatus::version_not_supported: return "HTTP Version Not Supported";
  }
  return "";
}

// Returns the whole answer: status line, headers, and `body` unless only the headers were requested.
std::string answer_text(HttpRequest request, const std::string& body) {
  const bool ok = request.status == HttpStatus::ok;
  const std::string error =
      std::to_string(static_cast<int>(request.status)) + " " + std::string{reason_of(request.status)};
  const std::string& shown = ok ? body : error + "\n";
  std::string text = "HTTP/1.1 " + error + "\r\nContent-Type: ";
  text.append(ok ? content_type : "text/plain; charset=utf-8");
  text.append("\r\nContent-Length: ").append(std::to_string(shown.size()));
  text.append("\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n");
  if (request.status == HttpStatus::method_not_allowed) text.append("Allow: GET, HEAD\r\n");
  text.append("\r\n");
  if (!request.head) text.append(shown);
  return text;
}

// True if the call may succeed later.
bool must_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const MetricsAddress& address, RenderPage render,
                                                       HttpLimits limits) {
  std::unique_ptr<HttpServer> server{new HttpServer{std::move(render), limits}};
  if (const Status opened = server->open(address); !opened) return opened.error();
  return server;
}

HttpServer::~HttpServer() {
  if (!path_.empty()) unlink(path_.c_str());
}

Status HttpServer::open(const MetricsAddress& address) {
  last_number_ = first_number;
  epoll_ = Fd{epoll_create1(EPOLL_CLOEXEC)};
  timer_ = Fd{timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
  if (!epoll_ || !timer_) return Error{"cannot wait for requests to /metrics: " + error_text(errno)};
  auto listener = listen_at(address);
  if (!listener) return listener.error();
  listener_ = std::move(listener.value().socket);
  address_ = std::move(listener.value().text);
  path_ = address.path;
  if (const Status watched = watch(timer_.get(), timer_key, EPOLLIN); !watched) return watched;
  return watch(listener_.get(), listener_key, EPOLLIN);
}

Status HttpServer::watch(int fd, std::uint64_t key, std::uint32_t events) const {
  epoll_event wanted{};
  wanted.events = events;
  wanted.data.u64 = key;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &wanted) == 0) return success();
  if (errno == EEXIST && epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &wanted) == 0) return success();
  return Error{"cannot wait for requests to /metrics: " + error_text(errno)};
}

void HttpServer::serve() {
  const Time now = node_now();
  std::array<epoll_event, events_in_a_call> ready{};
  const int count = epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), 0);
  rendered_ = false;
  bool accepts = false;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t key = ready[static_cast<std::size_t>(i)].data.u64;
    if (key == listener_key) {
      accepts = true;
    } else if (key == timer_key) {
      std::uint64_t ignored = 0;
      (void)!read(timer_.get(), &ignored, sizeof ignored);
    } else if (const auto found = std::ranges::find(connections_, key, [](const auto& one) { return one->number; });
               found != connections_.end() && !advance(**found, now)) {
      close(key);
    }
  }
  end_late(now);
  // A client that has ended counts no more when another one comes.
  if (accepts) accept_connections(now);
  set_timer();
}

// A connection beyond the limit is closed at once. One that stays in the queue would wake the loop for ever. The limit
// counts only connections that were looked at before: others may have ended in the queue.
void HttpServer::accept_connections(Time now) {
  const bool full = connections_.size() >= limits_.connections;
  for (std::size_t i = 0; i < limits_.connections; ++i) {
    if (!full && connections_.size() >= limits_.connections) return;
    Fd socket{accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
    if (!socket) {
      if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS) return;
      epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
      accept_again_ = now + accept_pause;
      return;
    }
    if (full) continue;
    auto connection = std::make_unique<HttpConnection>();
    connection->number = ++last_number_;
    connection->deadline = now + limits_.request;
    connection->closes = now + limits_.connection;
    if (!watch(socket.get(), connection->number, EPOLLIN)) continue;
    connection->socket = std::move(socket);
    connections_.push_back(std::move(connection));
  }
}

bool HttpServer::advance(HttpConnection& connection, Time now) {
  switch (connection.state) {
    case ConnectionState::receiving: return receive(connection, now);
    case ConnectionState::sending: return send(connection);
    case ConnectionState::draining: return drain(connection);
  }
  return false;
}

bool HttpServer::receive(HttpConnection& connection, Time now) {
  // The request stays in the socket while this call may render no further page, and wakes the loop again.
  if (rendered_) return true;
  std::array<char, longest_request_bytes> bytes{};
  // Reading to the end finds a client that has gone, whose place another one may need.
  for (;;) {
    const ssize_t count = read(connection.socket.get(), bytes.data(), bytes.size() - connection.received.size());
    if (count <= 0) return count < 0 && must_wait();
    connection.received.append(bytes.data(), static_cast<std::size_t>(count));
    const auto request = parse_request(connection.received);
    if (!request) continue;
    connection.deadline = now + limits_.connection;
    return answer(connection, *request);
  }
}

bool HttpServer::answer(HttpConnection& connection, HttpRequest request) {
  const bool ok = request.status == HttpStatus::ok;
  connection.answer = answer_text(request, ok ? render_() : std::string{});
  rendered_ = rendered_ || ok;
  connection.state = ConnectionState::sending;
  return send(connection);
}

bool HttpServer::send(HttpConnection& connection) {
  const std::string& text = connection.answer;
  const ssize_t count = ::send(connection.socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
  if (count < 0 && !must_wait()) return false;
  connection.answer.erase(0, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  if (!connection.answer.empty()) return watch(connection.socket.get(), connection.number, EPOLLOUT).ok();
  // If the socket were closed while the client still sends, the client could lose the answer (RFC 9112, 9.6).
  connection.state = ConnectionState::draining;
  if (shutdown(connection.socket.get(), SHUT_WR) != 0) return false;
  return watch(connection.socket.get(), connection.number, EPOLLIN).ok() && drain(connection);
}

bool HttpServer::drain(HttpConnection& connection) const {
  std::array<char, longest_request_bytes> bytes{};
  while (connection.drained < most_drained_bytes) {
    const ssize_t count = read(connection.socket.get(), bytes.data(), bytes.size());
    if (count <= 0) return count < 0 && must_wait();
    connection.drained += static_cast<std::size_t>(count);
  }
  return false;
}

void HttpServer::close(std::uint64_t number) {
  std::erase_if(connections_, [number](const auto& one) { return one->number == number; });
}

void HttpServer::end_late(Time now) {
  if (accept_again_ && *accept_again_ <= now) {
    accept_again_.reset();
    if (!watch(listener_.get(), listener_key, EPOLLIN)) accept_again_ = now + accept_pause;
  }
  std::vector<std::uint64_t> ended;
  for (const auto& one : connections_) {
    if (deadline_of(*one) > now) continue;
    const bool answers = one->state == ConnectionState::receiving && one->closes > now;
    one->deadline = one->closes;
    if (!answers || !answer(*one, {HttpStatus::timeout})) ended.push_back(one->number);
  }
  for (const std::uint64_t number : ended) close(number);
}

void HttpServer::set_timer() {
  std::optional<Time> next = accept_again_;
  for (const auto& one : connections_) next = std::min(next.value_or(deadline_of(*one)), deadline_of(*one));
  itimerspec at{};  // 0: never
  if (next) {
    const std::int64_t ns = std::max<std::int64_t>(to_ns(*next), 1);
    at.it_value = {ns / 1'000'000'000, ns % 1'000'000'000};
  }
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &at, nullptr);
}

}  // namespace hocket::metrics
