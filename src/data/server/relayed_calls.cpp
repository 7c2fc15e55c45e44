#include "server/relayed_calls.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <future>
#include <new>
#include <span>
#include <system_error>
#include <utility>

#include "base/clock.hpp"
#include "server/storage.hpp"
#include "transport/address.hpp"

namespace hocket::server {
namespace {

using forward::RelayedCall;
using transport::Header;
using transport::Stream;
using transport::Type;

constexpr std::size_t most_run_bytes = 64;
constexpr Duration sending_bound = std::chrono::seconds{60};  // for an answer that the relay does not read

// Sends all that is queued. Returns false if the relay has gone, or does not read it.
bool send_all(Stream& stream) {
  const Time until = node_now() + sending_bound;
  while (!stream.ended() && stream.has_unsent()) {
    stream.flush();
    if (stream.has_unsent() && !transport::wait_for(stream.descriptor(), POLLOUT, until)) return false;
  }
  return !stream.ended();
}

// Throws nothing, because a call is under way, which must not be left.
void show_life(Stream& stream) {
  if (stream.has_unsent()) return;
  Header header;
  header.type = Type::alive;
  try {
    stream.send(header);
    stream.flush();
  } catch (const std::bad_alloc&) {
  }
}

// True if the other end sends nothing more.
bool has_gone(int socket) {
  pollfd end{socket, POLLRDHUP, 0};
  return poll(&end, 1, 0) == 1;
}

}  // namespace

Result<std::unique_ptr<RelayedCalls>> RelayedCalls::make(const std::string& directory, std::string service, Log log) {
  Fd root{::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!root) return Error{"cannot open the directory '" + directory + "': " + error_text(errno)};
  return std::unique_ptr<RelayedCalls>{
      new RelayedCalls{directory, std::move(root), std::move(service), std::move(log)}};
}

RelayedCalls::RelayedCalls(std::string directory, Fd root, std::string service, Log log)
    : directory_(std::move(directory)), root_(std::move(root)), service_(std::move(service)), log_(std::move(log)) {}

RelayedCalls::~RelayedCalls() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const RelayConnection& one : connections_)
      if (!one.has_ended) shutdown(one.socket, SHUT_RD);
    ended_.notify_all();
  }
  for (RelayConnection& one : connections_) one.thread.join();
}

void RelayedCalls::take(Stream stream) {
  join_ended();
  const std::lock_guard lock(mutex_);
  const bool is_known = !stream.meta().empty() && stream.meta().size() <= most_run_bytes;
  // A server of another user would act with other rights.
  if (stream.header().handle != geteuid()) return log_("refused a relay of another user");
  if (stopping_ || !is_known || connections_.size() >= most_connections) return;
  RelayConnection& added = connections_.emplace_back(std::move(stream));
  added.run = added.stream.meta();
  added.generation = added.stream.header().operation;
  added.socket = added.stream.descriptor();
  try {
    added.thread = std::thread{[this, &added] { serve(added); }};
  } catch (const std::system_error& error) {
    log_(std::string{"refused a relay: "} + error.what());
    connections_.pop_back();
  }
}

void RelayedCalls::join_ended() {
  std::list<RelayConnection> gone;
  {
    const std::lock_guard lock(mutex_);
    for (auto one = connections_.begin(); one != connections_.end();) {
      const auto next = std::next(one);
      if (one->has_ended) gone.splice(gone.end(), connections_, one);
      one = next;
    }
  }
  for (RelayConnection& one : gone) one.thread.join();
}

// The end of the connection tells the relay that nothing of it is under way any more.
void RelayedCalls::serve(RelayConnection& connection) {
  try {
    if (admit(connection)) carry_out_all(connection);
  } catch (const std::exception& error) {  // memory, or a limit of the process
    log_(std::string{"disconnected a relay: "} + error.what());
  }
  connection.caller.reset();
  PinnedFiles forgotten;
  {
    const std::lock_guard lock(mutex_);
    connection.has_ended = true;
    connection.stream.close();
    if (std::ranges::all_of(connections_, &RelayConnection::has_ended)) forgotten.swap(unsynced_);
  }
  ended_.notify_all();
}

