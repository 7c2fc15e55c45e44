// The calls of programs on other nodes, which relays send (docs/design/forwarding-elsewhere.md).
//
// Each connection of a relay has a thread, and carries one call at a time. For each call the file is opened by its
// name, compared with what the relay's node has, and handed to this server's ForwardService, as a program of this node
// would do. So the calls wait in the same queue. The file is closed before the answer: nothing is held between two
// calls.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "forward/local_caller.hpp"
#include "forward/relayed_call.hpp"
#include "transport/stream.hpp"

namespace hocket::server {

// Thread-safe. The ForwardService must outlive it.
class RelayedCalls {
 public:
  static constexpr std::size_t most_connections = 1024;  // each may have the data of a call in memory
  static constexpr std::size_t most_unsynced = 1024;     // files; writes of further ones are synced at once
  using Log = std::function<void(const std::string&)>;

  // `directory` is canonical; `service` is the path of the ForwardService's socket. Fails if the directory cannot be
  // opened.
  static Result<std::unique_ptr<RelayedCalls>> make(const std::string& directory, std::string service, Log log);
  // Ends calls under way, drops those that wait, and disconnects all relays.
  ~RelayedCalls();
  RelayedCalls(const RelayedCalls&) = delete;
  RelayedCalls& operator=(const RelayedCalls&) = delete;

  // Takes over a connection, whose frame is the first of a relay.
  void take(transport::Stream stream);

 private:
  struct RelayConnection {
    explicit RelayConnection(transport::Stream its_stream) : stream(std::move(its_stream)) {}
    transport::Stream stream;
    std::string run;
    std::uint64_t generation = 0;
    int socket = -1;
    bool has_ended = false;  // guarded by the mutex; the thread has nothing under way, and ends
    std::unique_ptr<forward::LocalCaller> caller;
    std::thread thread;
  };

  struct PinnedFile {
    Fd file;
    int under_way = 0;        // writes
    std::uint64_t write = 0;  // number of the one that ended last
  };
  using PinNumber = std::pair<dev_t, ino_t>;
  using PinnedFiles = std::map<PinNumber, PinnedFile>;

  RelayedCalls(std::string directory, Fd root, std::string service, Log log);

  void serve(RelayConnection& connection);
  void carry_out_all(RelayConnection& connection);
  bool admit(RelayConnection& connection);
  bool has_earlier(const RelayConnection& connection) const;
  bool take_frames(RelayConnection& connection);
  bool carry_out(RelayConnection& connection);
  bool open(const forward::RelayedCall& call, Fd& file) const;
  std::optional<PinNumber> keep(int file);
  void note_written(PinNumber number);
  std::uint64_t last_write() const;
  void let_go(int file, std::uint64_t last);
  bool sync(RelayConnection& connection, const forward::RelayedCall& call);
  bool answer(RelayConnection& connection, std::int64_t result, int error, bool is_refused);
  void join_ended();

  const std::string directory_;
  const Fd root_;
  const std::string service_;
  const Log log_;
  mutable std::mutex mutex_;  // guards those below
  std::condition_variable ended_;
  std::list<RelayConnection> connections_;
  bool stopping_ = false;
  // Files with writes that nobody has synced since, by path only (O_PATH): as long as the kernel has the file, it knows
  // the error of a late write, and tells it to whom syncs.
  PinnedFiles unsynced_;
  std::uint64_t writes_ = 0;  // ended, of all files
};

}  // namespace hocket::server
