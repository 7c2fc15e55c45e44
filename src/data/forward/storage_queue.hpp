// The accesses that wait in a server for the storage: forwarded calls, and the batches of collective accesses, in the
// order of one request scheduler (core/request_scheduler).
//
//   threads of ForwardService ── add, take, done ───────┐
//                                                       ├─► RequestScheduler ─► slots: accesses under way at a time
//   loop of HocketServer ─────── offer, granted, ended ─┘
//
// A batch is an offer: its requests stay with the engine, which puts together what it carries out when the offer is
// granted. Under `fifo` the engine offers nothing, and both kinds have slots of their own. Who has a slot never waits
// for another one (docs/design/storage-queue.md).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "event/chooser.hpp"
#include "forward/file_data_servers.hpp"
#include "forward/forward_clients.hpp"
#include "request_scheduler/request_scheduler.hpp"

namespace hocket::forward {

// Another scheduler, as SET_SERVER and the command line name it.
struct SchedulerChoice {
  std::string name = "fifo";  // request_scheduler::algorithm_names
  // Data servers of the file system, for TWINS. 0: as before, at first as the file system says.
  std::int64_t data_servers = 0;
  std::int64_t stripe_bytes = 0;  // of a file on one of them; 0: as before
  std::string by{event::chooser::by_default};
};

// Thread-safe.
class StorageQueue {
 public:
  struct QueueSettings {
    SchedulerChoice scheduler{};
    // Accesses of each kind under way at a time under `fifo`. Under others the larger number is that of all together.
    int forwarded = 4;
    int collective = 0;
    FileDataServers::ReadStripes read_stripes{};  // of a file; empty: the file system does not tell
    std::function<Time()> clock = [] { return node_now(); };
  };
  struct Switched {
    std::string previous;      // scheduler
    std::int64_t waiting = 0;  // calls and batches that wait, and are the new one's
  };
  struct Waiting {
    std::int64_t calls = 0;  // forwarded ones that wait now
    Duration waited{};       // from arrival to dispatch, of all forwarded calls since the start
  };
  // The part of a batch that one application has.
  struct BatchShare {
    std::uint64_t application = 0;
    std::uint64_t requests = 0;
    std::int64_t bytes = 0;
    Duration waited{};  // from arrival to dispatch, all requests
  };
  // Offers whose batches are to begin now. Each has a slot until `ended`. Without `add`, `offer` or an end before,
  // `granted` is to be called again at `again`.
  struct Grants {
    std::vector<std::uint64_t> tickets;
    std::optional<Time> again;
  };

  // While several applications are served, a batch has at most so many bytes, or one request: larger ones would make
  // the others wait, and leave an application nothing to offer until its answers have come.
  static constexpr std::int64_t most_shared_bytes = 1 << 20;

  // Fails if no scheduler has the name, or a number is out of range.
  static Result<std::unique_ptr<StorageQueue>> create(QueueSettings settings);
  StorageQueue(const StorageQueue&) = delete;
  StorageQueue& operator=(const StorageQueue&) = delete;

  // Returns how many accesses may be under way at a time, of one kind.
  int slots() const { return std::max({settings_.forwarded, settings_.collective, 1}); }
  // The processes whose accesses these are. Thread-safe.
  ForwardClients& clients() { return clients_; }
  const ForwardClients& clients() const { return clients_; }
  // Sets what wakes a thread of forwarding, and the engine's loop, when there is something for it; an empty function:
  // it is not there any more. These must not call the queue.
  void wake_forwarding_with(std::function<void()> wake);
  void wake_engine_with(std::function<void()> wake);

  // ---- forwarded calls

  // Queues a call, whose ticket is below `first_offer`. Returns false if the scheduler refuses it: it is then to be
  // carried out without waiting.
  bool add(request_scheduler::IoRequest request);
  // Returns what to carry out now, or when to ask again.
  request_scheduler::NextBatch take();
  // Notes that a batch of `take` has been carried out.
  void done(std::uint64_t batch);
  // True if `take` might return a batch.
  bool has_more() const;
  // Forgets all calls: nobody takes them any more.
  void drop_calls();

