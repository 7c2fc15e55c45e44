// A fixture for tests of a server and its clients: both run in one process, the server's loop in a thread, over real
// sockets and files.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.hpp"
#include "bus/local_socket.hpp"
#include "server/server.hpp"
#include "transport/address.hpp"
#include "transport/server_link.hpp"

namespace hocket::server::testing {

using transport::OpenMode;
using transport::ServerLink;
using Link = std::unique_ptr<ServerLink>;
using Handle = ServerLink::Handle;

inline constexpr Duration limit = std::chrono::seconds{30};
inline constexpr const char* secret = "the secret of this run";
inline constexpr OpenMode read_write{.reads = true, .writes = true};

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::span<std::byte> bytes_of(std::string& text) {
  return {reinterpret_cast<std::byte*>(text.data()), text.size()};
}

class Served : public ::testing::Test {
 protected:
  Served() {
    std::string name = "/tmp/hocket-server-XXXXXX";
    root_ = mkdtemp(name.data());
    mkdir((root_ + "/data").c_str(), 0700);
    file_ = Fd{open((root_ + "/data/file").c_str(), O_RDWR | O_CREAT, 0600)};
  }
  ~Served() override {
    stop();
    const int done = std::system(("rm -rf " + root_).c_str());
    EXPECT_EQ(done, 0);
  }

  void start(const HocketServer::ServerSettings& settings = {}) {
    auto made =
        HocketServer::make(settings, root_ + "/data", load_, [this](const std::string& line) { log_ += line + "\n"; });
    ASSERT_TRUE(made.ok()) << made.error().text;
    server_ = std::move(made).value();
    auto local = bus::listen_at(root_ + "/sock");
    ASSERT_TRUE(local.ok()) << local.error().text;
    server_->listen(std::move(local).value(), {});
    auto tcp = transport::listen_tcp(transport::read_address("tcp:127.0.0.1:0").value());
    ASSERT_TRUE(tcp.ok()) << tcp.error().text;
    server_->listen(std::move(tcp.value().socket),
                    {secret, identity_.empty() ? identity_of(tcp.value().address) : identity_});
    tcp_ = text_of(tcp.value().address);
    stop_ = Fd{eventfd(0, EFD_CLOEXEC)};
    thread_ = std::thread([this] { server_->run(stop_.get()); });
  }

  void stop() {
    if (!thread_.joinable()) return;
    constexpr std::uint64_t one = 1;
    ASSERT_EQ(write(stop_.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
    thread_.join();
    server_.reset();
  }

  Link connect() {
    auto link = ServerLink::connect("unix:" + root_ + "/sock", "", limit);
    EXPECT_TRUE(link.ok()) << link.error().text;
    return std::move(link).value();
  }

  static void drive(ServerLink& link, const std::function<bool()>& done) {
    const Time deadline = node_now() + limit;
    while (!done()) {
      if (link.poll()) continue;
      ASSERT_LT(node_now(), deadline) << "the server did not answer";
      if (!link.failed())
        transport::wait_for(link.descriptor(), link.events(), node_now() + std::chrono::milliseconds{50});
    }
  }
  static void finish(ServerLink& link) {
    drive(link, [&] { return link.pending() == 0; });
  }

  Handle open_file(ServerLink& link, OpenMode mode = read_write, const std::string& path = "file", int expected = 0,
                   const transport::FileIdentity& wanted = {}) {
    Handle handle = 0;
    int error = -1;
    link.open(path, wanted, mode, [&](int its_error, Handle its_handle) {
      error = its_error;
      handle = its_handle;
    });
    finish(link);
    EXPECT_EQ(error, expected) << path;
    return handle;
  }

  // Sends one request and waits for its answer. Returns the error; `got` receives the number of bytes.
  static int write_now(ServerLink& link, Handle handle, const transport::FilePlace& place,
                       std::span<const std::byte> data, std::int64_t* got = nullptr) {
    int result = -1;
    link.write(handle, place, 0, data, [&](int error, std::int64_t bytes) {
      result = error;
      if (got != nullptr) *got = bytes;
    });
    finish(link);
    return result;
  }
  static int read_now(ServerLink& link, Handle handle, const transport::FilePlace& place, std::span<std::byte> into,
                      std::int64_t* got = nullptr) {
    int result = -1;
    link.read(handle, place, 0, into, [&](int error, std::int64_t bytes) {
      result = error;
      if (got != nullptr) *got = bytes;
    });
    finish(link);
    return result;
  }
  static int sync_now(ServerLink& link, Handle handle) {
    int result = -1;
    link.sync(handle, [&](int error, std::int64_t) { result = error; });
    finish(link);
    return result;
  }
  static int close_now(ServerLink& link, Handle handle) {
    int result = -1;
    link.close(handle, [&](int error, std::int64_t) { result = error; });
    finish(link);
    return result;
  }
  static std::int64_t told(ServerLink& link, const std::string& key) {
    std::string state;
    link.state([&](int, std::string_view text) { state = text; });
    finish(link);
    const std::size_t at = state.find(key + " ");
    EXPECT_NE(at, std::string::npos) << state;
    return at == std::string::npos ? -1 : std::atoll(state.c_str() + at + key.size() + 1);
  }

  std::string contents() const {
    struct stat status {};
    fstat(file_.get(), &status);
    std::string text(static_cast<std::size_t>(status.st_size), '\0');
    EXPECT_EQ(pread(file_.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    return text;
  }

  std::string root_;
  std::string tcp_;
  std::string identity_;  // that a client over TCP must mean; set before start(); else that of `tcp_`
  Fd file_;
  LoadCounters load_;
  std::string log_;
  std::unique_ptr<HocketServer> server_;
  Fd stop_;
  std::thread thread_;
};

inline layout::FileView strided(std::int64_t displacement, std::int64_t block, std::int64_t stride) {
  const auto run = layout::contiguous_bytes(block);
  const auto type = layout::resized(0, stride, run.value());
  return layout::FileView::make(displacement, type.value()).value();
}

inline std::string serialised(const layout::FileView& view) {
  std::string text;
  layout::append(view, text);
  return text;
}

}  // namespace hocket::server::testing
