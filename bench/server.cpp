// Measures hocket-server: the write bandwidth of one client beside that of the transport alone, and small writes of
// several clients, with merging of neighbouring requests off and on. server_data_sets.cpp measures data sets.
//
// Files are on the file system of $HOCKET_BENCH_DIR (else of the working directory). They exist before and are
// overwritten, so the benchmark measures the path of the data and not the growth of a file.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/clock.hpp"
#include "figures.hpp"
#include "server_process.hpp"
#include "transport/address.hpp"
#include "transport/server_link.hpp"

namespace {

using namespace hocket;
using bench::die;
using bench::good;
using bench::seconds_since;
using bench::Server;
using transport::Header;
using transport::ServerLink;
using transport::Stream;
using transport::Type;

constexpr std::int64_t mib = 1 << 20;
// Bytes of a sample, and samples of each case.
constexpr std::int64_t sample_bytes = 256 * mib;
constexpr int samples = 9;
constexpr int under_way = 4;  // large writes that are pending at a time
// Smallest ratio to the transport's bandwidth.
constexpr double bound = 0.7;

// Waits for the descriptor, at most 10 s.
void wait_for(int descriptor, short events) {
  pollfd waited{descriptor, events, 0};
  ::poll(&waited, 1, 10'000);
}

// ---- the transport alone -------------------------------------------------------------------------------------------

// Session keys of the two directions. Tags take the same time whatever the key.
constexpr transport::FrameKey clients_key{1};
constexpr transport::FrameKey sinks_key{2};

// Receives frames and acknowledges each, until the other end closes: a server that writes nothing.
[[noreturn]] void sink(Fd socket, bool authenticated) {
  Stream stream{std::move(socket)};
  if (authenticated) stream.authenticate(clients_key, sinks_key);
  std::vector<std::byte> memory(mib);
  while (true) {
    switch (stream.receive()) {
      case Stream::Got::announced: stream.take_payload({memory.data(), stream.header().payload}); break;
      case Stream::Got::frame: {
        Header answer;
        answer.request = stream.header().request;
        stream.send(answer);
        stream.flush();
        break;
      }
      case Stream::Got::nothing: wait_for(stream.descriptor(), POLLIN); break;
      case Stream::Got::ended: std::_Exit(0);
    }
  }
}

// The bandwidth of the transport to a child process that runs sink().
// If `authenticated`, frames have tags, as those of hocket-server and its clients over TCP.
class Bandwidth {
 public:
  Bandwidth(std::pair<Fd, Fd> ends, bool authenticated) : data_(mib) {
    // The child closes the client's end, so that it notices when the parent closes its copy.
    child_ = fork();
    if (child_ == 0) {
      ends.first = Fd{};
      sink(std::move(ends.second), authenticated);
    }
    ends.second = Fd{};
    stream_ = std::make_unique<Stream>(std::move(ends.first));
    if (authenticated) stream_->authenticate(sinks_key, clients_key);
  }
  ~Bandwidth() {
    stream_.reset();
    waitpid(child_, nullptr, 0);
  }

  // Returns the bandwidth of one sample, with as many frames pending as there are large writes.
  double bytes_per_s() {
    const Time start = node_now();
    std::int64_t sent = 0;
    std::int64_t acknowledged = 0;
    // The frames in flight are as many and as large as those of LargeWrites, so the two are comparable.
    while (acknowledged < sample_bytes / mib) {
      for (; sent < sample_bytes / mib && sent - acknowledged < under_way; ++sent) {
        Header header;
        header.type = Type::write;
        header.bytes = mib;
        stream_->send(header, {}, data_);
      }
      stream_->flush();
      const Stream::Got got = stream_->receive();
      if (got == Stream::Got::ended) die("the bandwidth test failed: " + stream_->reason());
      if (got == Stream::Got::frame) ++acknowledged;
      if (got == Stream::Got::nothing) {
        wait_for(stream_->descriptor(), static_cast<short>(POLLIN | (stream_->has_unsent() ? POLLOUT : 0)));
      }
    }
    return static_cast<double>(sample_bytes) / seconds_since(start);
  }

 private:
  pid_t child_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::byte> data_;
};

// Return the two ends of a connection, tuned as hocket-server and its clients tune theirs.
std::pair<Fd, Fd> local_ends() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) die("socketpair failed");
  for (const int end : ends) transport::tune(end, true);
  return {Fd{ends[0]}, Fd{ends[1]}};
}