  // ---- batches of collective accesses

  static constexpr std::uint64_t first_offer = std::uint64_t{1} << 63U;

  // True if batches are to be offered; else they begin when the engine likes.
  bool orders_batches() const { return orders_batches_; }
  // True if several applications had accesses within the last second.
  bool is_shared() const { return settings_.clock().time_since_epoch().count() < shared_until_ns_; }
  // Offers a batch. Returns its ticket; 0 if the scheduler refuses it. The request needs no ticket.
  std::uint64_t offer(request_scheduler::IoRequest request);
  // Returns the offers that were granted since the last call.
  Grants granted();
  // Notes that a granted batch has been carried out, or will not be.
  void ended(std::uint64_t ticket);
  // Takes offers back, also granted ones that `granted` has not returned.
  void withdraw(std::span<const std::uint64_t> tickets);
  // Forgets all batches: the engine ends.
  void drop_batches();
  // Counts what a batch that begins has of each application.
  void count(std::span<const BatchShare> shares);

  // ---- both

  // True if requests should name their data server.
  bool needs_data_servers() const { return needs_data_servers_; }
  FileDataServers& data_servers() { return data_servers_; }

  // Changes the scheduler. Accesses that wait become the new one's in the order of their arrival; calls that touch the
  // same bytes keep their order. Without a name, the scheduler is the first one again. Fails, and changes nothing, as
  // `create` does.
  Result<Switched> use(const SchedulerChoice& choice);
  // Returns the scheduler's name and who chose it.
  SchedulerChoice scheduler() const;
  Waiting waiting() const;
  // Returns a line for each application, "REQUESTS BYTES WAITED_NS NAME": sums since the start over calls and the
  // requests of batches, those with the most bytes first, 32 at most.
  std::string shares() const;

 private:
  using Statistics = request_scheduler::ApplicationStatistics;

  StorageQueue(QueueSettings settings, request_scheduler::RequestScheduler scheduler);
  std::uint64_t number_of(const std::string& application);
  void note(std::uint64_t application);
  bool has_slot() const;
  bool has_call() const;
  bool has_news_for_engine() const;
  void dispatch(bool for_call);
  void wake(bool engine, bool forwarding) const;
  Statistics sum_of(std::uint64_t application) const;

  const QueueSettings settings_;
  FileDataServers data_servers_;
  mutable std::mutex mutex_;
  request_scheduler::RequestScheduler scheduler_;
  request_scheduler::SchedulerSettings scheduler_settings_;
  std::string by_;  // who chose the present scheduler
  std::map<std::string, std::uint64_t> numbers_;
  std::uint64_t last_number_ = 0;
  std::uint64_t unknown_ = 0;                              // number of clients of which no application is known
  Duration forgotten_{};                                   // waited by calls of applications that have been forgotten
  std::unordered_map<std::uint64_t, Statistics> batched_;  // of batches, by application
  std::size_t calls_ = 0;                                  // that wait
  std::size_t offers_ = 0;                                 // that wait
  int under_way_ = 0;                                      // slots that are taken
  std::deque<request_scheduler::RequestBatch> ready_;      // of calls; each has a slot, and waits for a thread
  std::vector<std::uint64_t> granted_;                     // each has a slot, and waits for the engine
  std::unordered_map<std::uint64_t, std::uint64_t> batch_of_offer_;  // of those that have a slot
  std::optional<Time> again_;                                        // when the scheduler wants to be asked
  std::uint64_t last_offer_ = first_offer;
  std::uint64_t last_application_ = 0;  // of the newest access
  std::atomic<std::int64_t> shared_until_ns_ = 0;
  std::atomic<bool> needs_data_servers_;
  std::atomic<bool> orders_batches_;
  mutable std::mutex wake_mutex_;
  std::function<void()> wake_forwarding_, wake_engine_;
  ForwardClients clients_;
};

}  // namespace hocket::forward
