// A stranger on the way between a client and a server over TCP: he relays each frame, and may change, repeat, withhold,
// or exchange frames.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <mutex>

#include "server/testing.hpp"

namespace hocket::server {
namespace {

using testing::bytes_of;
using testing::Handle;
using ::testing::HasSubstr;
using testing::limit;
using testing::secret;
using testing::Served;
using transport::Address;
using transport::OffsetPlace;
using transport::ServerLink;

constexpr std::size_t tag_size = sizeof(transport::FrameTag);

// Relays one connection. It gets each frame with its number in its direction, from 1 on, and returns what it sends on.
class FrameRelay {
 public:
  using Change = std::function<std::string(std::size_t number, const std::string& frame)>;

  FrameRelay() {
    auto made = transport::listen_tcp(transport::read_address("tcp:127.0.0.1:0").value());
    EXPECT_TRUE(made.ok());
    listener_ = std::move(made.value().socket);
    address = made.value().address;
  }
  ~FrameRelay() {
    stops_ = true;
    if (thread_.joinable()) thread_.join();
  }
  FrameRelay(const FrameRelay&) = delete;
  FrameRelay& operator=(const FrameRelay&) = delete;

  void start(const std::string& target) {
    thread_ = std::thread([this, target] { run(transport::read_address(target).value()); });
  }

  Address address;
  Change to_server = unchanged;
  Change to_client = unchanged;

  static std::string unchanged(std::size_t, const std::string& frame) { return frame; }

 private:
  // One direction. The greeting has no tags: one frame of the client, and two of the server.
  struct Direction {
    int from = -1, to = -1;
    std::size_t greeting = 0;
    const Change* change = nullptr;
    std::string bytes{};
    std::size_t frames = 0;
  };