// Uses the loopback interface and the port that the system chooses.
std::pair<Fd, Fd> tcp_ends() {
  const auto listener = good(transport::listen_tcp(good(transport::read_address("tcp:127.0.0.1:0"))));
  Fd client = good(transport::connect_to(listener.address, node_now() + from_s(10)));
  wait_for(listener.socket.get(), POLLIN);
  Fd server{accept(listener.socket.get(), nullptr, nullptr)};
  transport::tune(server.get(), false);
  return {std::move(client), std::move(server)};
}

// ---- a client ------------------------------------------------------------------------------------------------------

// Processes what is ready, or waits for it. A lost server ends the benchmark.
void drive(ServerLink& link) {
  if (!link.poll() && !link.failed()) wait_for(link.descriptor(), link.events());
  if (link.failed()) die("the server has gone: " + link.failure_text());
}

// Opens the file and waits for its handle.
std::uint64_t open_file(ServerLink& link, const std::string& path) {
  std::uint64_t handle = 0;
  link.open(path, {}, {.reads = true, .writes = true}, [&](int error, std::uint64_t opened) {
    if (error != 0) die("cannot open " + path + ": " + error_text(error));
    handle = opened;
  });
  while (link.pending() > 0) drive(link);
  return handle;
}

// Ends the benchmark if a write failed: a figure of failed writes would be worthless.
void check(int error) {
  if (error != 0) die("a write failed: " + error_text(error));
}

// ---- one client, large writes --------------------------------------------------------------------------------------

// One client that writes 1 MiB at a time, several of them pending.
class LargeWrites {
 public:
  // If `staged`, the data are first copied into memory that the link shares with the server.
  LargeWrites(const Server& server, bool local, bool staged)
      : link_(server.connect(local)), handle_(open_file(*link_, "file")), data_(mib, std::byte{1}), staged_(staged) {
    for (auto& slot : slots_) slot = link_->stage(mib);
  }

  double bytes_per_s() {
    const Time start = node_now();
    std::int64_t next = 0;
    // A slot is free again when the server has answered the write that used it.
    std::vector<std::size_t> free;
    for (std::size_t i = 0; i < slots_.size(); ++i) free.push_back(i);
    while (next < sample_bytes || link_->pending() > 0) {
      for (; next < sample_bytes && !free.empty(); next += mib) {
        const std::size_t slot = free.back();
        free.pop_back();
        std::span<const std::byte> from = data_;
        if (staged_) {
          std::memcpy(slots_[slot].bytes().data(), data_.data(), mib);
          from = slots_[slot].bytes();
        }
        link_->write(handle_, transport::OffsetPlace{next}, 0, from, [&free, slot](int error, std::int64_t) {
          check(error);
          free.push_back(slot);
        });
        // Polling between writes sends what is queued, and so keeps the server busy.
        link_->poll();
      }
      drive(*link_);
    }
    return static_cast<double>(sample_bytes) / seconds_since(start);
  }

 private:
  std::unique_ptr<ServerLink> link_;
  std::uint64_t handle_;
  std::vector<std::byte> data_;
  bool staged_;
  std::array<transport::Staged, under_way> slots_;
};

