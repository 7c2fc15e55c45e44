#include "metrics/http_server.hpp"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "base/clock.hpp"

namespace hocket::metrics {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* wanted = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
constexpr auto at_most = std::chrono::seconds{20};

// A server in a directory of its own, and clients in the same thread.
class HttpServerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "hocket-metrics-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override {
    server_.reset();
    unlink(path().c_str());
    rmdir(directory_.c_str());
  }

  std::string path() const { return directory_ + "/socket"; }

  void start(HttpServer::HttpLimits limits = {}) {
    MetricsAddress address;
    address.path = path();
    auto server = HttpServer::listen(
        address, [this] { return ++rendered_, page_; }, limits);
    ASSERT_TRUE(server.ok()) << server.error().text;
    server_ = std::move(server).value();
  }

  Fd connect() const {
    Fd client{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path().c_str());
    EXPECT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0) << strerror(errno);
    return client;
  }

  static void send(const Fd& client, const std::string& text) {
    EXPECT_EQ(::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }

  // Serves while the server has something to do. Returns false if nothing came.
  bool serve() {
    bool any = false;
    pollfd ready{server_->descriptor(), POLLIN, 0};
    while (poll(&ready, 1, 0) > 0) {
      server_->serve();
      any = true;
    }
    return any;
  }

  // Returns all bytes up to the end of the connection, which the server must end.
  std::string answer(const Fd& client) {
    std::string text;
    std::array<char, 1000> bytes{};
    const Time limit = node_now() + at_most;
    for (;;) {
      serve();
      const ssize_t count = recv(client.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (count > 0) text.append(bytes.data(), static_cast<std::size_t>(count));
      if (count == 0 || (count < 0 && errno != EAGAIN)) return text;
      if (node_now() > limit) return text + " (and no end)";
      if (count < 0) {
        pollfd ready{server_->descriptor(), POLLIN, 0};
        poll(&ready, 1, 10);
      }
    }
  }

  std::string directory_;
  std::string page_ = "hocket_x 1\n";
  int rendered_ = 0;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, GivesThePageAndEndsTheConnection) {
  start();
  const Fd client = connect();
  send(client, wanted);
  const std::string text = answer(client);
  EXPECT_THAT(text, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                               "Content-Length: 11\r\n"));
  EXPECT_THAT(text, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_THAT(text, EndsWith("\r\n\r\nhocket_x 1\n"));
}

TEST_F(HttpServerTest, GivesHeadersAloneForHead) {
  start();
  const Fd client = connect();
  send(client, "HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
  const std::string text = answer(client);
  EXPECT_THAT(text, HasSubstr("Content-Length: 11\r\n"));
  EXPECT_THAT(text, EndsWith("\r\n\r\n"));
}

TEST_F(HttpServerTest, SaysWhichMethodsThereAre) {
  start();
  const Fd client = connect();
  send(client, "DELETE /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
  const std::string text = answer(client);
  EXPECT_THAT(text, StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"));
  EXPECT_THAT(text, HasSubstr("\r\nAllow: GET, HEAD\r\n"));
  EXPECT_EQ(rendered_, 0);
}

TEST_F(HttpServerTest, TakesARequestByteByByte) {
  start();
  const Fd client = connect();
  for (const char c : std::string{wanted}) {
    send(client, std::string(1, c));
    serve();
  }
  EXPECT_THAT(answer(client), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HttpServerTest, SendsALargePageInParts) {
  page_ = std::string(8'000'000, 'x');
  start();
  const Fd client = connect();
  send(client, wanted);
  serve();
  EXPECT_EQ(server_->connections(), 1U) << "the socket takes less than the page";
  EXPECT_THAT(answer(client), EndsWith(std::string(1000, 'x')));
}

TEST_F(HttpServerTest, AnswersThoughTheRequestIsTooLong) {
  start();
  const Fd client = connect();
  send(client, std::string(20'000, 'x'));
  EXPECT_THAT(answer(client), StartsWith("HTTP/1.1 431 "));
}

TEST_F(HttpServerTest, EndsAConnectionThatDoesNotAsk) {
  start({8, std::chrono::milliseconds{20}, std::chrono::milliseconds{60}});
  const Fd silent = connect();
  const Fd slow = connect();
  send(slow, "GET /met");
  EXPECT_THAT(answer(slow), StartsWith("HTTP/1.1 408 "));
  EXPECT_THAT(answer(silent), StartsWith("HTTP/1.1 408 "));
}

TEST_F(HttpServerTest, EndsAConnectionThatDoesNotRead) {
  page_ = std::string(8'000'000, 'x');
  start({8, std::chrono::milliseconds{20}, std::chrono::milliseconds{60}});
  const Fd client = connect();
  send(client, wanted);
  const Time limit = node_now() + at_most;
  do {
    pollfd ready{server_->descriptor(), POLLIN, 0};
    poll(&ready, 1, 10);
    serve();
  } while (server_->connections() > 0 && node_now() < limit);
  EXPECT_EQ(server_->connections(), 0U);
}

TEST_F(HttpServerTest, RefusesConnectionsBeyondItsLimit) {
  start({2, std::chrono::seconds{60}, std::chrono::seconds{60}});
  const Fd one = connect();
  const Fd two = connect();
  serve();
  const Fd third = connect();
  EXPECT_EQ(answer(third), "");
  EXPECT_FALSE(serve()) << "what is refused does not wake the loop again";
  EXPECT_EQ(server_->connections(), 2U);
  send(one, wanted);
  EXPECT_THAT(answer(one), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HttpServerTest, TakesANewClientInPlaceOfOneThatHasEnded) {
  start({2, std::chrono::seconds{60}, std::chrono::seconds{60}});
  const Fd one = connect();
  {
    const Fd two = connect();
    serve();
    send(two, "GET /met");
  }
  const Fd third = connect();
  send(third, wanted);
  EXPECT_THAT(answer(third), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HttpServerTest, TakesANewClientBehindOneThatHasEndedInTheQueue) {
  start({2, std::chrono::seconds{60}, std::chrono::seconds{60}});
  const Fd one = connect();
  serve();
  for (int i = 0; i < 5; ++i) send(connect(), "GET /met");
  const Fd last = connect();
  send(last, wanted);
  EXPECT_THAT(answer(last), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HttpServerTest, RendersOnePageInOneCall) {
  start();
  const Fd one = connect();
  const Fd two = connect();
  serve();
  send(one, wanted);
  send(two, wanted);
  server_->serve();
  EXPECT_EQ(rendered_, 1);
  serve();
  EXPECT_EQ(rendered_, 2);
}

TEST_F(HttpServerTest, LeavesAFileThatIsNoSocket) {
  std::ofstream{path()} << "precious";
  MetricsAddress address;
  address.path = path();
  const auto server = HttpServer::listen(address, [] { return std::string{}; });
  ASSERT_FALSE(server.ok());
  EXPECT_THAT(server.error().text, HasSubstr("there is a file that is no socket"));
  EXPECT_EQ(access(path().c_str(), F_OK), 0);
}

TEST_F(HttpServerTest, LeavesASocketAtWhichAnotherOneListens) {
  start();
  MetricsAddress address;
  address.path = path();
  const auto second = HttpServer::listen(address, [] { return std::string{}; });
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().text, HasSubstr("another process listens there"));
  struct stat status {};
  ASSERT_EQ(stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U) << "only this user reads it";
  server_.reset();
  EXPECT_NE(access(path().c_str(), F_OK), 0) << "the first one removes its own";
}

TEST(MetricsAddress, IsNumericOrAPath) {
  for (const char* text : {"127.0.0.1:9321", "localhost:0", "[::1]:9321", "unix:/run/x"}) {
    const auto address = parse_address(text);
    ASSERT_TRUE(address.ok()) << address.error().text;
    EXPECT_TRUE(address.value().is_local()) << text;
  }
  for (const char* text : {"0.0.0.0:9321", "[::]:9321", "10.0.0.1:80"}) {
    const auto address = parse_address(text);
    ASSERT_TRUE(address.ok()) << address.error().text;
    EXPECT_FALSE(address.value().is_local()) << text;
  }
  for (const char* text : {"9321", ":9321", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "a.b:80",
                           "::1:80", "[::1:80", "unix:x", "unix:", "127.0.0.1:80x"}) {
    const auto address = parse_address(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_THAT(address.error().text, StartsWith("'" + std::string{text} + "' is no address: "));
  }
  EXPECT_FALSE(parse_address("unix:/" + std::string(200, 'x')).ok());
}

TEST(MetricsAddress, GetsAPortFromTheKernel) {
  const auto address = parse_address("127.0.0.1:0");
  const auto listener = listen_at(address.value());
  ASSERT_TRUE(listener.ok());
  EXPECT_THAT(listener.value().text, StartsWith("127.0.0.1:"));
  EXPECT_NE(listener.value().text, "127.0.0.1:0");
  const auto again = listen_at(parse_address(listener.value().text).value());
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().text, "cannot serve metrics at " + listener.value().text + ": Address already in use");
}

}  // namespace
}  // namespace hocket::metrics
