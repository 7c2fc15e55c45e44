#include "server/engine.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <thread>

#include "base/clock.hpp"

namespace hocket::server {
namespace {

// The time between two looks whether a process waits for what is held back, which raises no event.
constexpr Duration look_every = std::chrono::milliseconds{5};

// A task counts with its runs and itself in `Engine::runs_`.
std::size_t count_of(const Task& task) { return task.runs.size() + 1; }

}  // namespace

Engine::Engine(const EngineSettings& settings, Files files, LoadCounters& load, EngineCalls calls)
    : settings_(settings),
      load_(load),
      calls_(std::move(calls)),
      pool_(settings.buffer_bytes),
      files_(std::move(files)),
      // A quarter of the memory is the most that one operation or batch may take, so that others can proceed
      // meanwhile.
      holding_({.most_bytes = settings.buffer_bytes / 4}),
      scheduler_({.merges = settings.merges, .most_bytes = settings.buffer_bytes / 4}),
      workers_(settings.queue == nullptr ? settings.threads : std::max(settings.threads, settings.queue->slots())) {
  if (settings_.queue != nullptr) settings_.queue->wake_engine_with([this] { workers_.wake(); });
}

Engine::~Engine() {
  if (settings_.queue == nullptr) return;
  settings_.queue->wake_engine_with({});
  settings_.queue->drop_batches();
}

// ---- memory --------------------------------------------------------------------------------------------------------

Buffer Engine::take(std::int64_t bytes) {
  Buffer buffer = pool_.take(bytes);
  if (!buffer) {
    hurry();
    release_all();
  }
  return buffer;
}

Buffer Engine::take_for_read(std::int64_t bytes) {
  if (reading_ > 0 && reading_ + bytes > pool_.limit() / 2) return {};
  Buffer buffer = take(bytes);
  if (buffer) reading_ += bytes;
  return buffer;
}

// Wraps a read's data for sending. They count as `reading_` until the stream has dropped its reference.
std::shared_ptr<Buffer> Engine::reply_of(Buffer buffer) {
  return {new Buffer{std::move(buffer)}, [this](Buffer* sent) {
            reading_ -= static_cast<std::int64_t>(sent->bytes().size());
            delete sent;
          }};
}

void Engine::count_held() { load_.held_bytes.store(pool_.in_use(), std::memory_order_relaxed); }

// ---- requests ------------------------------------------------------------------------------------------------------

// Counts operations, and returns true if this one is to be disturbed. Consecutive requests of a file with the same
// number are one collective operation.
bool Engine::injects(const Task& task) {
  ServerFile& file = *task.file;
  const bool goes_on = task.operation != 0 && task.operation == file.last_operation;
  if (!goes_on) ++operations_;
  file.last_operation = task.operation;
  return settings_.injection.is_due(operations_);
}

void Engine::submit(Task task, Time now) {
  auto held = std::make_unique<HeldTask>();
  const std::uint64_t ticket = held->ticket = ++last_ticket_;
  held->task = std::move(task);
  held->arrival = now;
  Task& own = held->task;
  const bool disturbed = injects(own);
  held->delayed = disturbed && settings_.injection.delay > Duration::zero();
  held->runs = count_of(own);
  runs_ += held->runs;
  own.file->outstanding.insert(ticket);
  load_.queue.fetch_add(1, std::memory_order_relaxed);
  if (own.writes && own.behind) acknowledge_early(own, ticket);
  held->acknowledged = own.behind != nullptr;
  // Requests held earlier must not be overtaken by this one, so they are scheduled before it.
  const Holding::Tickets before = holding_.release_file(own.file->number, own.operation);
  const Holding::OperationKey key{own.file->number, own.operation};
  const Holding::RequestExtent extent{own.asker.session, ticket, own.runs.front().at, own.runs.back().end(), own.bytes};
  tasks_.emplace(ticket, std::move(held));
  release(before);
  if (disturbed && settings_.injection.error != 0) {
    auto failing = std::move(tasks_.extract(ticket).mapped());
    settle(std::move(failing), {settings_.injection.error, 0});
  } else if (key.operation != 0) {
    release(holding_.hold(key, extent, now));
  } else {
    schedule(ticket);
  }
}

// Answers a write before it is in the file, unless no other process could see that it is not.
void Engine::acknowledge_early(Task& task, std::uint64_t ticket) {
  ServerFile& file = *task.file;
  if (settings_.held != nullptr && file.held != nullptr) {
    transport::HeldWrites::acknowledge(*file.held, ticket);
  } else if (settings_.held != nullptr) {
    file.held = settings_.held->enter(key_of(file.identity.first, file.identity.second), ticket);
    if (file.held == nullptr) return task.behind.reset();
    held_.emplace(file.number, task.file);
  }
  begin_behind(file, task);
  calls_.answer({.to = task.asker, .bytes = task.bytes, .early = true});
}

// Counts a write that is answered early. Several turns for one file would be one too many: its writes are then stored
// at once, as those of clients that ask for no turn.
void Engine::begin_behind(ServerFile& file, const Task& task) {
  const WriteBackTurnPtr& turn = task.behind->turn;
  if (turn) turn->add_bytes(task.bytes);
  if (file.behind == 0 && takes_turns_) {
    set_turn(task.file, turn);
  } else if (file.turn != turn) {
    set_turn(task.file, nullptr);
  }
  ++task.behind->under_way;
  ++file.behind;
}

void Engine::set_turn(const FilePtr& file, WriteBackTurnPtr turn) {
  if (file->turn == turn) return;
  if (turn) turn->hold();
  if (file->turn) file->turn->release();
  file->turn = std::move(turn);
  if (file->turn) {
    taking_turns_.emplace(file->number, file);
  } else {
    taking_turns_.erase(file->number);
  }
}

// True if a client waits for requests of the file: a write or read that is not answered, or a sync or the like.
bool Engine::is_waited_for(const ServerFile& file) const {
  const auto is_of_file = [&](const Barrier& barrier) { return barrier.file.get() == &file; };
  return file.outstanding.size() > file.behind || std::any_of(barriers_.begin(), barriers_.end(), is_of_file);
}

void Engine::hurry() {
  for (const auto& [number, file] : taking_turns_) {
    if (!is_waited_for(*file)) store(file, [] {});
  }
}

void Engine::take_no_turns() {
  takes_turns_ = false;
  for (const auto& [number, file] : std::map(taking_turns_)) set_turn(file, nullptr);
}

void Engine::end(const FilePtr& file, std::uint64_t operation, SessionId session, int participants, Time now) {
  release(holding_.end({file->number, operation}, session, participants, now));
}

void Engine::release(const Holding::Tickets& tickets) {
  for (const std::uint64_t ticket : tickets) schedule(ticket);
}

void Engine::release_all() {
  release(holding_.release_all());
  dispatch();
}

void Engine::schedule(std::uint64_t ticket) {
  const auto found = tasks_.find(ticket);
  if (found == tasks_.end()) return;  // dropped while it was held
  Task& task = found->second->task;
  scheduler_.add({ticket, task.file->number, task.writes, std::move(task.runs), task.owner.application});
  task.runs.clear();
}

// Requests under way cannot be dropped: their accesses have begun. Acknowledged ones (written behind) are carried
// out.
void Engine::gone(SessionId session) {
  const auto is_lost = [&](std::uint64_t ticket) {
    const auto found = tasks_.find(ticket);
    return found != tasks_.end() && found->second->task.asker.session == session && !found->second->acknowledged;
  };
  std::vector<std::uint64_t> lost = scheduler_.drop_if(is_lost);
  for (const auto& [ticket, held] : tasks_) {
    if (!held->task.runs.empty() && is_lost(ticket)) lost.push_back(ticket);  // is still held
  }
  for (const std::uint64_t ticket : lost) settle(std::move(tasks_.extract(ticket).mapped()), {ECONNRESET, 0});
  take_back_offers(false);
  release(holding_.gone(session));
}

bool Engine::has_requests_of(SessionId session) const {
  return std::any_of(tasks_.begin(), tasks_.end(),
                     [session](const auto& one) { return one.second->task.asker.session == session; });
}

// ---- carrying out --------------------------------------------------------------------------------------------------

void Engine::advance(Time now) {
  release(holding_.expire(now));
  if (!has_room()) hurry();
  for (const auto& [number, file] : taking_turns_) {
    if (file->held != nullptr && !is_waited_for(*file) && transport::HeldWrites::is_wanted(*file->held))
      store(file, [] {});
  }
  start_wanted();
  dispatch();
}

std::optional<Time> Engine::next_deadline() const {
  std::optional<Time> due = holding_.next_expiry();
  const bool rests = std::any_of(taking_turns_.begin(), taking_turns_.end(),
                                 [](const auto& one) { return !one.second->turn->may_store(); });
  if (rests || (orders() && !held_.empty())) due = std::min(due.value_or(Time::max()), node_now() + look_every);
  if (orders() && again_) due = std::min(due.value_or(Time::max()), *again_);
  return due;
}

void Engine::dispatch() {
  if (orders()) return dispatch_in_order();
  take_back_offers(true);
  dispatch_as_they_come();
}

// Starts batches of files that somebody waits for, and of those whose turn it is. A turn is entered before the batch is
// chosen, so that the turn is not given back in between.
void Engine::dispatch_as_they_come() {
  std::vector<WriteBackTurnPtr> entered;
  const auto may_start = [&](std::uint64_t number) {
    const auto file = taking_turns_.find(number);
    if (file == taking_turns_.end() || is_waited_for(*file->second)) return true;
    if (!file->second->turn->enter()) return false;
    entered.push_back(file->second->turn);
    return true;
  };
  while (under_way_ < static_cast<std::size_t>(settings_.threads)) {
    auto batch = scheduler_.next(may_start);
    if (!batch) break;
    start(std::move(*batch));
  }
  for (const WriteBackTurnPtr& turn : entered) turn->leave();
}

// Offers the next batch of each application in each file, and starts those that are granted. Then the next ones follow.
void Engine::dispatch_in_order() {
  const auto may_offer = [this](std::uint64_t number) {
    const auto file = taking_turns_.find(number);
    return file == taking_turns_.end() || is_waited_for(*file->second) || file->second->turn->may_store();
  };
  const auto is_offered = [this](std::uint64_t file, std::uint64_t application) {
    return offered_.contains({file, application});
  };
  std::vector<std::uint64_t> granted;
  do {
    const std::int64_t most_bytes =
        settings_.queue->is_shared() ? forward::StorageQueue::most_shared_bytes : settings_.buffer_bytes / 4;
    for (const BatchProspect& prospect : scheduler_.prospects(most_bytes, may_offer, is_offered)) offer(prospect);
    auto grants = settings_.queue->granted();
    again_ = grants.again;
    granted = std::move(grants.tickets);
    for (const std::uint64_t ticket : granted) begin_granted(ticket);
  } while (!granted.empty());
}

void Engine::offer(const BatchProspect& prospect) {
  offered_.emplace(prospect.file, prospect.application);
  const HeldTask& first = *tasks_.at(prospect.ticket);
  forward::StorageQueue& queue = *settings_.queue;
  request_scheduler::IoRequest asked;
  constexpr int application_bits = 24;
  asked.file = prospect.file << application_bits ^ prospect.application;  // aIOLi and others remember each file
  asked.writes = prospect.writes;
  asked.extents.push_back({prospect.at, prospect.bytes});
  asked.application = prospect.application;
  asked.processes = static_cast<int>(std::min<std::int64_t>(first.task.owner.processes, INT_MAX));
  asked.weight = static_cast<double>(first.task.owner.weight);
  asked.user = first.task.user;
  asked.arrival = first.arrival;
  if (queue.needs_data_servers()) asked.data_server = data_server_at(first.task.file, prospect);
  const std::uint64_t ticket = queue.offer(std::move(asked));
  if (ticket != 0) {
    offers_.emplace(ticket, prospect);
    return;
  }
  offered_.erase({prospect.file, prospect.application});  // it cannot be ordered
  if (auto batch = scheduler_.next_of(prospect)) start(std::move(*batch));
}

// Returns the data server of the file system that has the batch's first byte; -1: not known. An I/O thread asks for it,
// because an answer may take as long as the file system likes.
int Engine::data_server_at(const FilePtr& file, const BatchProspect& prospect) {
  if (file->identity.second == 0) return -1;
  forward::FileDataServers& servers = settings_.queue->data_servers();
  const FileKey key = key_of(file->identity.first, file->identity.second);
  if (servers.must_ask(key, prospect.at)) {
    const int descriptor = (prospect.writes ? file->writable : file->readable).get();
    workers_.submit([&servers, file, key, descriptor](std::span<std::byte>) -> Workers::JobCompletion {
      servers.ask(key, descriptor);
      return [file] {};
    });
  }
  return servers.known_at(key, prospect.at);
}

// Starts a batch that has a slot, or gives the slot back: the turn or the requests may have gone.
void Engine::begin_granted(std::uint64_t offer) {
  const auto found = offers_.find(offer);
  if (found == offers_.end()) return settings_.queue->ended(offer);
  const BatchProspect prospect = found->second;
  offers_.erase(found);
  offered_.erase({prospect.file, prospect.application});
  WriteBackTurnPtr entered;
  const auto file = taking_turns_.find(prospect.file);
  const bool takes_turn = file != taking_turns_.end() && !is_waited_for(*file->second);
  if (takes_turn && file->second->turn->enter()) entered = file->second->turn;
  auto batch = takes_turn && !entered ? std::nullopt : scheduler_.next_of(prospect);
  if (batch) {
    start(std::move(*batch), offer);
  } else {
    scheduler_.look_again(prospect.file);
    settings_.queue->ended(offer);
  }
  if (entered) entered->leave();
}

void Engine::take_back_offers(bool all) {
  std::vector<std::uint64_t> tickets;
  for (const auto& [ticket, prospect] : offers_) {
    if (all || !scheduler_.waits(prospect.file, prospect.application)) tickets.push_back(ticket);
  }
  if (tickets.empty()) return;
  for (const std::uint64_t ticket : tickets) {
    const BatchProspect& prospect = offers_.at(ticket);
    scheduler_.look_again(prospect.file);
    offered_.erase({prospect.file, prospect.application});
    offers_.erase(ticket);
  }
  settings_.queue->withdraw(tickets);
}

// Starts what is held of files for which another process waits. It needs no slot, because the process may be a thread
// of forwarding that has one, here or in another server.
void Engine::start_wanted() {
  if (!orders()) return;
  bool has_started = false;
  for (const auto& [number, file] : held_) {
    if (!transport::HeldWrites::is_wanted(*file->held)) continue;
    while (auto batch = scheduler_.next_of(number)) {
      start(std::move(*batch));
      has_started = true;
    }
  }
  if (has_started) take_back_offers(false);  // those of what has begun here
}

// A batch in the hands of an I/O thread.
struct Engine::BatchWork {
  Batch batch;
  std::uint64_t offer = 0;  // 0: it has no slot of the queue
  std::vector<std::byte*> data;
  int file = -1;
  Duration delay{};
  Time started;
  WriteBackTurnPtr turn{};  // of the file
};

// Hands a batch to the I/O threads. `work` points into the tasks' data; the tasks stay in `tasks_` until `finish`.
void Engine::start(Batch batch, std::uint64_t offer) {
  const auto work = std::make_shared<BatchWork>();
  for (const std::uint64_t ticket : batch.tickets) {
    const HeldTask& held = *tasks_.at(ticket);
    work->data.push_back(held.task.data());
    work->file = (batch.writes ? held.task.file->writable : held.task.file->readable).get();
    if (held.delayed) work->delay += settings_.injection.delay;
  }
  work->turn = tasks_.at(batch.tickets.front())->task.file->turn;
  if (work->turn) work->turn->count();
  work->batch = std::move(batch);
  work->offer = offer;
  work->started = node_now();
  ++under_way_;
  ++batches_;
  started_.insert(work->started);
  load_.oldest_start_ns.store(to_ns(*started_.begin()), std::memory_order_relaxed);
  count(work->batch, work->started);
  workers_.submit([this, work](std::span<std::byte> scratch) -> Workers::JobCompletion {
    const Time begun = node_now();
    if (work->delay > Duration::zero()) std::this_thread::sleep_for(work->delay);
    auto outcomes = carry_out(work->batch, work->data, work->file, scratch);
    const Duration took = node_now() - begun;
    return [this, work, took, outcomes = std::move(outcomes)] {
      finish(*work, outcomes, took);
      if (work->turn) work->turn->leave();
    };
  });
}

// Counts the requests of a batch for their applications.
void Engine::count(const Batch& batch, Time started) const {
  if (settings_.queue == nullptr) return;
  std::vector<forward::StorageQueue::BatchShare> shares;
  for (const std::uint64_t ticket : batch.tickets) {
    const HeldTask& held = *tasks_.at(ticket);
    const std::uint64_t application = held.task.owner.application;
    auto own = std::ranges::find(shares, application, &forward::StorageQueue::BatchShare::application);
    if (own == shares.end()) own = shares.insert(own, {application});
    ++own->requests;
    own->bytes += held.task.bytes;
    own->waited += std::max(started - held.arrival, Duration::zero());
  }
  settings_.queue->count(shares);
}

// Accounts for a batch and answers its requests; runs in the loop's thread.
void Engine::finish(const BatchWork& work, const std::vector<AccessOutcome>& outcomes, Duration took) {
  --under_way_;
  started_.erase(started_.find(work.started));
  load_.oldest_start_ns.store(started_.empty() ? 0 : to_ns(*started_.begin()), std::memory_order_relaxed);
  load_.service_ns.fetch_add(took.count(), std::memory_order_relaxed);
  scheduler_.done(work.batch);
  if (work.offer != 0) settings_.queue->ended(work.offer);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    load_.operations.fetch_add(1, std::memory_order_relaxed);
    load_.bytes.fetch_add(outcomes[i].bytes, std::memory_order_relaxed);
    settle(std::move(tasks_.extract(work.batch.tickets[i]).mapped()), outcomes[i]);
  }
  dispatch();
}

