#include "forward/forward_service.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <random>
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
                                         [this](const std::string& line) { log(line); });
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

  // The service logs from its threads.
  void log(const std::string& line) {
    const std::lock_guard lock(log_mutex_);
    logged_ = line;
  }
  std::string logged() {
    const std::lock_guard lock(log_mutex_);
    return logged_;
  }

  std::string directory_;
  std::mutex log_mutex_;
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
  return {.call = call, .flags = 0, .offset = offset, .from_offset = -1, .bytes = bytes, .is_own = 0, .unused = 0};
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
  if (geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  EXPECT_EQ(chmod(directory_.c_str(), 0755), 0);
  EXPECT_EQ(connect_as_other(directory_ + "/socket"), 4 << 8) << "the mode of the socket lets others connect";
  ASSERT_EQ(chmod((directory_ + "/socket").c_str(), 0666), 0);
  EXPECT_EQ(connect_as_other(directory_ + "/socket"), 0);
  EXPECT_EQ(logged(), "refused a forwarding client of user 65534");
}

TEST_F(Forwarding, CarriesOutEveryCallThatWaitsWhateverTheScheduler) {
  const Fd file = open("a");
  for (const std::string_view name : request_scheduler::algorithm_names()) {
    ASSERT_TRUE(service_->use({std::string{name}})) << name;
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
  EXPECT_FALSE(service_->use({"nonsense"}));
}

TEST_F(Forwarding, CountsWhatEachApplicationHasHadAsHocketdVouches) {
  std::vector<std::string> asked;
  std::mutex mutex;
  service_->ask_with([&](const std::string& pids) {
    const std::lock_guard lock(mutex);
    asked.push_back(pids);
  });
  const Fd memory = segment(), file = open("a");
  forward_hello forged = hello;
  std::memcpy(forged.application, "other", 6);  // nobody believes it
  const Fd socket = connect();
  send(socket, forged, {memory.get()});
  ASSERT_TRUE(receive<forward_welcome>(socket));
  send(socket, request(forward_write, 0, 5), {file.get()});
  ASSERT_TRUE(receive<forward_answer>(socket));
  EXPECT_EQ(service_->shares().substr(0, 4), "1 5 ") << service_->shares();
  EXPECT_EQ(service_->shares().find("other"), std::string::npos) << service_->shares();
  {
    const std::lock_guard lock(mutex);
    ASSERT_EQ(asked.size(), 1U);
    EXPECT_EQ(asked[0].substr(0, asked[0].find(' ')), std::to_string(getpid()));
    event::ApplicationFor answer;
    answer.pids = asked[0];
    answer.pid = getpid();
    answer.application = "solver";
    answer.processes = 4;
    service_->vouched(answer);
  }
  send(socket, request(forward_write, 0, 7), {file.get()});
  ASSERT_TRUE(receive<forward_answer>(socket));
  EXPECT_EQ(service_->shares().substr(0, 4), "1 7 ") << service_->shares();
  EXPECT_NE(service_->shares().find(" solver\n"), std::string::npos) << service_->shares();
  EXPECT_EQ(service_->scheduler().name, "fifo");
}

// ---- calls that wait together ---------------------------------------------------------------------------------------

// A service with one thread, which a slow call keeps busy, so that the calls that come meanwhile wait together.
class ForwardingTogether : public Forwarding {
 protected:
  static constexpr std::int64_t rate = 2'000'000;  // bytes/s

  void serve_by(const std::string& scheduler, int threads = 1) {
    service_.reset();
    auto service = ForwardService::start({.threads = threads, .scheduler = {scheduler}, .limit_bytes_per_s = rate},
                                         directory_, listen_for_forwarding(directory_ + "/socket").value(),
                                         [this](const std::string& line) { log(line); });
    ASSERT_TRUE(service);
    service_ = std::move(service).value();
    clients_.clear();
  }

  struct Client {
    Fd memory = segment();
    Fd socket;
  };
  Client& client(std::size_t number) {
    while (clients_.size() <= number) {
      clients_.emplace_back();
      clients_.back().socket = greeted(connect(), clients_.back().memory);
    }
    return clients_[number];
  }
  // Makes the thread busy, for a quarter of a second by default, after so many clients have connected.
  void occupy(std::size_t clients, std::int64_t bytes = rate / 4) {
    for (std::size_t i = 0; i < clients; ++i) client(i);
    if (!occupier_.socket) slow_ = open("slow");
    occupier_ = {};
    occupier_.socket = greeted(connect(), occupier_.memory);
    send(occupier_.socket, request(forward_write, 0, bytes), {slow_.get()});
    usleep(20'000);
  }
  void ask(std::size_t number, forward_call call, const Fd& file, std::int64_t at, const std::string& data) {
    Client& one = client(number);
    ASSERT_EQ(pwrite(one.memory.get(), data.data(), data.size(), 0), static_cast<ssize_t>(data.size()));
    send(one.socket, request(call, at, static_cast<std::int64_t>(data.size())), {file.get()});
  }
  forward_answer answer(std::size_t number) { return receive<forward_answer>(client(number).socket).value(); }
  std::string read_by(std::size_t number, std::int64_t bytes) {
    std::string data(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 0)), '\0');
    EXPECT_EQ(pread(client(number).memory.get(), data.data(), data.size(), 0), bytes);
    return data;
  }
  std::string content(const std::string& name) const {
    std::ifstream file(directory_ + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::vector<Client> clients_;
  Client occupier_{Fd{}, Fd{}};
  Fd slow_;
};

std::string block(std::size_t number, std::size_t bytes = 4096) {
  return std::string(bytes, static_cast<char>('a' + number % 26));
}

constexpr std::size_t together = 32;

TEST_F(ForwardingTogether, CallsThatFollowOneAnotherAreOneSystemCall) {
  for (const std::string_view name : {"to-agg", "aioli", "sjf", "hbrr", "mlf", "fifo"}) {
    serve_by(std::string{name});
    const Fd file = open("a"), again = open("a");
    occupy(together);
    // From behind, by two descriptions of the file.
    for (std::size_t i = together; i-- > 0;)
      ask(i, forward_write, i % 2 == 0 ? file : again, static_cast<std::int64_t>(i) * 4096, block(i));
    std::string expected;
    for (std::size_t i = 0; i < together; ++i) {
      ASSERT_EQ(answer(i).result, 4096) << name;
      expected += block(i);
    }
    EXPECT_TRUE(content("a") == expected) << name;
    const ForwardTotals totals = service_->totals();
    EXPECT_EQ(totals.requests, together + 1) << name;
    if (name == "fifo") {
      EXPECT_EQ(totals.system_calls, together + 1);
      EXPECT_EQ(totals.merged, 0);
    } else {
      EXPECT_LT(totals.system_calls, 1 + together / 2) << name;
      EXPECT_GT(totals.merged, together / 2) << name;
    }
    ASSERT_EQ(ftruncate(file.get(), 0), 0);
  }
}

TEST_F(ForwardingTogether, ReadersGetTheirOwnBytesAndTheEndOfTheFile) {
  serve_by("to-agg");
  const Fd file = open("a");
  std::string expected;
  for (std::size_t i = 0; i < 20; ++i) expected += block(i, 5000);
  ASSERT_EQ(pwrite(file.get(), expected.data(), expected.size(), 0), static_cast<ssize_t>(expected.size()));
  occupy(together);
  for (std::size_t i = 0; i < together; ++i)
    ask(i, forward_read, file, static_cast<std::int64_t>(i) * 4096, std::string(4096, '?'));
  for (std::size_t i = 0; i < together; ++i) {
    const std::string own = i * 4096 < expected.size() ? expected.substr(i * 4096, 4096) : "";
    const forward_answer given = answer(i);
    EXPECT_EQ(given.result, static_cast<std::int64_t>(own.size()));
    EXPECT_TRUE(read_by(i, given.result) == own) << i;
  }
  EXPECT_GT(service_->totals().merged, 8);
}

// The kernel writes up to the limit and then fails, as on a device that becomes full.
TEST_F(ForwardingTogether, WhatDoesNotFitIsToldToTheCallThatDoesNot) {
  serve_by("to-agg");
  const Fd file = open("a");
  occupy(8);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{static_cast<rlim_t>(rate), before.rlim_max};
  for (std::int64_t i = 0; i < 8; ++i)
    ask(static_cast<std::size_t>(i), forward_write, file, rate - 3 * 4096 - 1000 + i * 4096, block(1));
  setrlimit(RLIMIT_FSIZE, &small);
  std::vector<forward_answer> answers;
  for (std::size_t i = 0; i < 8; ++i) answers.push_back(answer(i));
  setrlimit(RLIMIT_FSIZE, &before);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(answers[i].result, 4096);
  EXPECT_EQ(answers[3].result, 1000);
  for (std::size_t i = 4; i < 8; ++i) {
    EXPECT_EQ(answers[i].result, -1);
    EXPECT_EQ(answers[i].error, EFBIG);
    EXPECT_EQ(answers[i].own, forward_once) << "the limit is the server's own";
  }
  EXPECT_GE(service_->totals().merged, 4) << "the first four were one call";
}

TEST_F(ForwardingTogether, AppendsAndCallsWithoutOffsetAreMadeAlone) {
  serve_by("hbrr");
  const Fd appending{::open((directory_ + "/a").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600)};
  const Fd moving = open("b");
  occupy(16);
  for (std::size_t i = 0; i < 8; ++i) {
    ask(i, forward_write, appending, static_cast<std::int64_t>(i) * 100, block(i, 100));  // the offset does not count
    ask(8 + i, forward_write, moving, -1, block(i, 100));
  }
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(answer(i).result, 100);
  EXPECT_EQ(content("a").size(), 800U);
  EXPECT_EQ(content("b").size(), 800U);
  EXPECT_EQ(service_->totals().merged, 0);
  EXPECT_EQ(service_->totals().system_calls, 17);
}

// The first call of a batch is slow, and the client of a later one ends meanwhile.
TEST_F(ForwardingTogether, ACallOfAClientThatHasEndedIsMadeByNobodyElseEither) {
  constexpr std::int64_t slow = rate / 4;
  for (const std::string_view name : {"to-agg", "hbrr"}) {
    serve_by(std::string{name});
    const Fd file = open("a");
    ASSERT_EQ(ftruncate(file.get(), 0), 0);
    occupy(4);
    ask(0, forward_write, file, 0, block(0, slow));
    ask(1, forward_write, file, rate, block(1));
    ask(2, forward_write, file, rate + 4096, block(2));
    usleep(320'000);  // the first one is under way
    clients_[1].socket = {};
    EXPECT_EQ(answer(0).result, slow);
    EXPECT_EQ(answer(2).result, 4096);
    const std::string is = content("a");
    EXPECT_TRUE(is.substr(rate, 4096) == std::string(4096, '\0')) << name << ": the client had ended";
    EXPECT_TRUE(is.substr(rate + 4096) == block(2)) << name;
  }
}

// A client has its answer while the rest of its batch is under way: its next call is ordered like all others.
TEST_F(ForwardingTogether, TheNextCallOfAMemberWaitsItsTurn) {
  for (const std::string_view name : {"to-agg", "hbrr", "aioli"}) {
    serve_by(std::string{name}, 2);
    const Fd file = open("a");
    for (std::size_t i = 0; i < 8; ++i) client(i);
    std::int64_t made = 0;
    for (int round = 0; round < 20; ++round) {
      for (std::size_t i = 0; i < 8; ++i)
        ask(i, forward_write, file, static_cast<std::int64_t>(i) * 8192 + round % 2 * 4096, block(i));
      for (std::size_t i = 0; i < 8; ++i) {
        ASSERT_EQ(answer(i).result, 4096) << name;
        ++made;
      }
    }
    EXPECT_EQ(service_->shares().substr(0, service_->shares().find(' ')), std::to_string(made)) << name;
  }
}

TEST_F(ForwardingTogether, CallsThatNobodyHasBegunAreGivenBackAtTheEnd) {
  serve_by("fifo");
  const Fd file = open("a");
  ASSERT_EQ(ftruncate(file.get(), 4 * 4096), 0);
  occupy(4);
  for (std::size_t i = 0; i < 4; ++i) ask(i, forward_write, file, static_cast<std::int64_t>(i) * 4096, block(i));
  service_.reset();
  int given_back = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const forward_answer given = answer(i);
    given_back += given.own == forward_once;
    EXPECT_TRUE(given.own == forward_once || given.result == 4096) << i;
    EXPECT_EQ(content("a").substr(i * 4096, 4096) == block(i), given.own == 0) << i;
  }
  EXPECT_GT(given_back, 0);
}

// Random calls at places of their own: each has the result and the bytes that it would have alone.
TEST_F(ForwardingTogether, RandomCallsAreAsTheirOwnSystemCallsWouldBe) {
  std::mt19937_64 random{1};
  std::int64_t merged = 0;
  const auto names = request_scheduler::algorithm_names();
  for (int round = 0; round < 26; ++round) {
    serve_by(std::string{names[static_cast<std::size_t>(round) % names.size()]});
    const std::string path = directory_ + "/r" + std::to_string(round);
    const int flags[] = {O_RDWR, O_WRONLY, O_RDWR | O_SYNC, O_RDWR | O_APPEND, O_RDWR};
    std::vector<Fd> files;
    for (const int one : flags) files.emplace_back(::open(path.c_str(), one | O_CREAT, 0600));
    std::string model(8000, '.');  // all places are in it
    ASSERT_EQ(pwrite(files[0].get(), model.data(), model.size(), 0), static_cast<ssize_t>(model.size()));
    occupy(together);
    struct Asked {
      bool reads, appends;
      std::int64_t at, bytes;
    };
    std::vector<Asked> asked;
    std::int64_t at = 0;
    for (std::size_t i = 0; i < together; ++i) {
      const std::size_t file = random() % files.size();
      const Asked one{random() % 3 == 0 && file != 1, file == 3, at, static_cast<std::int64_t>(random() % 200)};
      asked.push_back(one);
      ask(i, one.reads ? forward_read : forward_write, files[file], one.at,
          block(i, static_cast<std::size_t>(one.bytes)));
      at += one.bytes + (random() % 3 == 0 ? static_cast<std::int64_t>(random() % 50) : 0);
    }
    std::size_t appended = 0;
    for (std::size_t i = 0; i < together; ++i) {
      const Asked& one = asked[i];
      const auto offset = static_cast<std::size_t>(one.at), bytes = static_cast<std::size_t>(one.bytes);
      const forward_answer given = answer(i);
      if (one.reads) {
        EXPECT_EQ(given.result, one.bytes) << i;
        EXPECT_TRUE(read_by(i, given.result) == std::string(static_cast<std::size_t>(given.result), '.')) << i;
        continue;
      }
      EXPECT_EQ(given.result, one.bytes) << i;
      if (one.appends) {
        appended += bytes;
      } else {
        model.replace(offset, bytes, block(i, bytes));
      }
    }
    const std::string is = content("r" + std::to_string(round));
    EXPECT_TRUE(is.substr(0, model.size()) == model) << round;
    EXPECT_EQ(is.size(), model.size() + appended) << round;
    merged += service_->totals().merged;
  }
  EXPECT_GT(merged, 20);
}

// 64 calls wait in the scheduler; it is replaced again and again meanwhile. Each is carried out once, overlapping ones
// in the order in which they came.
TEST_F(ForwardingTogether, ASwitchLosesNoCallThatWaits) {
  const auto names = request_scheduler::algorithm_names();
  serve_by("fifo");
  constexpr std::size_t waiting = 64;
  constexpr std::int64_t received = waiting - 2;  // at once: the thread takes 64 messages at a time
  const Fd file = open("a"), log = Fd{::open((directory_ + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600)};
  occupy(waiting + 1, rate / 2);
  send(client(waiting).socket, request(forward_write, 0, rate / 2), {slow_.get()});  // a second one, in the queue
  usleep(10'000);
  for (std::size_t i = 0; i < waiting; ++i) {
    // Every second call writes the same place, and so do two after each other; the others are appended.
    i % 2 == 0 ? ask(i, forward_write, file, 0, block(i / 2, 100)) : ask(i, forward_write, log, 0, block(i, 1) + "\n");
    usleep(500);  // the order of arrival
  }
  // The thread has received them when it is through with the first slow call, and makes the second one.
  for (int i = 0; i < 5'000 && service_->totals().waiting < received; ++i) usleep(1'000);
  std::int64_t most_waiting = 0;
  for (int i = 0; i < 200; ++i) {
    const auto switched = service_->use({std::string{names[static_cast<std::size_t>(i) % names.size()]}, 2, 64});
    ASSERT_TRUE(switched);
    most_waiting = std::max(most_waiting, switched.value().waiting);
    usleep(2'000);
  }
  ASSERT_TRUE(service_->use({"fifo"}));
  for (std::size_t i = 0; i < waiting; ++i) EXPECT_EQ(answer(i).result, i % 2 == 0 ? 100 : 2) << i;
  EXPECT_TRUE(content("a") == block(waiting / 2 - 1, 100)) << "the last one that came";
  EXPECT_EQ(content("log").size(), waiting) << "each once";
  EXPECT_GE(most_waiting, received);
  EXPECT_EQ(service_->totals().requests, waiting + 2);
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
