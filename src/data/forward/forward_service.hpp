// Carries out the calls of programs under `hocket forward` (GekkoFWD, section 3): one system call for each request,
// with the client's own descriptor. Where the scheduler makes a batch of requests for one file, those that follow one
// another become one vector system call (core/request_scheduler/vector_calls.hpp).
//
// A few threads wait for all connections together. A thread receives all requests that have come, asks the scheduler
// which is next, carries it out, and answers. So a call costs two changes of context while no other waits. A client has
// at most one request under way on a connection. A thread of its own writes what clients have collected for some time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/descriptor.hpp"
#include "event/event.hpp"
#include "forward/collected_writes.hpp"
#include "forward/forward_clients.hpp"
#include "forward/protocol.h"
#include "forward/storage_queue.hpp"
#include "transport/held_view.hpp"

namespace hocket::forward {

// What a service has done so far.
struct ForwardTotals {
  std::int64_t requests = 0;      // carried out
  std::int64_t bytes = 0;         // moved by these
  std::int64_t refused = 0;       // left to the client: no regular file of the directory's file system
  std::int64_t clients = 0;       // connections now
  std::int64_t system_calls = 0;  // made for the requests that were carried out
  std::int64_t merged = 0;        // requests that were carried out in one system call with others
  std::int64_t waiting = 0;       // requests that wait now
  Duration waited{};              // from arrival to dispatch, of all requests
};

// The file system that a service is for.
struct ServedFileSystem {
  std::uint64_t device = 0;
  bool is_overlay = false;  // a file that was opened for reading only may be an earlier copy of it
};

// Makes calls in the place of a service, from several of its threads at a time.
class CallMaker {
 public:
  virtual ~CallMaker() = default;
  // Makes a read, a write, or a sync (`file` is -1 if it is of all files), or says that the client makes it itself.
  // `memory` has the data; `client` is the socket of the client that waits.
  virtual void make(const forward_request& request, int file, char* memory, int client, forward_answer& answer) = 0;
};

// Serves connections from construction to destruction. Thread-safe.
class ForwardService {
 public:
  struct ForwardSettings {
    int threads = 4;                     // calls under way at a time
    SchedulerChoice scheduler{};         // the order of calls that wait
    std::int64_t limit_bytes_per_s = 0;  // of all calls together, for measurements; 0: none
    // What I/O servers of the node hold of files, which calls wait for; nullptr: nothing. It outlives the service.
    const transport::HeldView* held = nullptr;
    // The queue that calls share with the batches of the server. It outlives the service, and has `threads` and
    // `scheduler`, which are not used then. nullptr: calls have a queue of their own.
    StorageQueue* queue = nullptr;
    // Makes the calls, for a relay; nullptr: the service does, with the descriptors. It outlives the service.
    CallMaker* maker = nullptr;
  };
  using Log = std::function<void(const std::string&)>;

  // Takes over a listening socket of type SOCK_SEQPACKET. Serves regular files of the file system of `directory`, to
  // clients of this user. The threads have no capabilities. `log` receives one line at a time, from any thread. Fails
  // if the system lacks resources, or `directory` cannot be looked at.
  static Result<std::unique_ptr<ForwardService>> start(const ForwardSettings& settings, const std::string& directory,
                                                       Fd listener, Log log);
  // Ends calls under way, answers them, writes what is collected, has clients make the calls that wait, and disconnects
  // them all.
  ~ForwardService();
  ForwardService(const ForwardService&) = delete;
  ForwardService& operator=(const ForwardService&) = delete;

  ForwardTotals totals() const;
  // Changes the scheduler, also of the calls that wait (StorageQueue::use).
  Result<StorageQueue::Switched> use(const SchedulerChoice& choice) { return queue_.use(choice); }
  SchedulerChoice scheduler() const { return queue_.scheduler(); }
  // Returns what each application has had (StorageQueue::shares).
  std::string shares() const { return queue_.shares(); }
  // Takes the weight of an application, and returns those that are not 1 (ForwardClients::weights).
  void weigh(const event::ApplicationWeight& weight) { queue_.clients().weigh(weight); }
  std::string weights() const { return queue_.clients().weights(); }
  // Sets who asks hocketd for the applications of clients, from any thread, and takes its answers.
  void ask_with(const ForwardClients::AskHocketd& ask) { queue_.clients().ask_with(ask); }
  void vouched(const event::ApplicationFor& answer) { queue_.clients().vouched(answer); }