  void run(const Address& target) {
    while (!transport::wait_for(listener_.get(), POLLIN, node_now() + std::chrono::milliseconds{20})) {
      if (stops_) return;
    }
    const Fd client{accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
    const auto server = transport::connect_to(target, node_now() + limit);
    ASSERT_TRUE(server.ok());
    std::array<Direction, 2> both{Direction{client.get(), server.value().get(), 1, &to_server},
                                  Direction{server.value().get(), client.get(), 2, &to_client}};
    while (!stops_) {
      std::array<pollfd, 2> waited{pollfd{both[0].from, POLLIN, 0}, pollfd{both[1].from, POLLIN, 0}};
      ::poll(waited.data(), waited.size(), 20);
      for (std::size_t i = 0; i < both.size(); ++i) {
        if (waited[i].revents != 0 && !pass_on(both[i])) return;
      }
    }
  }

  static bool pass_on(Direction& way) {
    std::array<char, 4096> part{};
    const ssize_t n = recv(way.from, part.data(), part.size(), 0);
    if (n <= 0) return false;
    way.bytes.append(part.data(), static_cast<std::size_t>(n));
    while (way.bytes.size() >= transport::header_bytes) {
      const auto header = transport::decode(std::string_view{way.bytes}.substr(0, transport::header_bytes));
      EXPECT_TRUE(header.ok());
      const std::size_t size = transport::header_bytes + header.value().meta + header.value().payload +
                               (way.frames < way.greeting ? 0 : tag_size);
      if (way.bytes.size() < size) break;
      const std::string sent = (*way.change)(++way.frames, way.bytes.substr(0, size));
      way.bytes.erase(0, size);
      if (send(way.to, sent.data(), sent.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(sent.size())) return false;
    }
    return true;
  }

  Fd listener_;
  std::thread thread_;
  std::atomic<bool> stops_ = false;
};

// Frames of the client after its proof: 2 opens, 3 and 4 write.
class Relayed : public Served {
 protected:
  // Starts a server whose clients mean the relay's address, as if the stranger were on the way to it.
  Result<std::unique_ptr<ServerLink>> connect_through(FrameRelay& relay) {
    identity_ = identity_of(relay.address);
    start();
    relay.start(tcp_);
    return ServerLink::connect(text_of(relay.address), secret, limit);
  }

  // Writes "first", then "second" at 10, through the relay. Returns the file's bytes when the server has ended.
  std::string file_after(FrameRelay::Change to_server) {
    FrameRelay relay;
    relay.to_server = std::move(to_server);
    const auto link = connect_through(relay);
    EXPECT_TRUE(link.ok()) << link.error().text;
    Handle handle = 1;
    link.value()->open("file", {}, testing::read_write, [&](int, Handle opened) { handle = opened; });
    finish(*link.value());
    error_ = write_now(*link.value(), handle, OffsetPlace{0}, bytes_of(std::string("first")));
    second_error_ = write_now(*link.value(), handle, OffsetPlace{10}, bytes_of(std::string("second")));
    stop();
    return contents();
  }

  int error_ = 0;         // of the first write
  int second_error_ = 0;  // of the second one
};

const std::string with_both("first\0\0\0\0\0second", 16);

std::string flipped(std::string frame, std::size_t at) {
  frame[at] = static_cast<char>(frame[at] ^ 1);
  return frame;
}

// Returns a change of the frame with this number.
template <class Changed>
FrameRelay::Change at_frame(std::size_t which, Changed changed) {
  return [which, changed](std::size_t number, const std::string& frame) {
    return number == which ? changed(frame) : frame;
  };
}

TEST_F(Relayed, WhatIsOnlyRelayedArrives) {
  EXPECT_EQ(file_after(FrameRelay::unchanged), with_both);
  EXPECT_EQ(error_, 0);
}

TEST_F(Relayed, AnAlteredPayloadIsNotWritten) {
  EXPECT_EQ(
      file_after(at_frame(3, [](const std::string& frame) { return flipped(frame, transport::header_bytes + 2); })),
      "");
  EXPECT_NE(error_, 0);
  EXPECT_NE(second_error_, 0);
  EXPECT_THAT(log_, HasSubstr("its tag is wrong"));
}

TEST_F(Relayed, AnAlteredHeaderIsNotObeyed) {
  constexpr std::size_t offset = 40;  // of Header::offset
  EXPECT_EQ(file_after(at_frame(3, [](const std::string& frame) { return flipped(frame, offset); })), "");
  EXPECT_THAT(log_, HasSubstr("its tag is wrong"));
}

TEST_F(Relayed, AnAlteredPathIsNotOpened) {
  EXPECT_EQ(file_after(at_frame(2, [](const std::string& frame) { return flipped(frame, transport::header_bytes); })),
            "");
  EXPECT_THAT(log_, HasSubstr("its tag is wrong"));
}

TEST_F(Relayed, AnAlteredTagIsWrong) {
  EXPECT_EQ(file_after(at_frame(3, [](const std::string& frame) { return flipped(frame, frame.size() - 1); })), "");
  EXPECT_THAT(log_, HasSubstr("its tag is wrong"));
}

TEST_F(Relayed, ARepeatedFrameEndsTheConnection) {
  const std::string left = file_after(at_frame(3, [](const std::string& frame) { return frame + frame; }));
  EXPECT_LE(left.size(), 5U) << "nothing after it";
  EXPECT_THAT(log_, HasSubstr("sent frame 3 after frame 3"));
}

TEST_F(Relayed, ARepeatedFrameWithAnotherNumberEndsTheConnection) {
  constexpr std::size_t sequence = 8;
  const std::string left = file_after(at_frame(3, [](const std::string& frame) {
    std::string again = frame;
    again[sequence] = 4;
    return frame + again;
  }));
  EXPECT_LE(left.size(), 5U) << "nothing after it";
  EXPECT_THAT(log_, HasSubstr("its tag is wrong"));
}

TEST_F(Relayed, WritesInAnotherOrderEndTheConnection) {
  // The client has both writes under way; the stranger exchanges them.
  FrameRelay relay;
  std::string held;
  relay.to_server = [&held](std::size_t number, const std::string& frame) {
    if (number == 3) held = frame;
    return number == 3 ? std::string{} : number == 4 ? frame + held : frame;
  };
  const auto link = connect_through(relay);
  ASSERT_TRUE(link.ok()) << link.error().text;
  const Handle handle = open_file(*link.value());
  std::vector<int> errors;
  const auto note = [&errors](int error, std::int64_t) { errors.push_back(error); };
  const std::string text = "text";
  link.value()->write(handle, OffsetPlace{0}, 0, bytes_of(text), note);
  link.value()->write(handle, OffsetPlace{2}, 0, bytes_of(text), note);
  finish(*link.value());
  ASSERT_EQ(errors.size(), 2U);
  EXPECT_NE(errors[0], 0);
  EXPECT_NE(errors[1], 0);
  stop();
  EXPECT_EQ(contents(), "");
  EXPECT_THAT(log_, HasSubstr("sent frame 4 after frame 2"));
}

TEST_F(Relayed, AFrameOfTheServerSentBackEndsTheConnection) {
  FrameRelay relay;
  std::string of_server;
  std::mutex mutex;
  relay.to_client = at_frame(3, [&](const std::string& frame) {
    const std::lock_guard lock{mutex};
    return of_server = frame;
  });
  relay.to_server = at_frame(3, [&](const std::string&) {
    const std::lock_guard lock{mutex};
    return of_server;  // number 3 of its own direction
  });
  const auto link = connect_through(relay);
  ASSERT_TRUE(link.ok()) << link.error().text;
  const Handle handle = open_file(*link.value());
  EXPECT_NE(write_now(*link.value(), handle, OffsetPlace{0}, bytes_of(std::string("first"))), 0);
  stop();
  EXPECT_EQ(contents(), "");
  EXPECT_THAT(log_, HasSubstr("its tag is wrong"));
}

TEST_F(Relayed, AReadOfAlteredBytesFails) {
  ASSERT_EQ(pwrite(file_.get(), "0123456789", 10, 0), 10);
  FrameRelay relay;
  relay.to_client = at_frame(4, [](const std::string& frame) { return flipped(frame, transport::header_bytes + 3); });
  const auto link = connect_through(relay);
  ASSERT_TRUE(link.ok()) << link.error().text;
  const Handle handle = open_file(*link.value());
  std::string into(10, '.');
  std::int64_t got = -1;
  EXPECT_NE(read_now(*link.value(), handle, OffsetPlace{0}, bytes_of(into), &got), 0);
  EXPECT_EQ(got, 0);
  EXPECT_THAT(link.value()->failure_text(), HasSubstr("its tag is wrong"));
}

TEST_F(Relayed, AGreetingForAnotherServerIsRefused) {
  start();  // clients of this server mean `tcp_`
  FrameRelay relay;
  relay.start(tcp_);
  const auto link = ServerLink::connect(text_of(relay.address), secret, limit);
  EXPECT_FALSE(link.ok());
  stop();
  EXPECT_THAT(log_, HasSubstr("means another server"));
}

TEST_F(Served, AServerOfThisNodeIsNotReachedByTcp) {
  start();
  const std::string here = tcp_ + "@" + transport::node_number();
  const auto link = ServerLink::connect("unix:/nowhere.sock " + here, secret, limit);
  ASSERT_FALSE(link.ok());
  EXPECT_THAT(link.error().text, HasSubstr("is on this node, where only its Unix socket is used"));
  EXPECT_FALSE(ServerLink::connect(here, secret, limit).ok());
  const auto elsewhere = ServerLink::connect(tcp_ + "@0000000000000000", secret, limit);
  EXPECT_TRUE(elsewhere.ok()) << elsewhere.error().text;
  EXPECT_TRUE(ServerLink::connect("unix:" + root_ + "/sock " + here, secret, limit).ok());
}

}  // namespace
}  // namespace hocket::server