// Returns what this process writes without a server, to show what the file system can do.
double alone_bytes_per_s(const std::string& path) {
  const Fd file{open(path.c_str(), O_WRONLY)};
  const std::vector<std::byte> data(mib, std::byte{1});
  const Time start = node_now();
  for (std::int64_t at = 0; at < sample_bytes; at += mib) {
    if (pwrite(file.get(), data.data(), mib, at) != mib) die("cannot write to " + path);
  }
  return static_cast<double>(sample_bytes) / seconds_since(start);
}

// Measures large writes in all ways, interleaved. Returns true if both bounds hold.
bool measure_large(const std::string& directory) {
  Bandwidth local{local_ends(), false};
  Bandwidth tcp{tcp_ends(), true};
  Bandwidth bare_tcp{tcp_ends(), false};
  const Server server{directory, "large", {"--tcp", "127.0.0.1:0"}};
  LargeWrites shared{server, true, true};
  LargeWrites plain{server, true, false};
  LargeWrites remote{server, false, false};
  std::vector<double> local_s, tcp_s, bare_tcp_s, shared_s, plain_s, remote_s, alone_s;
  for (int i = -1; i < samples; ++i) {  // the first sample is discarded
    // Each round measures every way once, so slow changes of the machine affect all of them.
    std::vector<std::pair<std::vector<double>*, double>> now{
        {&local_s, local.bytes_per_s()},      {&shared_s, shared.bytes_per_s()},
        {&plain_s, plain.bytes_per_s()},      {&tcp_s, tcp.bytes_per_s()},
        {&remote_s, remote.bytes_per_s()},    {&alone_s, alone_bytes_per_s(directory + "/file")},
        {&bare_tcp_s, bare_tcp.bytes_per_s()}};
    for (auto& [values, value] : now) {
      if (i >= 0) values->push_back(value * 1e-9);
    }
  }
  const std::string more = ", \"pwrite_alone\": " + std::to_string(bench::median(alone_s));
  // Prints one case; with `least` 0 the case has no bound.
  const auto tell = [&](const char* name, const std::vector<double>& value, const std::vector<double>& reference,
                        double least) {
    const double ratio = bench::median(value) / bench::median(reference);
    return bench::print("server", {name, bench::median(value), "GB/s", bench::median(reference), least, ratio >= least,
                                   more + ", \"quartiles\": [" + std::to_string(bench::quantile(value, 0.25)) + ", " +
                                       std::to_string(bench::quantile(value, 0.75)) + "]"});
  };
  bool ok = tell("1MiB-writes unix, memory shared", shared_s, local_s, bound);
  ok &= tell("1MiB-writes tcp", remote_s, tcp_s, bound);
  tell("1MiB-writes unix, memory not shared", plain_s, local_s, 0);
  tell("1MiB-writes tcp, beside frames without tags", remote_s, bare_tcp_s, 0);
  return ok;
}

// ---- several clients, small writes ---------------------------------------------------------------------------------

constexpr std::int64_t block = 4096;
constexpr int clients = 8;
constexpr std::int64_t blocks_each = 4096;  // blocks of each client in a sample
constexpr int small_under_way = 16;         // pending writes of each client

// Several clients in one process that write interleaved blocks to a server of their own.
class SmallWrites {
 public:
  SmallWrites(const std::string& directory, const char* name, const std::vector<std::string>& more, bool collective)
      : server_(directory, name, more), data_(block, std::byte{2}), collective_(collective) {
    for (int i = 0; i < clients; ++i) {
      links_.push_back(server_.connect(true));
      handles_.push_back(open_file(*links_.back(), "file"));
    }
  }

  // Returns the writes per second of all clients. Client i has every eighth block.
  double writes_per_s() {
    std::array<std::int64_t, clients> next{};
    const Time start = node_now();
    const auto is_over = [&](std::size_t i) { return next[i] == blocks_each && links_[i]->pending() == 0; };
    for (bool over = false; !over;) {
      over = true;
      bool moved = false;
      for (std::size_t i = 0; i < clients; ++i) {
        ask(i, next[i]);
        moved |= links_[i]->poll();
        over = over && is_over(i);
      }
      // Waiting is needed only when no link had anything to do.
      if (!moved && !over) wait();
    }
    return static_cast<double>(clients * blocks_each) / seconds_since(start);
  }

