// The part of ForwardService that carries requests out: calls, merged calls, and collected writes.
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <span>
#include <thread>

#include "base/clock.hpp"
#include "forward/forward_connection.hpp"
#include "forward/forward_service.hpp"
#include "request_scheduler/vector_calls.hpp"

namespace hocket::forward {
namespace {

ssize_t call(const forward_request& request, int file, int from, void* memory) {
  iovec data{memory, static_cast<std::size_t>(request.bytes)};
  off64_t offset = request.offset, from_offset = request.from_offset;
  switch (request.call) {
    case forward_read: return preadv2(file, &data, 1, request.offset, request.flags);
    case forward_write: return pwritev2(file, &data, 1, request.offset, request.flags);
    case forward_copy:
      return copy_file_range(from, from_offset < 0 ? nullptr : &from_offset, file, offset < 0 ? nullptr : &offset,
                             data.iov_len, static_cast<unsigned>(request.flags));
    case forward_send: return sendfile64(file, from, from_offset < 0 ? nullptr : &from_offset, data.iov_len);
    default: errno = EINVAL; return -1;
  }
}

// True if the server's own limit has failed the call. Clients that forward writes have none.
bool exceeds_own_limit(int error) {
  rlimit limit{};
  return error == EFBIG && getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

// True if nothing of this process could fail a write that it makes later.
bool has_no_limit() {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY;
}

}  // namespace

// Waits until I/O servers have stored what they hold of the file. Another thread carries out what waits meanwhile.
void ForwardService::await_holders(FileKey file) const {
  if (settings_.held == nullptr || !settings_.held->any()) return;
  wake_another();
  settings_.held->await(file);
}

// True if the client is still there. One that was killed while its call waited makes it no more.
bool ForwardService::is_there(const ForwardConnection& connection) {
  constexpr Duration short_wait = std::chrono::milliseconds{1};
  if (node_now() - connection.arrival < short_wait) return true;
  pollfd end{connection.socket.get(), POLLRDHUP, 0};
  return poll(&end, 1, 0) == 0 || (end.revents & (POLLRDHUP | POLLHUP)) == 0;
}

// Carries out the requests of a batch. Those that follow one another in the file share a system call. `last` is that
// connection which was answered last, and is not watched yet.
void ForwardService::carry_out(const request_scheduler::RequestBatch& batch, ForwardConnection*& last) {
  std::vector<ForwardConnection*> calls;
  for (const std::uint64_t ticket : batch.tickets) {
    ForwardConnection* const connection = find(ticket >> request_bits);
    if (connection == nullptr) continue;
    if (batch.tickets.size() == 1) {
      if (carry_out(*connection)) last = connection;
      return;
    }
    if (is_ready(*connection)) calls.push_back(connection);
  }
  std::vector<request_scheduler::VectorPart> parts;
  struct stat first {};
  for (const ForwardConnection* const connection : calls) {
    struct stat file {};
    const bool is_known = fstat(connection->message.descriptors[0].get(), &file) == 0;
    if (parts.empty()) first = file;
    const forward_request& request = connection->message.content.request;
    // Two files may have one key, so they may share a batch.
    const bool is_same = is_known && file.st_dev == first.st_dev && file.st_ino == first.st_ino;
    parts.push_back({request.offset, request.bytes, is_same ? kind_of(*connection) : 0});
  }
  constexpr std::size_t most_parts = 1024;  // IOV_MAX
  for (const request_scheduler::VectorCall& one :
       request_scheduler::vector_calls(parts, most_parts, forward_most_bytes)) {
    carry_out(std::span{calls}.subspan(one.first, one.count), last);
  }
}

// Returns what calls must have in common to share a system call; 0 for one that may not: without an explicit offset,
// one that appends, or one that O_DIRECT may refuse for its place.
std::uint64_t ForwardService::kind_of(const ForwardConnection& connection) const {
  const forward_request& request = connection.message.content.request;
  constexpr std::int64_t direct_block = 4096;
  constexpr int mergeable = RWF_DSYNC | RWF_SYNC | RWF_HIPRI;
  const bool moves = request.call == forward_read || request.call == forward_write;
  if (!moves || request.offset < 0 || (request.flags & ~mergeable) != 0) return 0;
  const int status = fcntl(connection.message.descriptors[0].get(), F_GETFL);
  const bool writes = request.call == forward_write;
  if (status < 0 || (writes && (status & O_APPEND) != 0)) return 0;
  if (is_overlay_ && (status & O_ACCMODE) == O_RDONLY) return 0;
  if ((status & O_DIRECT) != 0 && (request.offset % direct_block != 0 || request.bytes % direct_block != 0)) return 0;
  constexpr std::uint64_t is_kind = 1;
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(status)) << 32U |
         static_cast<std::uint64_t>(static_cast<std::uint32_t>(request.flags)) << 2U | (writes ? 2U : 0U) | is_kind;
}

// Carries out calls that follow one another in one file, by one system call if there are several. Where it fails or
// ends early, each of the rest is made alone, so that it has its own result.
void ForwardService::carry_out(std::span<ForwardConnection* const> calls, ForwardConnection*& last) {
  std::vector<std::int64_t> results;
  // The calls of a batch before this one may have taken long, and a client may have been killed meanwhile.
  const auto is_waited_for = [](const ForwardConnection* one) { return is_there(*one); };
  if (calls.size() > 1 && std::ranges::all_of(calls, is_waited_for)) {
    std::vector<iovec> data;
    std::vector<request_scheduler::VectorPart> parts;
    for (const ForwardConnection* const one : calls) {
      const forward_request& request = one->message.content.request;
      data.push_back({one->segment->memory(), static_cast<std::size_t>(request.bytes)});
      parts.push_back({request.offset, request.bytes, 1});
    }
    const forward_request& first = calls.front()->message.content.request;
    const int file = calls.front()->message.descriptors[0].get();
    const int count = static_cast<int>(data.size());
    const std::int64_t moved = first.call == forward_write
                                   ? pwritev2(file, data.data(), count, first.offset, first.flags)
                                   : preadv2(file, data.data(), count, first.offset, first.flags);
    note_system_call(moved);
    results = request_scheduler::settled_parts(parts, moved);
    merged_ += static_cast<std::int64_t>(results.size());
  }
  for (std::size_t i = 0; i < calls.size(); ++i) {
    ForwardConnection& one = *calls[i];
    const bool goes_on = i < results.size() ? answer(one, results[i], 0) : carry_out(one);
    if (!goes_on) continue;
    if (last != nullptr) watch(last->socket.get(), last->number, false);
    last = &one;
  }
}

// Returns false if the call is over: its client has gone, or makes it itself.
bool ForwardService::is_ready(ForwardConnection& connection) {
  if (!is_there(connection)) return end(connection, nullptr), false;
  if (connection.message.content.request.call == forward_store || is_served(connection.message)) return true;
  forward_answer answer{};
  answer.own = forward_always;
  if (reply(connection, answer)) watch(connection.socket.get(), connection.number, false);
  return false;
}

// Carries out one request. Returns false if the connection has ended.
bool ForwardService::carry_out(ForwardConnection& connection) {
  if (!is_there(connection)) return end(connection, nullptr), false;
  forward_answer answer{};
  switch (connection.message.content.request.call) {
    case forward_hold: hold(connection, answer); break;
    case forward_store: store(connection, answer); break;
    case forward_sync: have_made(connection, answer); break;
    default: make_call(connection, answer); break;
  }
  return reply(connection, answer);
}

// Answers a call that was made. Returns false if the connection has ended.
bool ForwardService::answer(ForwardConnection& connection, std::int64_t result, int error) {
  forward_answer answer{};
  answer.result = result;
  answer.error = error;
  answer.own = exceeds_own_limit(error) ? forward_once : 0;
  count(result);
  return reply(connection, answer);
}

// The copies of the descriptors are closed before the answer: then the client may rely on locks, leases and unmounting.
// If the file system refuses at that close what it took before, the call has failed: the program's own close would not
// say so. Returns false if the connection has ended.
bool ForwardService::reply(ForwardConnection& connection, forward_answer answer) {
  if (answer.own != 0) ++refused_;
  for (Fd& copy : connection.message.descriptors) {
    const int error = copy.close_now();
    if (error != 0 && answer.result >= 0) answer.result = -1, answer.error = error;
  }
  connection.is_waiting = false;
  ++connection.calls;
  if (is_unanswered(connection.message.content.request)) return true;
  return send_to(connection.socket.get(), answer) || (end(connection, nullptr), false);
}

void ForwardService::make_call(ForwardConnection& connection, forward_answer& answer) {
  ForwardMessage& message = connection.message;
  if (!is_served(message)) {
    answer.own = forward_always;
    return;
  }
  if (settings_.maker != nullptr) return have_made(connection, answer);
  answer.result = call(message.content.request, message.descriptors[0].get(), message.descriptors[1].get(),
                       connection.segment->memory());
  answer.error = answer.result < 0 ? errno : 0;
  answer.own = exceeds_own_limit(answer.error) ? forward_once : 0;
  count_made(answer.result);
}

// Has somebody else make a call, if anybody does.
void ForwardService::have_made(ForwardConnection& connection, forward_answer& answer) {
  const forward_request& request = connection.message.content.request;
  if (settings_.maker == nullptr) {
    answer.own = forward_once;
    return;
  }
  settings_.maker->make(request, connection.message.descriptors[0].get(), connection.segment->memory(),
                        connection.socket.get(), answer);
  if (answer.own == 0) count_made(answer.result);
}

void ForwardService::count(std::int64_t bytes) {
  ++requests_;
  bytes_ += std::max<std::int64_t>(bytes, 0);
}

// Counts a request, or collected writes, that took a system call.
void ForwardService::count_made(std::int64_t bytes) {
  note_system_call(bytes);
  count(bytes);
}

void ForwardService::note_system_call(std::int64_t bytes) {
  ++system_calls_;
  if (settings_.limit_bytes_per_s > 0) take_time(bytes);
}

// ---- collected writes ----------------------------------------------------------------------------------------------

std::shared_ptr<CollectedWrites> ForwardService::collected_by(const ForwardConnection& connection) const {
  const std::lock_guard lock(mutex_);
  return connection.collected;
}

void ForwardService::hold(ForwardConnection& connection, forward_answer& answer) {
  Fd& file = connection.message.descriptors[0];
  struct stat about {};
  if (settings_.maker != nullptr) {
    answer.own = forward_once;
    return;
  }
  if (!is_served(connection.message) || fstat(file.get(), &about) != 0) {
    answer.own = forward_always;
    return;
  }
  answer.own = has_no_limit() ? 0 : forward_once;
  if (answer.own != 0) return;
  const auto old = collected_by(connection);
  if (old) old->close();
  const FileKey key = key_of(about.st_dev, about.st_ino);
  if (queue_.needs_data_servers()) queue_.data_servers().at(key, file.get(), 0);  // so that the stores to come find it
  auto collected = std::make_shared<CollectedWrites>(connection.segment, std::move(file), key);
  const std::lock_guard lock(mutex_);
  connection.collected = std::move(collected);
}

void ForwardService::store(ForwardConnection& connection, forward_answer& answer) {
  const auto collected = collected_by(connection);
  if (!collected) {
    answer.own = forward_once;
    return;
  }
  await_holders(collected->key());
  const forward_request& request = connection.message.content.request;
  const bool is_last = (request.flags & forward_last) != 0;
  if (is_unanswered(request))
    answer.result = collected->store();
  else
    answer.result = is_last ? collected->close() : collected->store_all();
  count_made(answer.result);
  if (!is_last) return;
  const std::lock_guard lock(mutex_);
  connection.collected = nullptr;
}

// Writes what clients have collected for some time, and gives descriptors back that have not been used meanwhile.
void ForwardService::store_late() {
  pollfd stopped{stop_.get(), POLLIN, 0};
  while (!stopping_) {
    poll(&stopped, 1, forward_beat_ms);
    std::vector<std::shared_ptr<CollectedWrites>> all;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [number, connection] : connections_)
        if (connection->collected) all.push_back(connection->collected);
    }
    for (const auto& one : all) {
      if (one->pending().bytes > 0) await_holders(one->key());
      const std::int64_t written = one->look();
      if (written > 0) count_made(written);
    }
  }
}

