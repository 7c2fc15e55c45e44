// Has other nodes carry out the calls of a program under `hocket forward --on` (docs/design/forwarding-elsewhere.md).
//
//   ForwardService (socket of one server) ── call, descriptor ──► CallRelay ──► RemoteServer ── TCP ──► hocket-server
//                                                                    └─ refuses: the client makes the call itself
//
// The file system must show each node at once what others have written. A call is relayed only if it is certain that
// it does there what it would do here; the client makes all others by itself, with its own descriptor.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "forward/forward_service.hpp"
#include "relay/remote_server.hpp"

namespace hocket::relay {

// Device and inode of a file, as the relay's node has them.
using FileNumber = std::pair<dev_t, ino_t>;

// The knowledge that all servers of a relay share: the files that one of them has written, and nobody has synced since,
// and those of which nobody knows what is still to come. Thread-safe.
class RelayedFiles {
 public:
  static constexpr std::size_t most_unsynced = 1 << 18;  // files; writes of further ones are synced at once

  using ServerPtr = std::shared_ptr<RemoteServer>;
  struct UnsyncedFile {
    std::set<std::string> nodes;  // whose kernels may have data that are not on the storage
    std::uint64_t writes = 0;     // number of the last write, by which one during a sync is noticed
  };

  void add(ServerPtr server);
  bool has_room_for(FileNumber file) const;
  void note_write(FileNumber file, const std::string& node);
  // Returns what is not synced of the file; nothing: it is all.
  UnsyncedFile unsynced(FileNumber file) const;
  std::map<FileNumber, UnsyncedFile> all_unsynced() const;
  // Forgets what was not synced, unless there were writes since.
  void note_sync(FileNumber file, const UnsyncedFile& synced);
  // Returns the servers that run on a node.
  std::vector<ServerPtr> on(const std::string& node) const;

  // A write of the file is under way for the client with this socket.
  void begin_write(FileNumber file, int client);
  void end_write(FileNumber file, int client);

  // A write of the file may still come from the server. Until it is known that none does, nothing else is written.
  void note_limbo(FileNumber file, ServerPtr server);
  // Waits until nothing can come any more, also of clients that have ended. Returns false if that is not known in time.
  bool await_clear(FileNumber file, Duration bound);

  // Moves the offset of a description over the place of a write, which is the caller's then, and returns where that
  // begins; -1: the kernel refuses to move it.
  std::int64_t take_place(int file, std::int64_t bytes);
  // Moves it back to `to`, because `bytes` from there on were not written, unless it has been moved on since.
  void give_place_back(int file, std::int64_t to, std::int64_t bytes);
  // Moves it behind a read that began at `from`. Returns false, and moves nothing, if somebody else has moved it
  // meanwhile.
  bool move_behind_read(int file, std::int64_t from, std::int64_t bytes);

 private:
  bool await_left_writes(FileNumber file, Time until);

  // Held while an offset is moved: servers share descriptions, and one of them looks before it moves.
  std::mutex offsets_;
  mutable std::mutex mutex_;
  std::vector<ServerPtr> servers_;
  std::map<FileNumber, UnsyncedFile> unsynced_;
  std::uint64_t writes_ = 0;  // of all files
  std::map<FileNumber, std::set<ServerPtr>> limbo_;
  std::multimap<FileNumber, int> under_way_;  // writes, with the sockets of their clients
  std::condition_variable write_ended_;
};

struct RelayTotals {
  std::int64_t calls = 0;    // carried out on another node
  std::int64_t bytes = 0;    // moved by these
  std::int64_t refused = 0;  // left to the program
  std::int64_t lost = 0;     // failed, because nobody knew what became of them, or the server could not be reached
};

// Makes the calls of those clients that use one server.
class CallRelay : public forward::CallMaker {
 public:
  // `fails`: calls fail with EIO while the server cannot be reached. `files` outlives this object.
  CallRelay(RelayedFiles::ServerPtr server, RelayedFiles& files, bool fails)
      : server_(std::move(server)), files_(files), fails_(fails) {}

  void make(const forward_request& request, int file, char* memory, int client, forward_answer& answer) override;
  RelayTotals totals() const { return {calls_, bytes_, refused_, lost_}; }

 private:
  struct CallPlace {
    int file;    // descriptor
    int client;  // socket
    char* memory;
    FileNumber key;
  };
  void write(const forward_request& request, forward::RelayedCall& call, const CallPlace& place,
             forward_answer& answer);
  void make_write(const forward_request& request, forward::RelayedCall& call, const CallPlace& place,
                  forward_answer& answer);
  void read(const forward_request& request, forward::RelayedCall& call, const CallPlace& place, forward_answer& answer);
  void sync(int file, forward_answer& answer);
  int sync_on(const std::string& node, int file) const;
  void count(std::int64_t bytes);
  void leave(forward_answer& answer);
  void fail(forward_answer& answer);

  RelayedFiles::ServerPtr server_;
  RelayedFiles& files_;
  const bool fails_;
  std::atomic<std::int64_t> calls_ = 0, bytes_ = 0, refused_ = 0, lost_ = 0;
};

}  // namespace hocket::relay
