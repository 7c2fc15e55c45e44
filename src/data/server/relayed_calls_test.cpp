#include "server/relayed_calls.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/clock.hpp"
#include "forward/forward_service.hpp"
#include "transport/address.hpp"

namespace hocket::server {
namespace {

using forward::RelayedCall;
using transport::Header;
using transport::Stream;
using transport::Type;

constexpr Duration relayed_limit = std::chrono::seconds{20};

// A relay's end of a connection.
struct RelayEnd {
  Stream stream;

  void call(const RelayedCall& made, std::string& data) {
    if (!data.empty()) {
      Header chunk;
      chunk.type = Type::chunk;
      chunk.bytes = static_cast<std::int64_t>(data.size());
      stream.send(chunk, {}, std::as_bytes(std::span{data}));
    }
    stream.send(forward::header_of(made), forward::meta_of(made));
    while (stream.has_unsent()) {
      stream.flush();
      ASSERT_TRUE(transport::wait_for(stream.descriptor(), POLLOUT, node_now() + relayed_limit));
    }
  }

  // Returns the next answer; nothing if the connection has ended. The data of a read come before.
  std::optional<Header> answer(std::string* data = nullptr) {
    const Time until = node_now() + relayed_limit;
    while (true) {
      switch (stream.receive()) {
        case Stream::Got::ended: return std::nullopt;
        case Stream::Got::announced:
          data->resize(stream.header().payload);
          stream.take_payload(std::as_writable_bytes(std::span{*data}));
          break;
        case Stream::Got::frame:
          if (stream.header().type == Type::answer) return stream.header();
          break;
        case Stream::Got::nothing:
          if (!transport::wait_for(stream.descriptor(), POLLIN, until)) return std::nullopt;
      }
    }
  }
};

// The calls of relays, carried out in a directory of their own, beside a file outside of it.
class RelayedCallsTest : public ::testing::Test {
 protected:
  explicit RelayedCallsTest(std::int64_t limit_bytes_per_s = 0) {
    std::string name = "/tmp/hocket-test-XXXXXX";
    root_ = mkdtemp(name.data());
    std::filesystem::create_directory(root_ + "/data");
    auto listener = forward::listen_for_forwarding(root_ + "/socket");
    auto service = forward::ForwardService::start({.threads = 2, .limit_bytes_per_s = limit_bytes_per_s},
                                                  root_ + "/data", std::move(listener).value(), [](const auto&) {});
    service_ = std::move(service).value();
    calls_ = RelayedCalls::make(root_ + "/data", root_ + "/socket", [](const std::string&) {}).value();
    file_ = open("file");
  }
  ~RelayedCallsTest() override {
    calls_.reset();
    service_.reset();
    std::filesystem::remove_all(root_);
  }

  Fd open(const std::string& name) const {
    return Fd{::open((root_ + "/data/" + name).c_str(), O_RDWR | O_CREAT, 0600)};
  }

  // Connects as a relay of the run, which waits to be admitted.
  RelayEnd begin(std::uint64_t generation, const std::string& run = "run", uid_t user = geteuid()) {
    int both[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both), 0);
    RelayEnd end{Stream{Fd{both[0]}}};
    Header header;
    header.type = Type::relay;
    header.operation = generation;
    header.handle = user;
    end.stream.send(header, run);
    end.stream.flush();
    Stream other{Fd{both[1]}};
    EXPECT_TRUE(transport::wait_for(other.descriptor(), POLLIN, node_now() + relayed_limit));
    EXPECT_EQ(other.receive(), Stream::Got::frame);
    calls_->take(std::move(other));
    return end;
  }
  RelayEnd admitted(std::uint64_t generation = 1) {
    RelayEnd end = begin(generation);
    EXPECT_TRUE(end.answer());
    return end;
  }

  static RelayedCall of(const Fd& file, RelayedCall::Kind kind, std::int64_t offset, std::int64_t bytes) {
    RelayedCall call;
    call.kind = kind;
    call.offset = offset;
    call.bytes = bytes;
    call.file = forward::name_elsewhere(file.get()).value();
    return call;
  }

