#include "forward/forward_service.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace hocket::forward {
namespace {

// A service in a directory of its own.
class Forwarding : public testing::Test {
 protected:
  Forwarding() {
    std::string name = "/tmp/hocket-test-XXXXXX";
    directory_ = mkdtemp(name.data());
    auto listener = listen_for_forwarding(directory_ + "/socket");
    EXPECT_TRUE(listener);
    auto service = ForwardService::start({.threads = 2}, directory_, std::move(listener).value(),
                                         [this](const std::string& line) { logged_ = line; });
    EXPECT_TRUE(service);
    service_ = std::move(service).value();
  }
  ~Forwarding() override {
    service_.reset();
    std::filesystem::remove_all(directory_);
  }

  Fd connect() {
    Fd socket{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (directory_ + "/socket").copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return socket;
  }

  Fd open(const std::string& name) { return Fd{::open((directory_ + "/" + name).c_str(), O_RDWR | O_CREAT, 0600)}; }

  std::string directory_;
  std::string logged_;
  std::unique_ptr<ForwardService> service_;
};

template <class Message>
void send(const Fd& socket, Message message, std::initializer_list<int> descriptors) {
  iovec data{&message, sizeof message};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(4 * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (descriptors.size() > 0) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(part), std::data(descriptors), descriptors.size() * sizeof(int));
  }
  ASSERT_EQ(sendmsg(socket.get(), &header, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof message));
}

// Returns the next message; nothing if the service has ended the connection.
template <class Message>
std::optional<Message> receive(const Fd& socket) {
  pollfd ready{socket.get(), POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 20'000), 1) << "the service did not answer";
  Message message{};
  const ssize_t bytes = recv(socket.get(), &message, sizeof message, 0);
  return bytes == static_cast<ssize_t>(sizeof message) ? std::optional(message) : std::nullopt;
}

Fd segment(std::int64_t bytes = forward_most_bytes, int seals = F_SEAL_SHRINK | F_SEAL_GROW) {
  Fd memory{memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  EXPECT_EQ(ftruncate(memory.get(), bytes), 0);
  EXPECT_EQ(fcntl(memory.get(), F_ADD_SEALS, seals), 0);
  return memory;
}

constexpr forward_hello hello{.version = forward_version, .processes = 0, .application = {}};

// Returns a connection that may send requests.
Fd greeted(Fd socket, const Fd& memory) {
  send(socket, hello, {memory.get()});
  const auto welcome = receive<forward_welcome>(socket);
  EXPECT_TRUE(welcome && welcome->error == 0);
  return socket;
}

forward_request request(forward_call call, std::int64_t offset, std::int64_t bytes) {
  return {.call = call, .flags = 0, .offset = offset, .from_offset = -1, .bytes = bytes};
}

TEST_F(Forwarding, MakesTheCallWithTheClientsOwnDescriptor) {
  const Fd memory = segment(), file = open("a");
  const Fd socket = greeted(connect(), memory);
  ASSERT_EQ(pwrite(memory.get(), "abcdef", 6, 0), 6);
  send(socket, request(forward_write, -1, 6), {file.get()});
  EXPECT_EQ(receive<forward_answer>(socket)->result, 6);
  EXPECT_EQ(lseek(file.get(), 0, SEEK_CUR), 6);
  send(socket, request(forward_read, 2, 100), {file.get()});
  EXPECT_EQ(receive<forward_answer>(socket)->result, 4);
  std::array<char, 4> seen{};
  ASSERT_EQ(pread(memory.get(), seen.data(), 4, 0), 4);
  EXPECT_EQ(std::string(seen.data(), 4), "cdef");
  const ForwardTotals totals = service_->totals();
  EXPECT_EQ(totals.requests, 2);
  EXPECT_EQ(totals.bytes, 10);
}

TEST_F(Forwarding, TellsTheErrorOfTheCall) {
  const Fd memory = segment(), socket = greeted(connect(), memory);
  const Fd file{::open((directory_ + "/a").c_str(), O_RDONLY | O_CREAT, 0600)};
  send(socket, request(forward_write, 0, 1), {file.get()});
  const auto answer = receive<forward_answer>(socket);
  EXPECT_EQ(answer->result, -1);
  EXPECT_EQ(answer->error, EBADF);
}

TEST_F(Forwarding, LeavesToTheClientWhatIsNoFileHere) {
  const Fd memory = segment(), socket = greeted(connect(), memory);
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const Fd reading{ends[0]}, writing{ends[1]}, elsewhere{memfd_create("elsewhere", 0)}, file = open("a");
  for (const int one : {writing.get(), elsewhere.get()}) {
    send(socket, request(forward_write, -1, 1), {one});
    EXPECT_EQ(receive<forward_answer>(socket)->own, forward_always);
  }
  send(socket, request(forward_send, -1, 1), {file.get(), reading.get()});  // it could wait for ever
  EXPECT_EQ(receive<forward_answer>(socket)->own, forward_always);
  EXPECT_EQ(service_->totals().refused, 3);
}

TEST_F(Forwarding, DisconnectsWhoBreaksTheProtocolAndServesOthers) {
  const Fd memory = segment(), file = open("a");
  const Fd good = greeted(connect(), memory);
  const auto ends = [&](const auto& message, std::initializer_list<int> descriptors, bool is_first) {
    const Fd socket = is_first ? connect() : greeted(connect(), memory);
    send(socket, message, descriptors);
    return !receive<forward_answer>(socket).has_value();
  };
  forward_hello other = hello;
  other.version = forward_version + 1;
  const Fd small = segment(4096), shrinking = segment(forward_most_bytes, F_SEAL_GROW);
  EXPECT_TRUE(ends(other, {memory.get()}, true));
  EXPECT_TRUE(ends(hello, {}, true));
  EXPECT_TRUE(ends(hello, {small.get()}, true));
  EXPECT_TRUE(ends(hello, {shrinking.get()}, true));
  EXPECT_TRUE(ends(request(forward_write, 0, 1), {file.get()}, true));
  EXPECT_TRUE(ends(request(forward_write, 0, 1), {}, false));
  EXPECT_TRUE(ends(request(forward_write, 0, -1), {file.get()}, false));
  EXPECT_TRUE(ends(request(forward_write, 0, forward_most_bytes + 1), {file.get()}, false));
  EXPECT_TRUE(ends(request(forward_copy, 0, 1), {file.get()}, false));
  EXPECT_TRUE(ends(request(forward_hold, 0, 0), {}, false));
  EXPECT_TRUE(ends(request(forward_store, 0, 0), {file.get()}, false));
  EXPECT_TRUE(ends(request(forward_write, 0, 1), {file.get(), file.get()}, false));
  EXPECT_TRUE(ends(hello, {file.get(), file.get(), file.get()}, false));
  send(good, request(forward_write, 0, 1), {file.get()});
  EXPECT_EQ(receive<forward_answer>(good)->result, 1);
}

// Returns the lines of /proc about the threads of this process that begin with the key.
std::vector<std::string> about_threads(const std::string& key) {
  std::vector<std::string> found;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(thread.path() / "status");
    for (std::string line; std::getline(file, line);)
      if (line.starts_with(key)) found.push_back(line.substr(key.size()));
  }
  return found;
}

TEST_F(Forwarding, HasNoCapabilitiesInTheThreadsThatMakeCalls) {
  const auto without = [] {
    const std::vector<std::string> sets = about_threads("CapEff:\t");
    return std::count(sets.begin(), sets.end(), "0000000000000000");
  };
  for (int i = 0; i < 2000 && without() < 2; ++i) usleep(10'000);  // until both have begun
  EXPECT_GE(without(), 2);
}

// Connects as another user, which only root can become. Returns 0 if the service ends the connection.
int connect_as_other(const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(3);
    const Fd socket{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) _exit(4);
    pollfd ended{socket.get(), POLLIN, 0};
    char byte = 0;
    _exit(poll(&ended, 1, 20'000) == 1 && recv(socket.get(), &byte, 1, 0) == 0 ? 0 : 5);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST_F(Forwarding, RefusesAClientOfAnotherUser) {
  if (geteuid() != 0) return;  // no other user can connect: the mode of the socket forbids it
  EXPECT_EQ(chmod(directory_.c_str(), 0755), 0);
  EXPECT_EQ(connect_as_other(directory_ + "/socket"), 4 << 8) << "the mode of the socket lets others connect";
  ASSERT_EQ(chmod((directory_ + "/socket").c_str(), 0666), 0);
  EXPECT_EQ(connect_as_other(directory_ + "/socket"), 0);
  EXPECT_EQ(logged_, "refused a forwarding client of user 65534");
}

TEST_F(Forwarding, CarriesOutEveryCallThatWaitsWhateverTheScheduler) {
  const Fd file = open("a");
  for (const std::string_view name : request_scheduler::algorithm_names()) {
    ASSERT_TRUE(service_->use(name)) << name;
    std::vector<Fd> memories, sockets;
    for (int i = 0; i < 12; ++i) {
      memories.push_back(segment());
      sockets.push_back(greeted(connect(), memories.back()));
      const char letter = static_cast<char>('a' + i);
      ASSERT_EQ(pwrite(memories.back().get(), &letter, 1, 0), 1);
    }
    for (int i = 0; i < 12; ++i) send(sockets[static_cast<std::size_t>(i)], request(forward_write, i, 1), {file.get()});
    for (const Fd& socket : sockets) ASSERT_EQ(receive<forward_answer>(socket)->result, 1) << name;
    std::array<char, 12> seen{};
    ASSERT_EQ(pread(file.get(), seen.data(), seen.size(), 0), 12);
    EXPECT_EQ(std::string(seen.data(), seen.size()), "abcdefghijkl") << name;
    ASSERT_EQ(ftruncate(file.get(), 0), 0);
  }
  EXPECT_FALSE(service_->use("nonsense"));
}

TEST_F(Forwarding, CountsWhatEachApplicationWaited) {
  const Fd memory = segment(), file = open("a");
  forward_hello named = hello;
  std::memcpy(named.application, "solver", 7);
  const Fd socket = connect();
  send(socket, named, {memory.get()});
  ASSERT_TRUE(receive<forward_welcome>(socket));
  send(socket, request(forward_write, 0, 5), {file.get()});
  ASSERT_TRUE(receive<forward_answer>(socket));
  EXPECT_NE(service_->state().find("forwarded_of solver requests 1 bytes 5 waited_ns "), std::string::npos)
      << service_->state();
}

// Returns what a client collects in its segment.
forward_collected* collected_in(const Fd& memory) {
  void* const mapped = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), forward_collected_at);
  return static_cast<forward_collected*>(mapped);
}

std::string text_of(const Fd& file) {
  std::array<char, 64> seen{};
  const ssize_t bytes = pread(file.get(), seen.data(), seen.size(), 0);
  return {seen.data(), static_cast<std::size_t>(std::max<ssize_t>(bytes, 0))};
}

TEST_F(Forwarding, WritesWhatIsCollectedWhenItIsAskedAndWhenTheClientHasEnded) {
  const Fd memory = segment(), file = open("a");
  forward_collected* const head = collected_in(memory);
  {
    const Fd socket = greeted(connect(), memory);
    send(socket, request(forward_hold, -1, 0), {file.get()});
    ASSERT_EQ(receive<forward_answer>(socket)->own, 0U);
    ASSERT_EQ(pwrite(memory.get(), "abcd", 4, 0), 4);
    std::atomic_ref(head->filled).store(2);
    forward_request unanswered = request(forward_store, -1, 0);
    unanswered.flags = forward_unanswered;
    send(socket, unanswered, {});
    std::atomic_ref(head->filled).store(4);
    send(socket, request(forward_store, -1, 0), {});
    ASSERT_EQ(receive<forward_answer>(socket)->own, 0U);
    EXPECT_EQ(text_of(file), "abcd");
    EXPECT_EQ(std::atomic_ref(head->filled).load(), 0U);
    head->offset = 4;
    ASSERT_EQ(pwrite(memory.get(), "ef", 2, 0), 2);
    std::atomic_ref(head->filled).store(2);
  }
  for (int i = 0; i < 2000 && text_of(file) != "abcdef"; ++i) usleep(10'000);
  EXPECT_EQ(text_of(file), "abcdef");
}

TEST_F(Forwarding, WritesWhatIsCollectedAfterSomeTimeAndBeforeItEnds) {
  const Fd memory = segment(), file = open("a"), socket = greeted(connect(), memory);
  forward_collected* const head = collected_in(memory);
  send(socket, request(forward_hold, -1, 0), {file.get()});
  ASSERT_EQ(receive<forward_answer>(socket)->own, 0U);
  ASSERT_EQ(pwrite(memory.get(), "abcd", 4, 0), 4);
  std::atomic_ref(head->filled).store(4);
  for (int i = 0; i < 2000 && (std::atomic_ref(head->stored).load() & forward_closed) == 0; ++i) usleep(10'000);
  EXPECT_EQ(text_of(file), "abcd");
  EXPECT_EQ(std::atomic_ref(head->filled).load(), 4 | forward_closed);
  std::memset(head, 0, sizeof *head);
  head->offset = 4;
  send(socket, request(forward_hold, -1, 0), {file.get()});
  ASSERT_EQ(receive<forward_answer>(socket)->own, 0U);
  std::atomic_ref(head->filled).store(4);
  service_.reset();
  EXPECT_EQ(text_of(file), "abcdabcd");
}

TEST_F(Forwarding, KeepsNoDescriptorsOfOtherFilesAndStoresNothingUnasked) {
  const Fd memory = segment(), socket = greeted(connect(), memory), elsewhere{memfd_create("elsewhere", 0)};
  send(socket, request(forward_hold, -1, 0), {elsewhere.get()});
  EXPECT_EQ(receive<forward_answer>(socket)->own, forward_always);
  send(socket, request(forward_store, -1, 0), {});
  EXPECT_EQ(receive<forward_answer>(socket)->own, forward_once);
}

TEST_F(Forwarding, EndsItsConnectionsWithItself) {
  const Fd memory = segment(), socket = greeted(connect(), memory);
  service_.reset();
  EXPECT_FALSE(receive<forward_answer>(socket));
}

TEST_F(Forwarding, ForgetsClientsThatHaveGone) {
  const Fd memory = segment();
  for (int i = 0; i < 100; ++i) greeted(connect(), memory);
  const Fd last = greeted(connect(), memory);
  for (int i = 0; i < 2000 && service_->totals().clients > 1; ++i) usleep(10'000);
  EXPECT_EQ(service_->totals().clients, 1);
}

}  // namespace
}  // namespace hocket::forward
