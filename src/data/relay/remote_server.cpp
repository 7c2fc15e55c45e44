#include "relay/remote_server.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <span>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "forward/protocol.h"
#include "transport/address.hpp"
#include "transport/proof.hpp"
#include "transport/server_link.hpp"

namespace hocket::relay {
namespace {

using transport::Header;
using transport::Stream;
using transport::Type;

// Returns the number of the node that the addresses name; "" if none does.
std::string node_of(const std::string& addresses) {
  const auto read = transport::read_addresses(addresses);
  if (!read) return {};
  for (const transport::Address& address : read.value())
    if (!address.node.empty()) return address.node;
  return {};
}

int timeout_ms(Time until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - node_now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

// Waits until the stream can go on, or the client has gone. Returns false in the second case, and at the deadline.
bool await(const Stream& stream, short events, int client, Time until) {
  std::array<pollfd, 2> both{{{stream.descriptor(), events, 0}, {client, POLLRDHUP, 0}}};
  const int ready = ::poll(both.data(), both.size(), timeout_ms(until));
  if (ready < 0) return true;
  return ready > 0 && both[1].revents == 0;
}

}  // namespace

RemoteServer::RemoteServer(RemoteSettings settings)
    : settings_(std::move(settings)),
      node_(node_of(settings_.addresses)),
      // A later relay of the run begins later, so that its generations are higher.
      generation_(static_cast<std::uint64_t>(node_now().time_since_epoch().count())) {}

// Connects, and waits until the server has nothing of earlier generations under way. nullptr: that did not come about.
RemoteServer::LinkPtr RemoteServer::connect(Duration bound) {
  const Time until = node_now() + bound;
  const auto secret = transport::read_secret(settings_.secret_file);
  auto reached =
      transport::reach_server(settings_.addresses, secret ? secret.value() : std::string{}, settings_.connecting);
  if (!reached) return nullptr;
  auto link = std::make_unique<RemoteLink>(RemoteLink{std::move(reached.value().stream), generation_});
  Header header;
  header.type = Type::relay;
  header.operation = link->generation;
  header.handle = geteuid();
  link->stream.send(header, settings_.run);
  while (!link->stream.ended()) {
    link->stream.flush();
    const Stream::Got got = link->stream.receive();
    if (got == Stream::Got::frame && link->stream.header().type == Type::answer) return link;
    if (got == Stream::Got::frame && link->stream.header().type == Type::alive) continue;
    if (got != Stream::Got::nothing || !await(link->stream, POLLIN, -1, until)) return nullptr;
  }
  return nullptr;
}

RemoteServer::LinkPtr RemoteServer::take() {
  int failures = 0;
  {
    std::unique_lock lock(mutex_);
    if (!look_if_settled()) {
      // One call looks if it is settled by now; others do not wait for that.
      if (!may_try(settings_.connecting + settings_.again_after)) return nullptr;
      lock.unlock();
      if (!settle()) return nullptr;
      lock.lock();
    }
    while (!idle_.empty()) {
      LinkPtr link = std::move(idle_.back());
      idle_.pop_back();
      // A server that has ended, or another generation, is found before anything is sent.
      pollfd end{link->stream.descriptor(), POLLIN | POLLRDHUP, 0};
      if (link->generation == generation_ && ::poll(&end, 1, 0) == 0) return link;
    }
    // One call looks if a server answers again that did not; others do not wait for that.
    if (!may_try(failures_ > 0 ? settings_.connecting : Duration{})) return nullptr;
    failures = failures_;
  }
  LinkPtr link = connect(settings_.connecting);
  const std::lock_guard lock(mutex_);
  if (link) {
    failures_ = 0;
    down_until_ = {};
    return link->generation == generation_ ? std::move(link) : nullptr;
  }
  if (failures_ != failures) return nullptr;  // another attempt at the same time has failed, and counts for this one
  constexpr int most_doublings = 5;
  down_until_ = node_now() + settings_.again_after * (1 << std::min(failures_++, most_doublings));
  return nullptr;
}

void RemoteServer::give_back(LinkPtr link) {
  const std::lock_guard lock(mutex_);
  if (link->generation == generation_) idle_.push_back(std::move(link));
}

// Gives up all connections, because nobody knows what became of a call. The next generation is admitted when it is
// over. If the server ends before, or ends the connection of the call, that shows it, too.
void RemoteServer::leave(RemoteLink& link) {
  // A socket that had an error does not tell any more who has closed it.
  KeptFd socket = link.stream.ended() ? KeptFd{} : link.stream.release();
  const std::lock_guard lock(mutex_);
  partings_.emplace_back(std::move(socket));
  is_unsettled_ = true;
  if (link.generation != generation_) return;
  ++generation_;
  idle_.clear();
  down_until_ = {};
}

// Returns true if this call may look for the server now. Others may not for so long. Precondition: the mutex is held.
bool RemoteServer::may_try(Duration alone) {
  const Time present = node_now();
  if (present < down_until_) return false;
  down_until_ = present + alone;
  return true;
}

// Precondition: the mutex is held.
bool RemoteServer::look_if_settled() {
  if (!is_unsettled_) return true;
  std::erase_if(partings_, [](transport::Parting& one) { return one.is_over(); });
  is_unsettled_ = !partings_.empty();
  return !is_unsettled_;
}

bool RemoteServer::settle() {
  LinkPtr link = connect(settings_.connecting);
  const std::lock_guard lock(mutex_);
  if (!link || link->generation != generation_) return !is_unsettled_;
  is_unsettled_ = false;
  partings_.clear();
  down_until_ = {};
  idle_.push_back(std::move(link));
  return true;
}

bool RemoteServer::is_settled() {
  const std::lock_guard lock(mutex_);
  return look_if_settled();
}

bool RemoteServer::await_settled(Duration bound) {
  constexpr Duration pause = std::chrono::milliseconds{20};
  for (const Time until = node_now() + bound;; std::this_thread::sleep_for(pause)) {
    bool is_mine = false;
    {
      const std::lock_guard lock(mutex_);
      if (look_if_settled()) return true;
      is_mine = may_try(settings_.connecting + settings_.again_after);
    }
    if (is_mine && settle()) return true;
    if (node_now() >= until) return false;
  }
}

// Sends a call with its data. Returns false if it has not been sent in full, so that the server does not carry it out.
bool RemoteServer::send(RemoteLink& link, const forward::RelayedCall& call, char* memory) const {
  const bool writes = call.kind == forward::RelayedCall::Kind::write;
  for (std::int64_t at = 0; writes && at < call.bytes; at += transport::most_payload) {
    Header header;
    header.type = Type::chunk;
    header.bytes = std::min<std::int64_t>(call.bytes - at, transport::most_payload);
    header.shared = at;
    link.stream.send(header, {}, transport::chunk_of(memory, at, header.bytes));
  }
  link.stream.send(forward::header_of(call), forward::meta_of(call));
  Time heard = node_now();
  while (link.stream.has_unsent()) {
    if (link.stream.flush()) heard = node_now();
    if (link.stream.ended()) return false;
    if (link.stream.has_unsent() && !await(link.stream, POLLOUT, -1, heard + settings_.silence)) return false;
  }
  return true;
}

RemoteServer::Became RemoteServer::receive(RemoteLink& link, const forward::RelayedCall& call, char* memory, int client,
                                           RemoteAnswer& answer) const {
  const Time sent = node_now();
  Time heard = sent;
  std::uint64_t moved = link.stream.moved_bytes();
  while (true) {
    const Stream::Got got = link.stream.receive();
    const Header& header = link.stream.header();
    if (link.stream.moved_bytes() != std::exchange(moved, link.stream.moved_bytes())) heard = node_now();
    if (got == Stream::Got::ended) return link.stream.closed_by_peer() ? Became::over : Became::unknown;
    if (got == Stream::Got::announced) {
      const bool is_data = header.type == Type::chunk && call.kind == forward::RelayedCall::Kind::read &&
                           header.shared <= call.bytes && header.payload <= call.bytes - header.shared;
      if (!is_data) return Became::unknown;
      link.stream.take_payload(transport::chunk_of(memory, header.shared, header.payload));
      continue;
    }
    if (got == Stream::Got::frame) {
      if (header.type != Type::answer) continue;
      answer.is_refused = header.number != 0;
      answer.error = header.error;
      answer.result = header.error != 0 ? -1 : header.bytes;
      return answer.result > call.bytes ? Became::unknown : Became::answered;
    }
    const Time until = std::min(heard + settings_.silence, sent + settings_.answering);
    if (await(link.stream, POLLIN, client, until)) continue;
    if (call.kind != forward::RelayedCall::Kind::write || link.is_left || node_now() >= until) return Became::unknown;
    // The client has gone. The server drops a write that it has not begun, and ends the connection after one that it
    // has: then other calls need not wait.
    shutdown(link.stream.descriptor(), SHUT_WR);
    link.is_left = true;
    client = -1;
  }
}

RemoteServer::Became RemoteServer::make(const forward::RelayedCall& call, char* memory, int client,
                                        RemoteAnswer& answer) {
  LinkPtr link = take();
  return link ? make(std::move(link), call, memory, client, answer) : Became::not_made;
}

RemoteServer::Became RemoteServer::make(LinkPtr link, const forward::RelayedCall& call, char* memory, int client,
                                        RemoteAnswer& answer) {
  if (!send(*link, call, memory)) {
    link->stream.close();
    return Became::not_made;
  }
  const Became became = receive(*link, call, memory, client, answer);
  if (became == Became::answered) {
    if (!link->is_left) give_back(std::move(link));
    return became;
  }
  if (became == Became::over) return became;
  if (call.kind == forward::RelayedCall::Kind::write) {
    leave(*link);
    return Became::unknown;
  }
  // What may still come of it changes nothing. The other connections may be as dead.
  const std::lock_guard lock(mutex_);
  idle_.clear();
  return Became::over;
}

}  // namespace hocket::relay
