#include "relay/relay.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <list>
#include <thread>

#include "base/clock.hpp"
#include "forward/relayed_call.hpp"
#include "transport/address.hpp"
#include "transport/greeting.hpp"

namespace hocket::relay {
namespace {

using forward::NameElsewhere;
using forward::RelayedCall;

TEST(NameElsewhereTest, AFileIsTheSameOnlyIfThatIsCertain) {
  const NameElsewhere file{"/a", 7, 100, "1:x"};
  EXPECT_TRUE(forward::is_same_file(file, file));
  EXPECT_TRUE(forward::is_same_file(file, {"/b", 7, 0, "1:x"})) << "it has two names";
  EXPECT_FALSE(forward::is_same_file(file, {"/a", 8, 100, "1:x"}));
  EXPECT_FALSE(forward::is_same_file(file, {"/a", 7, 101, "1:x"}));
  EXPECT_FALSE(forward::is_same_file(file, {"/a", 7, 100, "1:y"})) << "a later file with this number";
  EXPECT_TRUE(forward::is_same_file({"/a", 7, 100, ""}, {"/a", 7, 100, ""}));
  EXPECT_FALSE(forward::is_same_file({"/a", 7, 100, ""}, {"/a", 7, 101, ""}));
  EXPECT_FALSE(forward::is_same_file({"/a", 7, 0, ""}, {"/a", 7, 0, ""})) << "nothing tells them apart";
  EXPECT_FALSE(forward::is_same_file({"/a", 0, 100, "1:x"}, {"/a", 0, 100, "1:x"}));
}

TEST(RelayedCallTest, AFrameHasTheWholeCall) {
  RelayedCall call;
  call.kind = RelayedCall::Kind::write;
  call.syncs_data = true;
  call.offset = 12;
  call.bytes = 34;
  call.file = {"/dir/name with\nline", 5, 6, std::string("1:\0\1", 4)};
  const auto read = forward::read_call(forward::header_of(call), forward::meta_of(call));
  ASSERT_TRUE(read);
  EXPECT_EQ(read.value(), call);
  auto header = forward::header_of(call);
  EXPECT_FALSE(forward::read_call(header, "/no end"));
  EXPECT_FALSE(forward::read_call(header, "/a" + std::string(1, '\0') + std::string(500, 'x')));
  header.bytes = forward_most_bytes + 1;
  EXPECT_FALSE(forward::read_call(header, forward::meta_of(call)));
}

TEST(RelayedFilesTest, ASyncThatWasOvertakenByAWriteIsToBeRepeated) {
  RelayedFiles files;
  const FileNumber file{1, 2};
  files.note_write(file, "n1");
  const auto before = files.unsynced(file);
  files.note_write(file, "n2");
  files.note_sync(file, before);
  EXPECT_EQ(files.unsynced(file).nodes.size(), 2U);
  files.note_sync(file, files.unsynced(file));
  EXPECT_TRUE(files.unsynced(file).nodes.empty());
}

TEST(RelayedFilesTest, ASyncDoesNotTakeLaterWritesForEarlierOnes) {
  RelayedFiles files;
  const FileNumber file{1, 2};
  files.note_write(file, "n1");
  const auto before = files.unsynced(file);
  files.note_sync(file, before);
  files.note_write(file, "n2");
  files.note_sync(file, before);
  EXPECT_EQ(files.unsynced(file).nodes.size(), 1U);
}

// A relay whose server cannot be reached.
class RelayAlone : public testing::Test {
 protected:
  RelayAlone() {
    std::string name = "/tmp/hocket-test-XXXXXX";
    file_ = Fd{mkstemp(name.data())};
    path_ = name;
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, client_), 0);
  }
  ~RelayAlone() override {
    unlink(path_.c_str());
    for (const int end : client_) close(end);
  }

  forward_answer make(std::uint32_t call, std::int64_t offset, std::uint32_t is_own, bool fails = false) {
    RelayedFiles files;
    CallRelay relay{std::make_shared<RemoteServer>(RemoteServer::RemoteSettings{
                        .addresses = "unix:/tmp/hocket-test-none", .secret_file = "/none", .run = "r"}),
                    files, fails};
    forward_request request{};
    request.call = call;
    request.offset = offset;
    request.bytes = 4;
    request.is_own = is_own;
    forward_answer answer{};
    char memory[] = "data";
    relay.make(request, file_.get(), memory, client_[0], answer);
    return answer;
  }

  Fd file_;
  std::string path_;
  int client_[2] = {-1, -1};
};