 private:
  // Sends requests until enough are pending. A collective operation ends after each set of pending writes, so the
  // server can merge what all clients sent.
  void ask(std::size_t i, std::int64_t& next) {
    while (next < blocks_each && links_[i]->pending() < small_under_way) {
      const std::uint64_t operation =
          collective_ ? first_operation_ + static_cast<std::uint64_t>(next / small_under_way) : 0;
      const std::int64_t at = (next * clients + static_cast<std::int64_t>(i)) * block;
      links_[i]->write(handles_[i], transport::OffsetPlace{at}, operation, data_,
                       [](int error, std::int64_t) { check(error); });
      if (collective_ && ++next % small_under_way == 0) return links_[i]->end(handles_[i], operation, clients);
      if (!collective_) ++next;
    }
  }

  // Waits until any link is ready, at most 10 s.
  void wait() {
    std::array<pollfd, clients> waited{};
    for (std::size_t i = 0; i < clients; ++i) waited[i] = {links_[i]->descriptor(), links_[i]->events(), 0};
    ::poll(waited.data(), waited.size(), 10'000);
  }

  Server server_;
  std::vector<std::unique_ptr<ServerLink>> links_;
  std::vector<std::uint64_t> handles_;
  std::vector<std::byte> data_;
  bool collective_;
  static constexpr std::uint64_t first_operation_ = 1;
};

// Measures small writes without merging, with it, and as collective operations. These cases have no bound.
void measure_small(const std::string& directory) {
  // Each way has a server of its own, since merging is an option of the server.
  SmallWrites off{directory, "off", {"--no-merge"}, false};
  SmallWrites on{directory, "on", {}, false};
  SmallWrites collective{directory, "collective", {}, true};
  std::vector<double> off_s, on_s, collective_s;
  for (int i = -1; i < samples; ++i) {
    const double without = off.writes_per_s();
    const double with = on.writes_per_s();
    const double together = collective.writes_per_s();
    if (i < 0) continue;
    off_s.push_back(without);
    on_s.push_back(with);
    collective_s.push_back(together);
  }
  const auto tell = [&](const char* name, const std::vector<double>& value) {
    bench::print("server", {name, bench::median(value), "writes/s", bench::median(off_s), 0, true,
                            ", \"quartiles\": [" + std::to_string(bench::quantile(value, 0.25)) + ", " +
                                std::to_string(bench::quantile(value, 0.75)) + "]"});
  };
  tell("4KiB-writes 8 clients, merging off", off_s);
  tell("4KiB-writes 8 clients, merging on", on_s);
  tell("4KiB-writes 8 clients, collective", collective_s);
}

}  // namespace

int main() {
  std::signal(SIGPIPE, SIG_IGN);
  const char* chosen = std::getenv("HOCKET_BENCH_DIR");
  std::string directory = std::string{chosen != nullptr ? chosen : "."} + "/hocket-bench-XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) die("cannot make " + directory);
  directory = std::unique_ptr<char, void (*)(void*)>{realpath(directory.c_str(), nullptr), std::free}.get();
  {
    const Fd file{open((directory + "/file").c_str(), O_WRONLY | O_CREAT, 0600)};
    if (ftruncate(file.get(), 0) != 0) die("cannot make a file in " + directory);
    // The file has its space before the first sample.
    const std::vector<char> zeros(mib);
    for (std::int64_t at = 0; at < sample_bytes; at += mib) {
      if (pwrite(file.get(), zeros.data(), mib, at) != mib) die("cannot write to " + directory);
    }
  }
  const bool ok = measure_large(directory);
  measure_small(directory);
  bench::measure_data_sets(directory);
  const int removed = std::system(("rm -rf '" + directory + "'").c_str());
  return ok && removed == 0 ? 0 : 1;
}
