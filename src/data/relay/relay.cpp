#include "relay/relay.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/clock.hpp"

namespace hocket::relay {
namespace {

using forward::RelayedCall;

// Time for which a call waits until it is known that nothing of the file is under way any more.
constexpr Duration limbo_bound = std::chrono::seconds{30};

// True if the file's descriptor and the call's flags ask for nothing that only this node can do, or that is not certain
// elsewhere: an append sets the offset to where the file ends there, direct I/O needs aligned memory.
bool may_be_relayed(const forward_request& request, int status) {
  constexpr int only_here = O_APPEND | O_DIRECT | O_PATH | O_NOATIME;
  if (status < 0 || (status & only_here) != 0) return false;
  if ((request.flags & ~(RWF_DSYNC | RWF_SYNC)) != 0 || (request.offset < 0 && request.is_own == 0)) return false;
  const int mode = status & O_ACCMODE;
  return mode == O_RDWR || mode == (request.call == forward_write ? O_WRONLY : O_RDONLY);
}

// True if the client has gone, so that its call is not made any more.
bool has_gone(int client) {
  pollfd end{client, POLLRDHUP, 0};
  return poll(&end, 1, 0) == 1;
}

bool has_all(int status, int flag) { return (status & flag) == flag; }

}  // namespace

// ---- what the servers of a relay know together ---------------------------------------------------------------------

void RelayedFiles::add(ServerPtr server) {
  const std::lock_guard lock(mutex_);
  servers_.push_back(std::move(server));
}

bool RelayedFiles::has_room_for(FileNumber file) const {
  const std::lock_guard lock(mutex_);
  return unsynced_.size() < most_unsynced || unsynced_.contains(file);
}

void RelayedFiles::note_write(FileNumber file, const std::string& node) {
  const std::lock_guard lock(mutex_);
  UnsyncedFile& written = unsynced_[file];
  written.nodes.insert(node);
  written.writes = ++writes_;
}

RelayedFiles::UnsyncedFile RelayedFiles::unsynced(FileNumber file) const {
  const std::lock_guard lock(mutex_);
  const auto found = unsynced_.find(file);
  return found == unsynced_.end() ? UnsyncedFile{} : found->second;
}

std::map<FileNumber, RelayedFiles::UnsyncedFile> RelayedFiles::all_unsynced() const {
  const std::lock_guard lock(mutex_);
  return unsynced_;
}

void RelayedFiles::note_sync(FileNumber file, const UnsyncedFile& synced) {
  const std::lock_guard lock(mutex_);
  const auto found = unsynced_.find(file);
  if (found != unsynced_.end() && found->second.writes == synced.writes) unsynced_.erase(found);
}

std::vector<RelayedFiles::ServerPtr> RelayedFiles::on(const std::string& node) const {
  const std::lock_guard lock(mutex_);
  std::vector<ServerPtr> found;
  std::ranges::copy_if(servers_, std::back_inserter(found), [&](const auto& one) { return one->node() == node; });
  return found;
}

void RelayedFiles::note_limbo(FileNumber file, ServerPtr server) {
  const std::lock_guard lock(mutex_);
  limbo_[file].insert(std::move(server));
}

void RelayedFiles::begin_write(FileNumber file, int client) {
  const std::lock_guard lock(mutex_);
  under_way_.emplace(file, client);
}

void RelayedFiles::end_write(FileNumber file, int client) {
  {
    const std::lock_guard lock(mutex_);
    const auto [first, last] = under_way_.equal_range(file);
    const auto found = std::find_if(first, last, [client](const auto& one) { return one.second == client; });
    if (found != last) under_way_.erase(found);
  }
  write_ended_.notify_all();
}

// Waits until no write is under way whose client has ended. Returns false if that is not so in time.
bool RelayedFiles::await_left_writes(FileNumber file, Time until) {
  constexpr Duration look = std::chrono::milliseconds{100};
  std::unique_lock lock(mutex_);
  while (true) {
    const auto [first, last] = under_way_.equal_range(file);
    if (std::none_of(first, last, [](const auto& one) { return has_gone(one.second); })) return true;
    if (node_now() >= until) return false;
    write_ended_.wait_for(lock, look);
  }
}

bool RelayedFiles::await_clear(FileNumber file, Duration bound) {
  const Time until = node_now() + bound;
  if (!await_left_writes(file, until)) return false;
  while (true) {
    ServerPtr server;
    {
      const std::lock_guard lock(mutex_);
      const auto found = limbo_.find(file);
      if (found == limbo_.end()) return true;
      server = *found->second.begin();
    }
    if (!server->await_settled(std::max(until - node_now(), Duration{}))) return false;
    const std::lock_guard lock(mutex_);
    const auto found = limbo_.find(file);
    if (found == limbo_.end()) return true;
    if (!server->is_settled()) continue;  // because of a later write, which may be one of this file
    found->second.erase(server);
    if (found->second.empty()) limbo_.erase(found);
  }
}

// ---- offsets of descriptions ----------------------------------------------------------------------------------------

std::int64_t RelayedFiles::take_place(int file, std::int64_t bytes) {
  const std::lock_guard lock(offsets_);
  const off64_t behind = lseek64(file, bytes, SEEK_CUR);
  return behind < 0 ? -1 : behind - bytes;
}

void RelayedFiles::give_place_back(int file, std::int64_t to, std::int64_t bytes) {
  const std::lock_guard lock(offsets_);
  if (bytes <= 0 || lseek64(file, 0, SEEK_CUR) != to + bytes) return;
  if (lseek64(file, -bytes, SEEK_CUR) != to) lseek64(file, bytes, SEEK_CUR);
}

bool RelayedFiles::move_behind_read(int file, std::int64_t from, std::int64_t bytes) {
  const std::lock_guard lock(offsets_);
  if (lseek64(file, 0, SEEK_CUR) != from) return false;
  if (bytes <= 0 || lseek64(file, bytes, SEEK_CUR) == from + bytes) return true;
  lseek64(file, -bytes, SEEK_CUR);
  return false;
}

// ---- calls ---------------------------------------------------------------------------------------------------------

void CallRelay::make(const forward_request& request, int file, char* memory, int client, forward_answer& answer) {
  if (request.call == forward_sync) return sync(file, answer);
  struct stat about {};
  if (fstat(file, &about) != 0) return leave(answer);
  const FileNumber key{about.st_dev, about.st_ino};
  // Also before a write that the program makes itself.
  if (request.call != forward_read && !files_.await_clear(key, limbo_bound)) return fail(answer);
  if (request.call != forward_read && request.call != forward_write) return leave(answer);
  const int status = fcntl(file, F_GETFL);
  if (about.st_nlink == 0 || !may_be_relayed(request, status)) return leave(answer);
  auto name = forward::name_elsewhere(file);
  if (!name) return leave(answer);
  RelayedCall call;
  call.kind = request.call == forward_write ? RelayedCall::Kind::write : RelayedCall::Kind::read;
  call.syncs_all = has_all(status, O_SYNC) || (request.flags & RWF_SYNC) != 0;
  call.syncs_data = has_all(status, O_DSYNC) || (request.flags & RWF_DSYNC) != 0;
  call.bytes = request.bytes;
  call.file = std::move(*name);
  if (call.kind == RelayedCall::Kind::write) {
    if (!call.syncs_all && !files_.has_room_for(key)) call.syncs_all = true;
    write(request, call, {file, client, memory, key}, answer);
  } else {
    read(request, call, {file, client, memory, key}, answer);
  }
}

// Other writes of the file wait for one whose client has ended: a parent may write when it knows that its child has.
void CallRelay::write(const forward_request& request, RelayedCall& call, const CallPlace& place,
                      forward_answer& answer) {
  files_.begin_write(place.key, place.client);
  if (has_gone(place.client))
    fail(answer);
  else
    make_write(request, call, place, answer);
  files_.end_write(place.key, place.client);
}

// A write without an offset of its own takes its place in the file first: the offset moves as at a write, whoever else
// moves it meanwhile. From then on the program cannot make it any more, because other threads may have moved on: what
// the server does not write, the relay writes, at that place. What was not written is given back if nobody has.
void CallRelay::make_write(const forward_request& request, RelayedCall& call, const CallPlace& place,
                           forward_answer& answer) {
  RemoteServer::LinkPtr link = server_->take();
  if (!link) return fails_ ? fail(answer) : leave(answer);
  const bool moves = request.offset < 0;
  call.offset = moves ? files_.take_place(place.file, call.bytes) : request.offset;
  if (call.offset < 0) return leave(answer);  // beyond the largest offset: the kernel says so
  RemoteServer::RemoteAnswer got;
  RemoteServer::Became became = server_->make(std::move(link), call, place.memory, place.client, got);
  const auto keep = [&](std::int64_t written) {
    if (moves) files_.give_place_back(place.file, call.offset + written, call.bytes - written);
  };
  const bool is_refused = became == RemoteServer::Became::answered && got.is_refused;
  if (!moves && (is_refused || (became == RemoteServer::Became::not_made && !fails_))) return leave(answer);
  if (became == RemoteServer::Became::unknown) {
    files_.note_limbo(place.key, server_);
    files_.end_write(place.key, place.client);  // this thread would wait for itself
    if (!files_.await_clear(place.key, limbo_bound)) return keep(0), fail(answer);
    files_.begin_write(place.key, place.client);
    became = RemoteServer::Became::over;
  }
  if (became == RemoteServer::Became::answered && !is_refused) {
    if (got.result > 0 && !call.syncs_all) files_.note_write(place.key, server_->node());
    count(got.result);
  } else {
    // The call is over. Whatever has been written of it is written again, to the same place.
    if ((fails_ && !is_refused) || has_gone(place.client)) return keep(0), fail(answer);
    const iovec data{place.memory, static_cast<std::size_t>(call.bytes)};
    got.result = pwritev2(place.file, &data, 1, call.offset, request.flags);
    got.error = got.result < 0 ? errno : 0;
    ++refused_;
  }
  keep(std::max<std::int64_t>(got.result, 0));
  answer.result = got.result;
  answer.error = got.error;
}

void CallRelay::read(const forward_request& request, RelayedCall& call, const CallPlace& place,
                     forward_answer& answer) {
  const bool moves = request.offset < 0;
  call.offset = moves ? lseek64(place.file, 0, SEEK_CUR) : request.offset;
  if (call.offset < 0) return leave(answer);
  RemoteServer::RemoteAnswer got;
  const RemoteServer::Became became = server_->make(call, place.memory, place.client, got);
  if (became == RemoteServer::Became::answered && !got.is_refused) {
    if (moves && !files_.move_behind_read(place.file, call.offset, got.result)) return leave(answer);
    count(got.result);
    answer.result = got.result;
    answer.error = got.error;
    return;
  }
  if (became != RemoteServer::Became::answered && fails_) return fail(answer);
  leave(answer);
}

// ---- sync ----------------------------------------------------------------------------------------------------------

// A file is synced on each node that has written it. A failure is told once, as by the kernel.
void CallRelay::sync(int file, forward_answer& answer) {
  const auto tell = [&](int error) {
    if (error == 0 || answer.error != 0) return;
    answer.result = -1;
    answer.error = error;
  };
  if (file >= 0) {
    struct stat about {};
    if (fstat(file, &about) != 0) return leave(answer);
    const FileNumber key{about.st_dev, about.st_ino};
    const RelayedFiles::UnsyncedFile written = files_.unsynced(key);
    // A file that nobody can open any more does not outlive a crash.
    for (const std::string& node : written.nodes)
      if (about.st_nlink > 0) tell(sync_on(node, file));
    return files_.note_sync(key, written);
  }
  const auto all = files_.all_unsynced();
  std::set<std::string> nodes;
  for (const auto& [key, written] : all) nodes.insert(written.nodes.begin(), written.nodes.end());
  for (const std::string& node : nodes) tell(sync_on(node, -1));
  for (const auto& [key, written] : all) files_.note_sync(key, written);
}

// Any server of the node will do: its kernel has the data. If it cannot open the file any more, because that has
// another name or other rights now, it syncs all files. Returns the number of errno.
int CallRelay::sync_on(const std::string& node, int file) const {
  std::vector<RelayedCall> calls(1);
  if (auto name = file >= 0 ? forward::name_elsewhere(file) : std::nullopt)
    calls.insert(calls.begin(), RelayedCall{.file = std::move(*name)});
  for (const RelayedCall& call : calls) {
    for (const RelayedFiles::ServerPtr& server : files_.on(node)) {
      RemoteServer::RemoteAnswer got;
      if (server->make(call, nullptr, -1, got) == RemoteServer::Became::answered && !got.is_refused) return got.error;
    }
  }
  return EIO;
}

void CallRelay::count(std::int64_t bytes) {
  ++calls_;
  bytes_ += std::max<std::int64_t>(bytes, 0);
}

void CallRelay::leave(forward_answer& answer) {
  ++refused_;
  answer.own = forward_once;
}

void CallRelay::fail(forward_answer& answer) {
  ++lost_;
  answer.result = -1;
  answer.error = EIO;
}

}  // namespace hocket::relay