// Ends a request, successful or not: answers it or records its error, and passes barriers that waited for it.
void Engine::settle(std::unique_ptr<HeldTask> held, AccessOutcome outcome) {
  Task& task = held->task;
  const FilePtr file = task.file;
  file->outstanding.erase(held->ticket);
  runs_ -= held->runs;
  load_.queue.fetch_sub(1, std::memory_order_relaxed);
  if (task.writes && outcome.error != 0) {
    file->lost_write = true;
    if (file->dropped) outcome.error = ECANCELED;
  }
  // A read's buffer belongs to its answer until the client has the data. If nobody needs the data any more, the
  // buffer returns to the pool in the same way.
  std::shared_ptr<Buffer> data;
  if (!task.writes && task.buffer) data = reply_of(std::move(task.buffer));
  if (!held->acknowledged) {
    if (outcome.error != 0) data.reset();
    calls_.answer(
        {task.asker, outcome.error, outcome.error == 0 ? outcome.bytes : 0, false, task.elsewhere, std::move(data)});
  } else {
    end_behind(task, outcome.error);
  }
  held.reset();
  show_held(*file);
  pass_barriers(file);
  files_.forget_if_unused(file);
}

// Ends a write that had been answered early, and reports when none of its opening is left.
void Engine::end_behind(const Task& task, int error) {
  FileOpening& opening = *task.behind;
  ServerFile& file = *task.file;
  if (opening.turn) opening.turn->add_bytes(-task.bytes);
  if (--file.behind == 0) set_turn(task.file, nullptr);
  if (error != 0) {
    file.errors.add(error);
    calls_.log(
        fmt::format("lost {} bytes of {} that were written behind: {}", task.bytes, file.path, error_text(error)));
  }
  if (--opening.under_way == 0) calls_.stored(opening, file.errors.untold(opening.told));
}

