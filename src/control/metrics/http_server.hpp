// A small HTTP server for one page, in the event loop of somebody else: the loop watches `descriptor` and calls
// `serve`.
//
//   accepted ──► receiving ──► sending ──► draining ──► closed
//                    │ time limit: 408 ──────┘   any: time limit, error
//
// Everything is bounded, because the loop gives out grants: connections, the bytes of a request, the time of a
// connection, and the work of one call, which renders at most one page. No call blocks. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "metrics/address.hpp"
#include "metrics/request.hpp"

namespace hocket::metrics {

class HttpServer {
 public:
  // Returns the text of the page, in the format of exposition.hpp.
  using RenderPage = std::function<std::string()>;
  struct HttpLimits {
    std::size_t connections = 8;
    Duration request = std::chrono::seconds{2};      // until the request is complete
    Duration connection = std::chrono::seconds{10};  // until the connection is closed
  };

  // Listens at the address. The destructor closes all connections, and removes a Unix socket.
  static Result<std::unique_ptr<HttpServer>> listen(const MetricsAddress& address, RenderPage render,
                                                    HttpLimits limits);
  static Result<std::unique_ptr<HttpServer>> listen(const MetricsAddress& address, RenderPage render) {
    return listen(address, std::move(render), HttpLimits{});
  }
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Becomes readable when `serve` has something to do.
  int descriptor() const { return epoll_.get(); }
  void serve();

  // The address as text, with the real port.
  const std::string& address() const { return address_; }
  std::size_t connections() const { return connections_.size(); }

 private:
  enum class ConnectionState { receiving, sending, draining };
  struct HttpConnection {
    std::uint64_t number = 0;
    Fd socket;
    ConnectionState state = ConnectionState::receiving;
    Time deadline{};  // of the state
    Time closes{};    // end of the connection in any case
    std::string received;
    std::string answer;  // what is still to be sent
    std::size_t drained = 0;
  };

  HttpServer(RenderPage render, HttpLimits limits) : render_(std::move(render)), limits_(limits) {}
  Status open(const MetricsAddress& address);
  Status watch(int fd, std::uint64_t key, std::uint32_t events) const;

  void accept_connections(Time now);
  // Each returns false if the connection is to be closed.
  bool advance(HttpConnection& connection, Time now);
  bool receive(HttpConnection& connection, Time now);
  bool send(HttpConnection& connection);
  bool drain(HttpConnection& connection) const;
  bool answer(HttpConnection& connection, HttpRequest request);
  void close(std::uint64_t number);
  void end_late(Time now);
  // Sets the timer to the next deadline.
  void set_timer();
  Time deadline_of(const HttpConnection& connection) const { return std::min(connection.deadline, connection.closes); }

  RenderPage render_;
  HttpLimits limits_;
  std::string address_;
  std::string path_;  // of a Unix socket that is to be removed
  Fd epoll_;
  Fd listener_;
  Fd timer_;
  bool rendered_ = false;             // in this call
  std::optional<Time> accept_again_;  // no descriptor is free: time of the next attempt
  std::uint64_t last_number_ = 0;
  std::vector<std::unique_ptr<HttpConnection>> connections_;
};

}  // namespace hocket::metrics