void RelayedCalls::carry_out_all(RelayConnection& connection) {
  auto caller = forward::LocalCaller::connect(service_);
  if (!caller) return log_(caller.error().text);
  connection.caller = std::move(caller).value();
  if (!answer(connection, 0, 0, false)) return;
  while (take_frames(connection)) continue;
}

// True if connections of this run are there that the relay has given up. Nothing more is received by them.
bool RelayedCalls::has_earlier(const RelayConnection& connection) const {
  bool any = false;
  for (const RelayConnection& one : connections_) {
    if (one.has_ended || one.run != connection.run || one.generation >= connection.generation) continue;
    shutdown(one.socket, SHUT_RD);
    any = true;
  }
  return any;
}

// Waits until nothing of the run's earlier connections is under way. Returns false if the relay has gone meanwhile.
bool RelayedCalls::admit(RelayConnection& connection) {
  constexpr Duration look = std::chrono::milliseconds{200};
  Time shown = node_now();
  std::unique_lock lock(mutex_);
  while (!stopping_ && has_earlier(connection)) {
    ended_.wait_for(lock, look);
    if (has_gone(connection.socket)) return false;
    if (node_now() - shown < forward::shows_life_every) continue;
    shown = node_now();
    show_life(connection.stream);
  }
  return !stopping_;
}