// Tells other processes how far the file's requests have been carried out.
void Engine::show_held(ServerFile& file) {
  if (file.held == nullptr) return;
  if (file.behind == 0) {
    held_.erase(file.number);
    return settings_.held->leave(*std::exchange(file.held, nullptr));
  }
  transport::HeldWrites::settle(*file.held, *file.outstanding.begin() - 1);
}

// ---- sync, close and store -----------------------------------------------------------------------------------------

void Engine::sync(Asker asker, const FilePtr& file, const OpeningPtr& opening) {
  store(file, [this, sync = PendingSync{asker, file, opening}] { await_flush(sync); });
}

void Engine::close(Asker asker, const FilePtr& file, const OpeningPtr& opening) {
  store(file, [this, asker, file, opening] {
    const int error = file->errors.tell(opening->told);
    files_.close(file, *opening);
    calls_.answer({.to = asker, .error = error});
  });
}

void Engine::store(const FilePtr& file, std::function<void()> stored) {
  barriers_.push_back({file, last_ticket_, std::move(stored)});
  release(holding_.release_file(file->number, 0));
  pass_barriers(file);
}

void Engine::store_all(const std::function<void()>& stored) {
  const std::vector<FilePtr> all = files_.all();
  const auto left = std::make_shared<std::size_t>(all.size());
  if (all.empty()) return stored();
  for (const FilePtr& file : all) {
    store(file, [left, stored] {
      if (--*left == 0) stored();
    });
  }
}