// Lets a call take as long as if all calls shared a device of that rate.
void ForwardService::take_time(std::int64_t bytes) {
  const Duration own{std::max<std::int64_t>(bytes, 0) * 1'000'000'000 / settings_.limit_bytes_per_s};
  const std::int64_t now_ns = node_now().time_since_epoch().count();
  std::int64_t free_ns = busy_until_ns_, until_ns = 0;
  do until_ns = std::max(now_ns, free_ns) + own.count();
  while (!busy_until_ns_.compare_exchange_weak(free_ns, until_ns));
  std::this_thread::sleep_for(std::chrono::nanoseconds(until_ns - now_ns));
}

void ForwardService::end(ForwardConnection& connection, const char* reason) {
  if (reason != nullptr) log_(std::string("disconnected a forwarding client: ") + reason);
  if (const auto collected = collected_by(connection)) {
    if (collected->pending().bytes > 0) await_holders(collected->key());
    const std::int64_t written = collected->close();
    if (written > 0) count_made(written);
  }
  queue_.clients().remove(connection.client);
  const std::lock_guard lock(mutex_);
  connections_.erase(connection.number);
}

ForwardTotals ForwardService::totals() const {
  const StorageQueue::Waiting waiting = queue_.waiting();
  const std::lock_guard lock(mutex_);
  return {requests_,     bytes_,  refused_,      static_cast<std::int64_t>(connections_.size()),
          system_calls_, merged_, waiting.calls, waiting.waited};
}

}  // namespace hocket::forward
