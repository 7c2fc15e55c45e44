// A stand-in for hocket-server, for tests of its client: it speaks the protocol in a thread, over a real socket, and
// keeps the bytes of one file in memory. Its settings make it fail in the ways that a client must survive.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "io_client/served_file.hpp"
#include "transport/address.hpp"
#include "transport/greeting.hpp"
#include "transport/staging.hpp"

namespace hocket::io_client {

// A file, which several servers may have in common.
struct SharedBytes {
  std::mutex mutex;
  std::string text;
};

inline std::shared_ptr<SharedBytes> no_bytes() { return std::make_shared<SharedBytes>(); }

// One server. Answers of data requests wait until nothing more comes for some milliseconds, as those of a busy server.
class StandIn {
 public:
  struct StandInSettings {
    bool tcp = false;     // else a Unix socket, with shared memory
    bool behind = false;  // writes behind
    bool mute = false;    // never answers data requests
    int open_error = 0;
    int data_error = 0;
    int sync_error = 0;
    bool stores = false;    // says at once that it has stored what it answered early
    int stored_error = 0;   // that it says then
    int dies_at = -1;       // number of the data request at which it dies, from 0 on; -1: it lives
    std::string stripes{};  // of a version of a data set: the servers that have them, as the text of a map
    int locate_error = 0;
    int part_error = 0;
    int find_error = 0;
    bool is_home = false;  // of each data set
  };
  static constexpr const char* secret = "the secret of this run";