 private:
  struct ForwardConnection;
  struct ForwardMessage;

  ForwardService(const ForwardSettings& settings, const ServedFileSystem& served, Fd listener, Log log,
                 std::unique_ptr<StorageQueue> own);

  void serve();
  void receive_all(int timeout_ms);
  void handle(std::uint64_t key, std::uint32_t events);
  bool carry_out_next(std::optional<Time>& again);
  bool look_for_next(ForwardConnection& connection);
  ForwardConnection* find(std::uint64_t number);
  void wake_another() const;
  void wake_one() const;
  void beat();
  std::size_t active_processes();
  void accept_all();
  bool refuse_one();
  bool serve_one(ForwardConnection& connection);
  bool greet(ForwardConnection& connection, const ForwardMessage& message);
  bool take_request(ForwardConnection& connection);
  bool queue(ForwardConnection& connection);
  void carry_out(const request_scheduler::RequestBatch& batch, ForwardConnection*& last);
  void carry_out(std::span<ForwardConnection* const> calls, ForwardConnection*& last);
  bool carry_out(ForwardConnection& connection);
  bool is_ready(ForwardConnection& connection);
  bool answer(ForwardConnection& connection, std::int64_t result, int error);
  bool reply(ForwardConnection& connection, forward_answer answer);
  std::uint64_t kind_of(const ForwardConnection& connection) const;
  static bool is_there(const ForwardConnection& connection);
  void make_call(ForwardConnection& connection, forward_answer& answer);
  void have_made(ForwardConnection& connection, forward_answer& answer);
  void hold(ForwardConnection& connection, forward_answer& answer);
  void store(ForwardConnection& connection, forward_answer& answer);
  void store_late();
  void await_holders(FileKey file) const;
  void count(std::int64_t bytes);
  void count_made(std::int64_t bytes);
  void note_system_call(std::int64_t bytes);
  std::shared_ptr<CollectedWrites> collected_by(const ForwardConnection& connection) const;
  bool leave(ForwardConnection& connection);
  bool is_served(const ForwardMessage& message) const;
  void take_time(std::int64_t bytes);
  static void give_back(ForwardConnection& connection);
  void end(ForwardConnection& connection, const char* reason);
  void watch(int descriptor, std::uint64_t key, bool is_new);

  ForwardSettings settings_;
  std::uint64_t device_;
  bool is_overlay_;
  Fd listener_;
  Log log_;
  std::unique_ptr<StorageQueue> own_queue_;  // nullptr: the queue is the server's
  StorageQueue& queue_;
  Fd epoll_, stop_, beats_;
  Fd waiting_;                                  // eventfd, readable if calls wait that an idle thread should look at
  Fd spare_;                                    // given up to refuse a client for whom there is no descriptor
  std::atomic<std::uint64_t>* beat_ = nullptr;  // in the memory of `beats_` (protocol.h)
  std::atomic<bool> stopping_ = false;
  std::atomic<std::int64_t> requests_ = 0, bytes_ = 0, refused_ = 0, system_calls_ = 0, merged_ = 0;
  std::atomic<std::int64_t> busy_until_ns_ = 0;  // under a limit
  mutable std::mutex mutex_;                     // guards the two below
  std::map<std::uint64_t, std::unique_ptr<ForwardConnection>> connections_;
  std::uint64_t last_ = 0;
  std::vector<std::thread> threads_;
};

// Returns a listening socket at `path`, with mode 0600, non-blocking. A file there is removed first.
Result<Fd> listen_for_forwarding(const std::string& path);

}  // namespace hocket::forward