TEST_F(RelayAlone, LeavesCallsToTheClientAndTheOffsetWhereItWas) {
  ASSERT_EQ(::write(file_.get(), "12345", 5), 5);
  for (const std::uint32_t call : {forward_read, forward_write}) {
    for (const std::int64_t offset : {-1, 2}) {
      EXPECT_EQ(make(call, offset, 1).own, static_cast<std::uint32_t>(forward_once));
      EXPECT_EQ(lseek(file_.get(), 0, SEEK_CUR), 5);
    }
  }
  const forward_answer failed = make(forward_write, -1, 1, true);
  EXPECT_EQ(failed.own, 0U);
  EXPECT_EQ(failed.error, EIO);
  EXPECT_EQ(lseek(file_.get(), 0, SEEK_CUR), 5);
  // What is not certain elsewhere is not a matter of the server.
  EXPECT_EQ(make(forward_write, -1, 0, true).own, static_cast<std::uint32_t>(forward_once));
  fcntl(file_.get(), F_SETFL, O_APPEND);
  EXPECT_EQ(make(forward_write, -1, 1, true).own, static_cast<std::uint32_t>(forward_once));
  EXPECT_EQ(make(forward_copy, -1, 1, true).own, static_cast<std::uint32_t>(forward_once));
  EXPECT_EQ(make(forward_sync, -1, 1, true).error, 0) << "nothing was written elsewhere";
}

constexpr Duration relay_test_limit = std::chrono::seconds{20};

// A server that admits all connections, and does with calls what the test says.
class PretendedServer {
 public:
  enum class Does : std::uint8_t { answers, refuses, ends, keeps_silent };
  // Gets the number of each call, from 1 on, and says what is done with it. It may wait.
  explicit PretendedServer(std::function<Does(int number)> does) : does_(std::move(does)) {
    std::string name = "/tmp/hocket-test-XXXXXX";
    directory_ = mkdtemp(name.data());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = directory_ + "/socket";
    std::copy(path.begin(), path.end(), address.sun_path);
    listener_ = Fd{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_.get(), 16), 0);
    acceptor_ = std::thread{[this] { accept_all(); }};
  }
  ~PretendedServer() {
    stops_ = true;
    acceptor_.join();
    for (std::thread& one : threads_) one.join();
    unlink((directory_ + "/socket").c_str());
    rmdir(directory_.c_str());
  }
  PretendedServer(const PretendedServer&) = delete;
  PretendedServer& operator=(const PretendedServer&) = delete;

  std::shared_ptr<RemoteServer> reached(Duration silence = relay_test_limit) const {
    return std::make_shared<RemoteServer>(RemoteServer::RemoteSettings{.addresses = "unix:" + directory_ + "/socket",
                                                                       .secret_file = "/none",
                                                                       .run = "r",
                                                                       .connecting = relay_test_limit,
                                                                       .silence = silence});
  }
  int calls() const { return calls_; }

 private:
  static constexpr Duration look = std::chrono::milliseconds{5};

  void accept_all() {
    while (!stops_) {
      if (!transport::wait_for(listener_.get(), POLLIN, node_now() + look)) continue;
      Fd socket{accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
      if (socket) threads_.emplace_back([this, taken = socket.release()] { serve(transport::Stream{Fd{taken}}); });
    }
  }

  void serve(transport::Stream stream) {
    transport::Greeting greeting{stream, {}};
    std::vector<std::byte> data(4096);
    while (!stops_ && !stream.ended()) {
      stream.flush();
      const auto got = stream.receive();
      if (got == transport::Stream::Got::nothing)
        transport::wait_for(stream.descriptor(), POLLIN, node_now() + look);
      else if (got == transport::Stream::Got::announced)
        stream.take_payload(std::span{data}.first(stream.header().payload));
      else if (got == transport::Stream::Got::frame && !take_frame(stream, greeting))
        return;
    }
  }

  bool take_frame(transport::Stream& stream, transport::Greeting& greeting) {
    const transport::Header& header = stream.header();
    if (header.type == transport::Type::prove) return greeting.take(stream).ok();
    if (header.type == transport::Type::chunk) return true;
    transport::Header answer;
    answer.type = transport::Type::answer;
    if (header.type == transport::Type::call) {
      const Does does = does_(++calls_);
      while (does == Does::keeps_silent && !stops_) std::this_thread::sleep_for(look);
      if (does == Does::keeps_silent || does == Does::ends) return false;
      answer.number = does == Does::refuses ? 1 : 0;
      answer.bytes = header.bytes;
    }
    stream.send(answer);
    return true;
  }

  const std::function<Does(int)> does_;
  std::string directory_;
  Fd listener_;
  std::atomic<bool> stops_ = false;
  std::atomic<int> calls_ = 0;
  std::thread acceptor_;
  std::list<std::thread> threads_;
};