// Passes the calls for the file whose earlier requests have all been carried out, in the order of the calls.
void Engine::pass_barriers(const FilePtr& file) {
  if (barriers_.empty()) return;
  const auto waits = [&](const Barrier& barrier) {
    return barrier.file != file || !file->settled_before(barrier.ticket);
  };
  const auto first = std::stable_partition(barriers_.begin(), barriers_.end(), waits);
  const std::vector<Barrier> passing{std::make_move_iterator(first), std::make_move_iterator(barriers_.end())};
  barriers_.erase(first, barriers_.end());
  for (const Barrier& barrier : passing) barrier.passed();
}

// Answers a sync after an fdatasync that begins now, or when the present one has ended.
void Engine::await_flush(const PendingSync& sync) {
  const auto [later, is_first] = flushing_.try_emplace(sync.file->number);
  if (!is_first) return later->second.push_back(sync);
  flush({sync});
}

// Calls fdatasync in an I/O thread, once for all these syncs of one file.
void Engine::flush(std::vector<PendingSync> syncs) {
  const ServerFile& file = *syncs.front().file;
  const int descriptor = (file.writable ? file.writable : file.readable).get();
  workers_.submit([this, descriptor, syncs = std::move(syncs)](std::span<std::byte>) -> Workers::JobCompletion {
    const int failed = fdatasync(descriptor) == 0 ? 0 : errno;
    return [this, syncs, failed] { end_flush(syncs, failed); };
  });
}

void Engine::end_flush(const std::vector<PendingSync>& syncs, int failed) {
  ServerFile& file = *syncs.front().file;
  // EINVAL: this file cannot be flushed, which is no error of its data.
  if (failed != 0 && failed != EINVAL) file.errors.add(failed);
  for (const PendingSync& sync : syncs) {
    const int error = file.errors.tell(sync.opening->told);
    calls_.answer({.to = sync.asker, .error = error != 0 ? error : failed});
  }
  const auto later = flushing_.find(file.number);
  if (later->second.empty()) {
    flushing_.erase(later);
  } else {
    flush(std::exchange(later->second, {}));
  }
}

std::string Engine::state() const {
  const auto read = [](const std::atomic<std::int64_t>& number) { return number.load(std::memory_order_relaxed); };
  return fmt::format(
      "operations {}\nbytes {}\nservice_ns {}\nqueue {}\nheld_bytes {}\nbuffer_bytes {}\nbatches {}\nfiles {}\n",
      read(load_.operations), read(load_.bytes), read(load_.service_ns), read(load_.queue), pool_.in_use(),
      pool_.limit(), batches_, files_.count());
}

}  // namespace hocket::server