  StandIn(std::shared_ptr<SharedBytes> bytes, StandInSettings settings)
      : bytes_(std::move(bytes)), settings_(std::move(settings)) {
    if (settings_.tcp) {
      auto tcp = transport::listen_tcp(transport::read_address("tcp:127.0.0.1:0").value());
      EXPECT_TRUE(tcp.ok());
      listener_ = std::move(tcp.value().socket);
      address_ = text_of(tcp.value().address);
      credentials_ = {secret, identity_of(tcp.value().address)};
    } else {
      std::string folder = "/tmp/hocket-client-XXXXXX";
      path_ = std::string{mkdtemp(folder.data())} + "/sock";
      sockaddr_un at{};
      at.sun_family = AF_UNIX;
      path_.copy(at.sun_path, sizeof at.sun_path - 1);
      listener_ = Fd{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
      EXPECT_EQ(bind(listener_.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
      EXPECT_EQ(listen(listener_.get(), 8), 0);
      address_ = "unix:" + path_;
    }
    thread_ = std::thread([this] { run(); });
  }
  ~StandIn() {
    stops_ = true;
    thread_.join();
    if (path_.empty()) return;
    unlink(path_.c_str());
    rmdir(path_.substr(0, path_.rfind('/')).c_str());
  }
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

  event::ServerMap::MappedServer server() const { return {"s", "/", address_}; }
  // Connects and opens the file; the caller awaits the answer.
  ServedFile open() const {
    ServedFile file{server(), secret};
    EXPECT_FALSE(file.lost()) << file.why();
    file.open("/file", {}, {.reads = true, .writes = true});
    return file;
  }

  std::atomic<int> requests = 0;         // for data
  std::atomic<int> most_unanswered = 0;  // data requests
  std::atomic<int> ends = 0;             // of collective operations
  std::atomic<int> participants = 0;     // that the last of these stated
  std::atomic<int> views = 0;
  std::atomic<int> finds = 0;
  std::atomic<int> closes = 0;
  std::atomic<std::int64_t> closed_at = -1;  // the end of the version that the last close stated
  // Has another version of its stripes, before a client asks for them.
  void stripe_over(std::string servers) {
    const std::lock_guard lock{bytes_->mutex};
    settings_.stripes = std::move(servers);
  }

 private:
  using Header = transport::Header;
  using Type = transport::Type;

  static Time soon() { return node_now() + std::chrono::milliseconds{10}; }

  void run() {
    while (!stops_ && !dead_) {
      if (!transport::wait_for(listener_.get(), POLLIN, soon())) continue;
      serve(Fd{accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)});
    }
    listener_ = Fd{};
  }

  void serve(Fd socket) {
    transport::Stream stream{std::move(socket)};
    transport::Greeting greeting{stream, credentials_};
    bool greeted = false;
    views_.clear();
    held_.clear();
    while (!stops_ && !dead_ && !stream.ended()) {
      stream.flush();
      switch (stream.receive()) {
        case transport::Stream::Got::ended: return;
        case transport::Stream::Got::nothing: wait(stream); break;
        case transport::Stream::Got::announced:
          payload_.resize(stream.header().payload);
          stream.take_payload(std::as_writable_bytes(std::span{payload_}));
          break;
        case transport::Stream::Got::frame:
          if (greeted) {
            take(stream);
          } else {
            EXPECT_TRUE(greeting.take(stream).ok());
            greeted = true;
          }
      }
    }
  }

  void wait(transport::Stream& stream) {
    const short events = stream.has_unsent() ? POLLIN | POLLOUT : POLLIN;
    if (transport::wait_for(stream.descriptor(), events, soon()) || settings_.mute) return;
    for (auto& [header, data] : held_) {
      const auto owner = std::make_shared<std::string>(std::move(data));
      stream.send(header, {}, std::as_bytes(std::span{*owner}), owner);
    }
    if (!held_.empty() && settings_.stores) {
      Header stored;
      stored.type = Type::stored;
      stored.handle = 1;
      stored.error = settings_.stored_error;
      stream.send(stored);
    }
    held_.clear();
  }

  void answer(transport::Stream& stream, int error, std::int64_t bytes = 0, std::uint64_t handle = 0,
              const std::string& text = {}) {
    Header header;
    header.request = stream.header().request;
    header.error = error;
    header.bytes = bytes;
    header.handle = handle;
    header.number = 7;  // version of a data set
    stream.send(header, text);
  }

  void take(transport::Stream& stream) {
    const Header& header = stream.header();
    switch (header.type) {
      case Type::share: segment_ = transport::SharedSegment::map(stream.take_descriptor(), header.bytes); break;
      case Type::open: answer(stream, settings_.open_error, settings_.behind ? 1 : 0, 1); break;
      case Type::join: answer(stream, settings_.open_error, 99, 1); break;
      case Type::view:
        ++views;
        views_.insert_or_assign(header.number, layout::read_view(stream.meta()).value());
        break;
      case Type::end:
        participants = static_cast<int>(header.number);
        ++ends;
        break;
      case Type::store: answer(stream, 0); break;
      case Type::locate: {
        const std::lock_guard lock{bytes_->mutex};
        answer(stream, settings_.locate_error, 0, 55, settings_.stripes);
        break;
      }
      case Type::part:
        EXPECT_EQ(header.operation, 55U);
        answer(stream, settings_.part_error, 0, 1);
        break;
      case Type::find:
        ++finds;
        answer(stream, settings_.find_error, settings_.is_home ? 1 : 0);
        break;
      case Type::close:
        ++closes;
        closed_at = header.offset;
        answer(stream, settings_.sync_error);
        break;
      case Type::sync: answer(stream, settings_.sync_error); break;
      case Type::write:
      case Type::read:
        dead_ = requests++ == settings_.dies_at;
        if (!dead_) hold(header, stream.meta());
        break;
      default: ADD_FAILURE() << "a frame of type " << static_cast<int>(header.type);
    }
  }

  // Performs a data request and keeps the answer.
  void hold(const Header& header, std::string_view meta) {
    const auto view = views_.find(header.number);
    const auto runs = transport::runs_of(header, meta, view == views_.end() ? nullptr : &view->second);
    ASSERT_TRUE(runs.ok()) << runs.error().text;
    const auto size = static_cast<std::size_t>(header.bytes);
    const bool shared = header.has(transport::flag::shared);
    payload_.resize(size);
    char* const data = shared ? reinterpret_cast<char*>(segment_->bytes().data() + header.shared) : payload_.data();
    Header answered;
    answered.request = header.request;
    answered.error = settings_.data_error;
    answered.number = settings_.behind && header.type == Type::write ? 1 : 0;
    if (answered.error == 0) answered.bytes = move(header.type == Type::write, runs.value(), data);
    std::string sent;
    if (!shared && header.type == Type::read) sent = payload_.substr(0, static_cast<std::size_t>(answered.bytes));
    held_.emplace_back(answered, std::move(sent));
    most_unanswered = std::max(most_unanswered.load(), static_cast<int>(held_.size()));
  }

  // Moves the data of the runs. Returns the number of bytes, fewer than all if a read reaches the end of the file.
  std::int64_t move(bool writes, const std::vector<transport::FileRun>& runs, char* data) {
    const std::lock_guard lock{bytes_->mutex};
    std::string& text = bytes_->text;
    std::int64_t moved = 0;
    for (const transport::FileRun& run : runs) {
      const auto at = static_cast<std::size_t>(run.at), end = static_cast<std::size_t>(run.end());
      if (writes && text.size() < end) text.resize(end);
      const std::size_t count = std::min(end, std::max(at, text.size())) - at;
      if (writes) std::memcpy(text.data() + at, data + moved, count);
      if (!writes) std::memcpy(data + moved, text.data() + at, count);
      moved += static_cast<std::int64_t>(count);
      if (at + count < end) break;
    }
    return moved;
  }

  std::shared_ptr<SharedBytes> bytes_;
  StandInSettings settings_;
  Fd listener_;
  std::string address_, path_;
  transport::Credentials credentials_;  // empty for a Unix socket
  std::shared_ptr<transport::SharedSegment> segment_;
  std::map<std::uint32_t, layout::FileView> views_;
  std::vector<std::pair<Header, std::string>> held_;
  std::string payload_;
  std::atomic<bool> stops_ = false;
  bool dead_ = false;  // used by the thread alone
  std::thread thread_;
};

}  // namespace hocket::io_client