using Does = PretendedServer::Does;

class WritesAtTheOffset : public RelayAlone, public testing::WithParamInterface<Does> {
 protected:
  // Has a relay of this server write four bytes at the file's offset.
  forward_answer written(CallRelay& relay, const char* text) const {
    forward_request request{};
    request.call = forward_write;
    request.offset = -1;
    request.bytes = 4;
    request.is_own = 1;
    forward_answer answer{};
    std::string data = text;
    relay.make(request, file_.get(), data.data(), client_[0], answer);
    return answer;
  }
  std::string content() const {
    std::ifstream in(path_);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

// None of them may go back to where the offset was: the other one has its place behind it.
TEST_P(WritesAtTheOffset, OfTwoThreadsBothStayIfTheServerMakesNone) {
  std::atomic<int> waiting = 0;
  const PretendedServer pretended{[&](int) {
    ++waiting;
    const Time until = node_now() + relay_test_limit;
    while (waiting < 2 && node_now() < until) std::this_thread::yield();
    return GetParam();
  }};
  RelayedFiles files;
  CallRelay relay{pretended.reached(), files, GetParam() == Does::refuses};
  std::thread other{[&] { EXPECT_EQ(written(relay, "aaaa").result, 4); }};
  EXPECT_EQ(written(relay, "bbbb").result, 4);
  other.join();
  EXPECT_TRUE(content() == "aaaabbbb" || content() == "bbbbaaaa") << content();
  EXPECT_EQ(lseek(file_.get(), 0, SEEK_CUR), 8);
}
INSTANTIATE_TEST_SUITE_P(Relays, WritesAtTheOffset, testing::Values(Does::refuses, Does::ends));

TEST(RemoteServerTest, IsSettledWhenItHasEndedTheConnectionOfTheUnknownCall) {
  std::shared_ptr<RemoteServer> server;
  {
    const PretendedServer pretended{[](int) { return Does::keeps_silent; }};
    server = pretended.reached(std::chrono::milliseconds{50});
    std::string data = "data";
    RemoteServer::RemoteAnswer answer;
    RelayedCall call;
    call.kind = RelayedCall::Kind::write;
    call.bytes = 4;
    EXPECT_EQ(server->make(call, data.data(), -1, answer), RemoteServer::Became::unknown);
    EXPECT_FALSE(server->is_settled());
  }
  EXPECT_TRUE(server->await_settled(relay_test_limit));
}

TEST(RelayedFilesTest, AWriteWaitsForOneWhoseClientHasEnded) {
  int client[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, client), 0);
  RelayedFiles files;
  const FileNumber file{1, 2};
  files.begin_write(file, client[0]);
  EXPECT_TRUE(files.await_clear(file, {})) << "it is as any two writes at a time";
  close(client[1]);
  EXPECT_FALSE(files.await_clear(file, {}));
  EXPECT_TRUE(files.await_clear({1, 3}, {}));
  std::thread other{[&] { files.end_write(file, client[0]); }};
  EXPECT_TRUE(files.await_clear(file, relay_test_limit));
  other.join();
  close(client[0]);
}

TEST(RemoteServerTest, IsUsedAgainAfterACallOfWhichNobodyKnows) {
  const PretendedServer pretended{[](int number) { return number < 3 ? Does::keeps_silent : Does::answers; }};
  const auto server = pretended.reached(std::chrono::seconds{1});
  std::string data = "data";
  RemoteServer::RemoteAnswer answer;
  RelayedCall call;
  call.bytes = 4;
  EXPECT_EQ(server->make(call, data.data(), -1, answer), RemoteServer::Became::over) << "a sync changes nothing later";
  EXPECT_TRUE(server->is_settled());
  call.kind = RelayedCall::Kind::write;
  EXPECT_EQ(server->make(call, data.data(), -1, answer), RemoteServer::Became::unknown);
  EXPECT_FALSE(server->is_settled());
  // Nobody waits for that write.
  EXPECT_EQ(server->make(call, data.data(), -1, answer), RemoteServer::Became::answered);
  EXPECT_TRUE(server->is_settled());
  EXPECT_EQ(pretended.calls(), 3);
}

}  // namespace
}  // namespace hocket::relay