  std::string content(const std::string& name = "file") const {
    std::ifstream in(root_ + "/data/" + name);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::string root_;
  std::unique_ptr<forward::ForwardService> service_;
  std::unique_ptr<RelayedCalls> calls_;
  Fd file_;
};

class SlowRelayedCalls : public RelayedCallsTest {
 protected:
  SlowRelayedCalls() : RelayedCallsTest(1'000'000) {}
};

TEST_F(RelayedCallsTest, AreCarriedOutInTheFileOfThatName) {
  RelayEnd relay = admitted();
  std::string text = "written elsewhere";
  relay.call(of(file_, RelayedCall::Kind::write, 3, 17), text);
  const auto written = relay.answer();
  ASSERT_TRUE(written);
  EXPECT_EQ(written->bytes, 17);
  EXPECT_EQ(written->number, 0U);
  EXPECT_EQ(content(), std::string(3, '\0') + text);
  std::string none, got;
  relay.call(of(file_, RelayedCall::Kind::read, 11, 100), none);
  const auto read = relay.answer(&got);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->bytes, 9);
  EXPECT_EQ(got, "elsewhere");
  relay.call(of(file_, RelayedCall::Kind::sync, 0, 0), none);
  const auto synced = relay.answer();
  ASSERT_TRUE(synced);
  EXPECT_EQ(synced->error, 0);
}

TEST_F(RelayedCallsTest, NothingIsDoneWithAnotherFile) {
  RelayEnd relay = admitted();
  std::string text = "data";
  const auto is_refused = [&](const RelayedCall& call) {
    relay.call(call, text);
    const auto answer = relay.answer();
    return answer && answer->number == 1;
  };
  RelayedCall call = of(file_, RelayedCall::Kind::write, 0, 4);
  std::filesystem::rename(root_ + "/data/file", root_ + "/data/renamed");
  EXPECT_TRUE(is_refused(call));
  const Fd later = open("file");
  EXPECT_TRUE(is_refused(call)) << "another file has the name";
  call.file.inode = forward::name_elsewhere(later.get())->inode;
  EXPECT_TRUE(is_refused(call)) << "its number was used before";
  call = of(file_, RelayedCall::Kind::write, 0, 4);
  EXPECT_FALSE(is_refused(call));
  std::filesystem::remove(root_ + "/data/renamed");
  call = of(file_, RelayedCall::Kind::write, 0, 4);
  EXPECT_TRUE(is_refused(call)) << "it has no name";
  const Fd outside{::open((root_ + "/outside").c_str(), O_RDWR | O_CREAT, 0600)};
  call = of(outside, RelayedCall::Kind::write, 0, 4);
  EXPECT_TRUE(is_refused(call));
  call.file.path = root_ + "/data/../outside";
  EXPECT_TRUE(is_refused(call));
  std::filesystem::create_symlink(root_ + "/outside", root_ + "/data/link");
  call.file.path = root_ + "/data/link";
  EXPECT_TRUE(is_refused(call));
  EXPECT_EQ(std::filesystem::file_size(root_ + "/outside"), 0U);
  EXPECT_EQ(content(), "");
}

TEST_F(SlowRelayedCalls, ALaterGenerationIsAdmittedWhenNothingOfTheEarlierOnesIsUnderWay) {
  RelayEnd earlier = admitted(1);
  std::string text(400'000, 'a');
  const Time began = node_now();
  earlier.call(of(file_, RelayedCall::Kind::write, 0, 400'000), text);
  ASSERT_TRUE(begin(1, "another run").answer()) << "it waits for its own calls only";
  RelayEnd later = begin(2);
  ASSERT_TRUE(later.answer());
  const bool was_made = content().size() == text.size();
  EXPECT_TRUE(!was_made || node_now() - began >= std::chrono::milliseconds{390});
  // Whether it was made or not, nothing of it comes any more.
  std::string newer(400'000, 'b');
  later.call(of(file_, RelayedCall::Kind::write, 0, 400'000), newer);
  ASSERT_TRUE(later.answer());
  while (earlier.answer()) continue;
  EXPECT_TRUE(earlier.stream.closed_by_peer());
  EXPECT_EQ(content(), newer);
}

TEST_F(RelayedCallsTest, WhatIsReceivedAfterTheEndIsNotCarriedOut) {
  RelayEnd relay = admitted();
  // The server's thread may see the call before the end; never half of one.
  std::string text(100'000, 'a');
  relay.call(of(file_, RelayedCall::Kind::write, 0, 100'000), text);
  shutdown(relay.stream.descriptor(), SHUT_WR);
  while (relay.answer()) continue;
  EXPECT_TRUE(relay.stream.closed_by_peer());
  const std::size_t size = content().size();
  EXPECT_TRUE(size == 0 || size == text.size()) << size;
}

TEST_F(RelayedCallsTest, ARelayOfAnotherUserIsRefused) { EXPECT_FALSE(begin(1, "run", geteuid() + 1).answer()); }

TEST_F(RelayedCallsTest, AConnectionThatSendsSomethingElseEnds) {
  RelayEnd relay = admitted();
  Header header;
  header.type = Type::chunk;
  header.shared = forward_most_bytes;
  header.bytes = 4;
  const std::string text = "data";
  relay.stream.send(header, {}, std::as_bytes(std::span{text}));
  relay.stream.flush();
  EXPECT_FALSE(relay.answer());
  RelayEnd other = admitted();
  header = {};
  header.type = Type::call;
  header.flags = transport::flag::reads | transport::flag::writes;
  other.stream.send(header, std::string("/a\0", 3));
  other.stream.flush();
  EXPECT_FALSE(other.answer());
}

}  // namespace
}  // namespace hocket::server