// Receives what has come, and carries out a call. Returns false if the connection is to end.
bool RelayedCalls::take_frames(RelayConnection& connection) {
  Stream& stream = connection.stream;
  const Header& header = stream.header();
  switch (stream.receive()) {
    case Stream::Got::ended: return false;
    case Stream::Got::nothing: {
      pollfd ready{connection.socket, POLLIN | POLLRDHUP, 0};
      poll(&ready, 1, -1);
      // What has come before the end is not carried out any more: the relay may have done it in another way.
      return (ready.revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0;
    }
    case Stream::Got::announced:
      if (header.type != Type::chunk || header.shared > forward_most_bytes - header.bytes) return false;
      stream.take_payload(transport::chunk_of(connection.caller->memory(), header.shared, header.bytes));
      return true;
    case Stream::Got::frame:
      if (header.type == Type::chunk) return true;
      return header.type == Type::call && !has_gone(connection.socket) && carry_out(connection);
  }
  return false;
}

// Opens the file of a call. Returns false if it is not certain that it is the relay's file, or it cannot be opened so.
bool RelayedCalls::open(const RelayedCall& call, Fd& file) const {
  const std::string root = directory_ == "/" ? directory_ : directory_ + "/";
  if (!call.file.path.starts_with(root)) return false;
  const std::string below = call.file.path.substr(root.size());
  const int synced = (call.syncs_data ? O_DSYNC : 0) | (call.syncs_all ? O_SYNC : 0);
  OpenedFile opened =
      open_beneath(root_.get(), below.c_str(), call.kind == RelayedCall::Kind::write ? O_WRONLY | synced : O_RDONLY);
  if (opened.error == EACCES && call.kind == RelayedCall::Kind::sync)
    opened = open_beneath(root_.get(), below.c_str(), O_WRONLY);
  if (opened.error != 0) return false;
  const auto own = forward::name_elsewhere(opened.file.get());
  if (!own || !forward::is_same_file(*own, call.file)) return false;
  file = std::move(opened.file);
  return true;
}

// Keeps a file that is about to be written, until after `note_written`. Returns nothing if there are too many.
std::optional<RelayedCalls::PinNumber> RelayedCalls::keep(int file) {
  struct stat about {};
  if (fstat(file, &about) != 0) return std::nullopt;
  const PinNumber number{about.st_dev, about.st_ino};
  const std::lock_guard lock(mutex_);
  auto found = unsynced_.find(number);
  if (found == unsynced_.end()) {
    if (unsynced_.size() >= most_unsynced) return std::nullopt;
    Fd kept{::open(("/proc/self/fd/" + std::to_string(file)).c_str(), O_PATH | O_CLOEXEC)};
    if (!kept) return std::nullopt;
    found = unsynced_.emplace(number, PinnedFile{.file = std::move(kept)}).first;
  }
  ++found->second.under_way;
  return number;
}

void RelayedCalls::note_written(PinNumber number) {
  const std::lock_guard lock(mutex_);
  const auto found = unsynced_.find(number);
  if (found == unsynced_.end()) return;
  --found->second.under_way;
  found->second.write = ++writes_;
}

std::uint64_t RelayedCalls::last_write() const {
  const std::lock_guard lock(mutex_);
  return writes_;
}

// Forgets a file that has been synced; all, if `file` is -1. Writes that ended after number `last` may not be. The
// files are closed last, which may take long, and others wait for the mutex.
void RelayedCalls::let_go(int file, std::uint64_t last) {
  struct stat about {};
  if (file >= 0 && fstat(file, &about) != 0) return;
  const PinNumber key{about.st_dev, about.st_ino};
  PinnedFiles forgotten;
  const std::lock_guard lock(mutex_);
  for (auto one = file < 0 ? unsynced_.begin() : unsynced_.find(key); one != unsynced_.end();) {
    const auto next = file < 0 ? std::next(one) : unsynced_.end();
    if (one->second.under_way == 0 && one->second.write <= last) forgotten.insert(unsynced_.extract(one));
    one = next;
  }
}

bool RelayedCalls::answer(RelayConnection& connection, std::int64_t result, int error, bool is_refused) {
  Header header;
  header.type = Type::answer;
  header.bytes = std::max<std::int64_t>(result, 0);
  header.error = error;
  header.number = is_refused ? 1 : 0;
  connection.stream.send(header);
  return send_all(connection.stream);
}

bool RelayedCalls::carry_out(RelayConnection& connection) {
  const auto call = forward::read_call(connection.stream.header(), connection.stream.meta());
  if (!call) {
    log_("disconnected a relay: it sent " + call.error().text);
    return false;
  }
  if (call.value().kind == RelayedCall::Kind::sync) return sync(connection, call.value());
  Fd file;
  if (!open(call.value(), file)) {
    // Its data have come before.
    if (call.value().bytes > forward::LocalCaller::kept_bytes) connection.caller->shrink();
    return answer(connection, 0, 0, true);
  }
  const bool reads = call.value().kind == RelayedCall::Kind::read;
  forward_request request{};
  request.call = reads ? forward_read : forward_write;
  request.offset = call.value().offset;
  request.from_offset = -1;
  request.bytes = call.value().bytes;
  const bool is_synced = reads || call.value().syncs_all || call.value().syncs_data;
  const auto kept = is_synced ? std::nullopt : keep(file.get());
  if (!is_synced && !kept) request.flags = RWF_DSYNC;
  const auto made = connection.caller->call(request, std::move(file), connection.socket,
                                            [&connection] { show_life(connection.stream); });
  if (kept) note_written(*kept);
  if (!made) return false;
  for (std::int64_t at = 0; reads && at < made->result; at += transport::most_payload) {
    Header header;
    header.type = Type::chunk;
    header.bytes = std::min<std::int64_t>(made->result - at, transport::most_payload);
    header.shared = at;
    connection.stream.send(header, {}, transport::chunk_of(connection.caller->memory(), at, header.bytes));
  }
  const bool goes_on = answer(connection, made->result, made->result < 0 ? made->error : 0, made->own != 0);
  if (request.bytes > forward::LocalCaller::kept_bytes) connection.caller->shrink();
  return goes_on;
}

// A sync may take long, so a thread makes it, and this one shows the relay that the server lives.
bool RelayedCalls::sync(RelayConnection& connection, const RelayedCall& call) {
  Fd file;
  if (!call.file.path.empty() && !open(call, file)) return answer(connection, 0, 0, true);
  const std::uint64_t writes = last_write();
  const auto make = [this, &file] {
    const bool is_done = file ? fsync(file.get()) == 0 : syncfs(root_.get()) == 0;
    return is_done ? 0 : errno;
  };
  int error = 0;
  try {
    auto made = std::async(std::launch::async, make);
    while (made.wait_for(forward::shows_life_every) != std::future_status::ready) show_life(connection.stream);
    error = made.get();
  } catch (const std::system_error&) {  // the process has too many threads
    error = make();
  }
  let_go(file.get(), writes);
  return answer(connection, 0, error, false);
}

}  // namespace hocket::server
