#include "collective/exchange.hpp"

#include <algorithm>
#include <cerrno>

#include "base/clock.hpp"
#include "collective/brake.hpp"
#include "mpi_shim/calls.hpp"

namespace hocket::runtime::collective {
namespace {

constexpr std::size_t slots = NodeMemory::slots;

// Bounded memory for chunks in flight. A first chunk is always allowed, however large, so that the access makes
// progress.
class Staging {
 public:
  explicit Staging(std::int64_t most) : most_(most) {}
  bool has_room(std::int64_t bytes) const { return used_ == 0 || used_ + bytes <= most_; }
  std::shared_ptr<std::byte[]> take(std::int64_t bytes) {
    used_ += bytes;
    return std::shared_ptr<std::byte[]>(new std::byte[static_cast<std::size_t>(bytes)], [this, bytes](std::byte* p) {
      used_ -= bytes;
      delete[] p;
    });
  }

 private:
  std::int64_t most_;
  std::int64_t used_ = 0;
};

// Writes go free → moving → storing, reads free → storing → moving.
enum class SlotState { free, moving, storing };

// One collective buffer of an aggregator, and the round that uses it.
struct Slot {
  SlotState state = SlotState::free;
  Round round;                  // its sources: this rank, and those whose data come as messages
  std::byte* buffer = nullptr;  // its first byte is that of the round's span
  std::uint64_t* covered = nullptr;
  Coverage coverage;
  NodeMemory::Gate* gate = nullptr;  // nullptr: no rank shares the buffer
  std::vector<int> visitors;         // ranks that move their data themselves, through shared memory
  std::size_t begun = 0;             // sources whose data have begun to move
  std::size_t left = 0;              // sources whose data have not all arrived or left
  std::int64_t bytes = 0;            // of all sources' data
  std::atomic<bool> stored = false;  // set by the worker thread
};

// One access of this rank, which may at the same time have data and be an aggregator. run() repeats passes over all
// that may have progressed, and sleeps when nothing has: no call in it blocks, so neither part keeps the other waiting.
class Exchange {
 public:
  Exchange(Team& team, const Local& local, CollectiveAccess course, Brake* brake);
  int run();

 private:
  void find_windows();
  bool post_own();
  bool post_own(const RoundChunk& piece);
  bool post_data(const RoundChunk& piece, int rank);
  bool post_list(const RoundChunk& piece, int rank);
  bool visit();
  bool visit(const RoundChunk& piece);
  bool advance();
  bool advance(Slot& slot);
  bool begin_round(Slot& slot);
  bool move_sources(Slot& slot);
  bool move(Slot& slot, const RoundSource& source);
  bool move_listed(Slot& slot, const RoundSource& source);
  void moved(Slot& slot, layout::Walk walk);
  std::optional<Round> next_round() { return rounds_ ? rounds_->next() : course_.agenda->next(); }
  void open_gate(Slot& slot);
  bool all_visited(Slot& slot);
  void store(Slot& slot);
  void submit(Slot& slot, std::function<int()> access);
  int give_up();
  bool all_free() const;
  bool heed_brake(bool idle);
  bool sleeps_by_node() const;
  bool done() const;
  int rank_of(const RoundChunk& piece) const { return team_.aggregators[static_cast<std::size_t>(piece.aggregator)]; }

  Team& team_;
  const Local& local_;
  CollectiveAccess course_;
  Brake* brake_;  // nullptr: the access cannot be suspended
  Messages messages_;
  // Offset lists by rank: sent to it, and received from it. At most two are in flight, and each is answered.
  std::vector<std::size_t> asked_, answered_;
  // State of this rank as one that has data.
  Pieces pieces_;
  std::optional<RoundChunk> piece_;  // the next one
  std::vector<RoundChunk> visits_;   // chunks waiting for the gate of a shared buffer
  std::size_t under_way_ = 0;        // chunks in flight
  Staging own_staging_;
  // State of this rank as an aggregator.
  int aggregator_ = -1;  // index among the aggregators; -1: it is none
  std::optional<Rounds> rounds_;
  std::optional<Round> next_;  // round that may not begin yet
  bool no_more_rounds_ = true;
  std::array<Slot, slots> slots_;
  std::size_t filling_ = 0;  // slot whose sources move next: rounds go in order
  Staging staging_;
  std::atomic<int> error_ = 0;  // errno of the first failed access; also set by the worker
};

Exchange::Exchange(Team& team, const Local& local, CollectiveAccess course, Brake* brake)
    : team_(team),
      local_(local),
      course_(std::move(course)),
      brake_(brake),
      messages_(team.comm),
      asked_(static_cast<std::size_t>(team.ranks)),
      answered_(static_cast<std::size_t>(team.ranks)),
      pieces_(local.view, local.data, course_.grid),
      piece_(pieces_.next()),
      own_staging_(2 * team.window),
      staging_(2 * team.window) {
  const auto found = std::find(team.aggregators.begin(), team.aggregators.end(), team.rank);
  if (found == team.aggregators.end()) return;
  aggregator_ = static_cast<int>(found - team.aggregators.begin());
  if (aggregator_ >= course_.grid.aggregators() || course_.grid.domain(aggregator_).count() == 0) return;
  if (!course_.lists) rounds_.emplace(course_.grid, aggregator_, course_.participants);
  no_more_rounds_ = false;
  find_windows();
}

// Lets the slots use buffers of the node's shared memory, or private ones that are kept for later accesses.
void Exchange::find_windows() {
  const auto bytes = static_cast<std::size_t>(team_.window);
  for (std::size_t i = 0; i < slots; ++i) {
    Slot& slot = slots_[i];
    if (team_.node) {
      slot.buffer = team_.node->window(team_.rank, static_cast<int>(i));
      slot.covered = team_.node->coverage(team_.rank, static_cast<int>(i));
      slot.gate = &team_.node->gate(team_.rank, static_cast<int>(i));
      continue;
    }
    if (!team_.windows[i]) {
      team_.windows[i].reset(new std::byte[bytes]);
      team_.coverage[i].reset(new std::uint64_t[static_cast<std::size_t>(Coverage::words_for(team_.window))]);
    }
    slot.buffer = team_.windows[i].get();
    slot.covered = team_.coverage[i].get();
  }
  if (!team_.scratch) team_.scratch.reset(new std::byte[bytes]);
}

int Exchange::run() {
  mpi::Patience patience = mpi::Patience::for_data();
  for (bool progress = false; !done();) {
    // Read before looking for work: a wake-up that arrives during the pass ends the sleep below.
    const std::uint32_t heard = team_.node ? team_.node->heard() : 0;
    progress = heed_brake(!progress);
    progress |= post_own();
    progress |= visit();
    progress |= advance();
    progress |= messages_.poll();
    if (messages_.failed() || (brake_ && brake_->failed())) return give_up();
    if (progress)
      patience = mpi::Patience::for_data();
    else if (sleeps_by_node())
      team_.node->sleep(heard);
    else
      patience.pause();
  }
  return error_;
}

// Ends the access after MPI has failed. Waits for the worker thread, which may still use the buffers.
int Exchange::give_up() {
  mpi::Patience patience;
  if (brake_) brake_->give_up();
  for (const Slot& slot : slots_)
    while (slot.state == SlotState::storing && !slot.stored) patience.pause();
  return EIO;
}

bool Exchange::all_free() const {
  return std::all_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.state == SlotState::free; });
}

// Exchanges stop messages. Runs before a round begins in the same pass, so that the round numbers sent stay true.
bool Exchange::heed_brake(bool idle) {
  if (!brake_) return false;
  const bool heard = brake_->hear(idle);
  std::optional<std::int64_t> held;
  if (next_ && !brake_->may_begin(next_->round) && all_free()) held = next_->round;
  return brake_->speak(held, no_more_rounds_ && all_free()) || heard;
}

// True if only ranks of the node or the worker can cause progress: all of those wake this rank.
bool Exchange::sleeps_by_node() const {
  return team_.node && messages_.empty() && !(brake_ && brake_->awaits_messages());
}

bool Exchange::done() const {
  return !piece_ && visits_.empty() && no_more_rounds_ && messages_.empty() && all_free() &&
         (!brake_ || brake_->own_part_done());
}

// ---- this rank's data --------------------------------------------------------------------------------------------

// Begins to send (or receive) this rank's chunks, in the order that all ranks use: a chunk that an aggregator waits
// for is never behind one that it takes later.
bool Exchange::post_own() {
  bool progress = false;
  while (piece_ && under_way_ < 2 * team_.aggregators.size()) {
    const bool for_us = rank_of(*piece_) == team_.rank;
    if (!for_us && !post_own(*piece_)) break;  // this rank copies its own chunks as an aggregator
    piece_ = pieces_.next();
    progress = true;
  }
  return progress;
}

// Begins one chunk. Returns false if there is no room for it yet.
bool Exchange::post_own(const RoundChunk& piece) {
  const int rank = rank_of(piece);
  if (team_.node && team_.node->shares(rank)) {
    ++under_way_;
    visits_.push_back(piece);
    return true;
  }
  return course_.lists ? post_list(piece, rank) : post_data(piece, rank);
}

// Sends or receives the data alone (view-based). One contiguous run of memory needs no staging copy.
bool Exchange::post_data(const RoundChunk& piece, int rank) {
  const std::int64_t bytes = piece.data.count();
  layout::Walk walk = memory_walk(local_, piece.data);
  std::byte* run = run_of(walk, local_.buffer, 0);
  std::shared_ptr<std::byte[]> staged;
  if (!run) {
    if (!own_staging_.has_room(bytes)) return false;
    staged = own_staging_.take(bytes);
    if (local_.writes) layout::gather(walk, local_.buffer, 0, bytes_at(staged.get(), bytes));
  }
  ++under_way_;
  if (local_.writes) {
    messages_.send(Messages::Way::to_aggregator, run ? run : staged.get(), bytes, rank,
                   [this, staged] { --under_way_; });
  } else {
    messages_.receive(Messages::Way::from_aggregator, run ? run : staged.get(), bytes, rank,
                      [this, staged, walk, bytes]() mutable {
                        --under_way_;
                        if (staged) layout::scatter(walk, local_.buffer, 0, bytes_at(staged.get(), bytes));
                      });
  }
  return true;
}

// Sends the offset list followed by the data, or (for a read) sends the list and receives the data.
bool Exchange::post_list(const RoundChunk& piece, int rank) {
  const std::int64_t bytes = piece.data.count();
  const std::int64_t list = local_.view.count_segments(piece.data) * list_bytes_per_segment;
  if (!own_staging_.has_room(list + bytes)) return false;
  const std::shared_ptr<std::byte[]> staged = own_staging_.take(list + bytes);
  const std::int64_t origin = course_.grid.window(piece.aggregator, piece.round).first;
  write_list(local_.view, piece.data, origin, bytes_at(staged.get(), list));
  layout::Walk walk = memory_walk(local_, piece.data);
  ++under_way_;
  if (local_.writes) {
    layout::gather(walk, local_.buffer, 0, bytes_at(staged.get() + list, bytes));
    messages_.send(Messages::Way::to_aggregator, staged.get(), list + bytes, rank, [this, staged] { --under_way_; });
    return true;
  }
  messages_.send(Messages::Way::to_aggregator, staged.get(), list, rank, [staged] {});
  const Messages::Way answer = Messages::answer(asked_[static_cast<std::size_t>(rank)]++);
  messages_.receive(answer, staged.get() + list, bytes, rank, [this, staged, walk, list, bytes]() mutable {
    --under_way_;
    layout::scatter(walk, local_.buffer, 0, bytes_at(staged.get() + list, bytes));
  });
  return true;
}

// Moves chunks into or out of the shared buffers whose round is open by now.
bool Exchange::visit() {
  return std::erase_if(visits_, [this](const RoundChunk& piece) { return visit(piece); }) > 0;
}

bool Exchange::visit(const RoundChunk& piece) {
  const int rank = rank_of(piece);
  for (int slot = 0; slot < NodeMemory::slots; ++slot) {
    NodeMemory::Gate& gate = team_.node->gate(rank, slot);
    if (gate.open.load(std::memory_order_acquire) != piece.round) continue;
    copy(local_, piece.data, team_.node->window(rank, slot), gate.origin);
    if (local_.writes)
      Coverage(team_.node->coverage(rank, slot), {gate.origin, gate.end}).mark(local_.view.walk(piece.data));
    // Publishes the copied bytes and their coverage to the aggregator.
    gate.arrived.fetch_add(1, std::memory_order_release);
    team_.node->ring(rank);
    --under_way_;
    return true;
  }
  return false;
}

// ---- as an aggregator --------------------------------------------------------------------------------------------

// Advances both slots, the one to fill first. Returns true if something progressed.
bool Exchange::advance() {
  bool progress = false;
  for (std::size_t i = 0; i < slots; ++i) progress |= advance(slots_[(filling_ + i) % slots]);
  return progress;
}

bool Exchange::advance(Slot& slot) {
  switch (slot.state) {
    case SlotState::free: return &slot == &slots_[filling_] && !no_more_rounds_ && begin_round(slot);
    case SlotState::storing:
      if (!slot.stored) return false;
      if (brake_) brake_->stored(slot.bytes);
      slot.state = local_.writes ? SlotState::free : SlotState::moving;
      if (!local_.writes) open_gate(slot);
      return true;
    case SlotState::moving: break;
  }
  const bool progress = move_sources(slot);
  if (slot.left > 0 || !all_visited(slot)) return progress;
  if (local_.writes)
    store(slot);
  else
    slot.state = SlotState::free;
  return true;
}

// Begins the next round in a free slot. Returns false if it must wait and this was known before.
bool Exchange::begin_round(Slot& slot) {
  const bool known = next_.has_value();
  if (!known) next_ = next_round();
  no_more_rounds_ = !next_;
  if (!next_) return true;
  if (brake_ && !brake_->may_begin(next_->round)) return !known;
  if (brake_) brake_->begins(next_->round);
  slot.round = std::move(*next_);
  next_.reset();
  slot.bytes = 0;
  for (const RoundSource& source : slot.round.sources) slot.bytes += source.data.count();
  slot.visitors.clear();
  // Ranks that share the buffer move their data themselves; only the other sources exchange messages.
  std::erase_if(slot.round.sources, [&](const RoundSource& source) {
    const bool visits = source.rank != team_.rank && team_.node && team_.node->shares(source.rank);
    if (visits) slot.visitors.push_back(source.rank);
    return visits;
  });
  slot.begun = 0;
  slot.left = slot.round.sources.size();
  if (local_.writes) {
    slot.coverage = Coverage(slot.covered, slot.round.span);
    slot.coverage.clear();
    slot.state = SlotState::moving;
    open_gate(slot);
  } else {
    store(slot);
  }
  filling_ = (filling_ + 1) % slots;
  return true;
}

// Lets the ranks of the node move their data, and wakes them.
void Exchange::open_gate(Slot& slot) {
  if (slot.visitors.empty()) return;
  slot.gate->origin = slot.round.span.first;
  slot.gate->end = slot.round.span.end;
  slot.gate->arrived.store(0, std::memory_order_relaxed);
  slot.gate->open.store(slot.round.round, std::memory_order_release);
  for (const int rank : slot.visitors) team_.node->ring(rank);
}

// True if all ranks of the node have moved their data; closes the gate then.
bool Exchange::all_visited(Slot& slot) {
  if (slot.visitors.empty()) return true;
  if (slot.gate->arrived.load(std::memory_order_acquire) < static_cast<std::int64_t>(slot.visitors.size()))
    return false;
  slot.gate->open.store(NodeMemory::Gate::closed, std::memory_order_relaxed);
  return true;
}

// Begins to move sources in the order of rounds: sources of an earlier round in the other slot go first.
bool Exchange::move_sources(Slot& slot) {
  bool progress = false;
  for (const Slot& other : slots_)
    if (other.state != SlotState::free && other.round.round < slot.round.round &&
        other.begun < other.round.sources.size())
      return false;
  while (slot.begun < slot.round.sources.size() && move(slot, slot.round.sources[slot.begun])) {
    ++slot.begun;
    progress = true;
  }
  return progress;
}

// Begins to move one source's data. Returns false if there is no room for them yet.
bool Exchange::move(Slot& slot, const RoundSource& source) {
  if (source.rank == team_.rank) {
    copy(local_, source.data, slot.buffer, slot.round.span.first);
    moved(slot, local_.view.walk(source.data));
    return true;
  }
  if (course_.lists) return move_listed(slot, source);
  const std::int64_t bytes = source.data.count(), origin = slot.round.span.first;
  layout::Walk walk = course_.participants[static_cast<std::size_t>(source.rank)].view->walk(source.data);
  std::byte* run = run_of(walk, slot.buffer, origin);
  std::shared_ptr<std::byte[]> staged;
  if (!run) {
    if (!staging_.has_room(bytes)) return false;
    staged = staging_.take(bytes);
    if (!local_.writes) layout::gather(walk, slot.buffer, origin, bytes_at(staged.get(), bytes));
  }
  if (local_.writes) {
    messages_.receive(Messages::Way::to_aggregator, run ? run : staged.get(), bytes, source.rank,
                      [this, &slot, staged, walk, origin, bytes]() mutable {
                        const layout::Walk all = walk;
                        if (staged) layout::scatter(walk, slot.buffer, origin, bytes_at(staged.get(), bytes));
                        moved(slot, all);
                      });
  } else {
    messages_.send(Messages::Way::from_aggregator, run ? run : staged.get(), bytes, source.rank,
                   [this, &slot, staged, walk] { moved(slot, walk); });
  }
  return true;
}

// Moves the data of a list-based source. The list arrives first, together with data to be written; data that are read
// are sent as an answer after it.
bool Exchange::move_listed(Slot& slot, const RoundSource& source) {
  const std::int64_t bytes = source.data.count(), list = source.segments * list_bytes_per_segment;
  if (!staging_.has_room(list + bytes)) return false;
  const std::shared_ptr<std::byte[]> staged = staging_.take(list + bytes);
  const int rank = source.rank;
  const std::int64_t origin = course_.grid.window(aggregator_, slot.round.round).first;
  const Messages::Way answer = Messages::answer(answered_[static_cast<std::size_t>(rank)]++);
  messages_.receive(
      Messages::Way::to_aggregator, staged.get(), local_.writes ? list + bytes : list, source.rank, [=, this, &slot] {
        const Extent span = slot.round.span;
        const std::optional<layout::Layout> runs = read_list(bytes_at(staged.get(), list), bytes, origin, span);
        if (!runs) error_ = EPROTO;  // a hocket never sends this; its data are ignored
        layout::Walk walk = runs ? runs->walk() : layout::Walk();
        const std::span<std::byte> data = bytes_at(staged.get() + list, runs ? bytes : 0);
        if (local_.writes) {
          layout::scatter(walk, slot.buffer, span.first, data);
          return moved(slot, runs ? runs->walk() : layout::Walk());
        }
        layout::gather(walk, slot.buffer, span.first, data);
        messages_.send(answer, staged.get() + list, bytes, rank, [this, &slot, staged] { moved(slot, {}); });
      });
  return true;
}

// Notes that one source's data have arrived or left; `walk` covers their bytes in the buffer.
void Exchange::moved(Slot& slot, layout::Walk walk) {
  --slot.left;
  if (local_.writes) slot.coverage.mark(std::move(walk));
}

// Writes the buffer to the file, or fills it from the file, on the worker thread.
void Exchange::store(Slot& slot) {
  if (local_.writes) {
    return submit(slot, [this, &slot] {
      return team_.storage.write_covered(slot.buffer, slot.round.span, slot.coverage, team_.scratch.get());
    });
  }
  submit(slot, [this, &slot] {
    return team_.storage.read(bytes_at(slot.buffer, slot.round.span.count()), slot.round.span.first);
  });
}

void Exchange::submit(Slot& slot, std::function<int()> access) {
  slot.state = SlotState::storing;
  slot.stored = false;
  team_.worker.submit([this, &slot, access = std::move(access), node = team_.node.get(), rank = team_.rank] {
    // After an error, the exchange continues without file accesses, so that no rank waits for ever.
    if (error_ == 0) {
      const Time begun = node_now();
      error_ = access();
      team_.work.service += node_now() - begun;
      team_.work.bytes += slot.round.span.count();
      ++team_.work.operations;
    }
    slot.stored = true;  // the exchange may end at once, and destroy itself
    if (node) node->ring(rank);
  });
}

}  // namespace

void Team::forget_windows() {
  for (auto& memory : windows) memory.reset();
  for (auto& words : coverage) words.reset();
  scratch.reset();
}

int exchange(Team& team, const Local& local, CollectiveAccess course, Brake* brake) {
  const int error = Exchange(team, local, std::move(course), brake).run();
  return brake && !brake->finish() ? EIO : error;
}

namespace {

// Copies the next bytes between memory and file through a staging buffer. Returns errno.
int pass_window(const Team& team, const Local& local, layout::Walk& memory, std::span<std::byte> window,
                std::int64_t offset) {
  if (local.writes) {
    layout::gather(memory, local.buffer, 0, window);
    return team.storage.write(window, offset);
  }
  const int error = team.storage.read(window, offset);
  if (error == 0) layout::scatter(memory, local.buffer, 0, window);
  return error;
}

// Allocates a staging buffer of at most the size of a collective buffer.
std::unique_ptr<std::byte[]> window_for(const Team& team, Extent file) {
  return std::unique_ptr<std::byte[]>(new std::byte[static_cast<std::size_t>(std::min(team.window, file.count()))]);
}

// Copies the next bytes between memory and one run of the file, buffer by buffer.
int pass_run(const Team& team, const Local& local, layout::Walk& memory, Extent file) {
  const std::unique_ptr<std::byte[]> window = window_for(team, file);
  int error = 0;
  while (file.count() > 0 && error == 0) {
    const std::int64_t count = std::min(file.count(), team.window);
    error = pass_window(team, local, memory, bytes_at(window.get(), count), file.first);
    file.first += count;
  }
  return error;
}

// Transfers one run of memory and of the file, without a copy.
int pass_directly(const Team& team, const Local& local, std::span<std::byte> bytes, std::int64_t offset) {
  return local.writes ? team.storage.write(bytes, offset) : team.storage.read(bytes, offset);
}

// Calls `pass(bytes, offset)` for each round, and suspends the access between rounds where the brake says so. After
// an error the rounds are only counted, since the other ranks stop by their numbers.
template <class Pass>
int pass_in_rounds(const Team& team, Extent file, Brake& brake, Pass pass) {
  mpi::Patience patience;
  int error = 0;
  for (std::int64_t round = 0; !brake.own_part_done() && !brake.failed();) {
    const std::uint32_t heard = team.node ? team.node->heard() : 0;
    bool progress = brake.hear(true);
    const bool ended = file.count() == 0;
    progress |= brake.speak(ended || brake.may_begin(round) ? std::nullopt : std::optional(round), ended);
    if (!ended && brake.may_begin(round)) {
      const std::int64_t count = std::min(file.count(), team.window);
      brake.begins(round++);
      if (error == 0) error = pass(count, file.first);
      file.first += count;
      brake.stored(count);
      progress = true;
    }
    if (progress)
      patience = mpi::Patience();
    else if (team.node && !brake.awaits_messages())
      team.node->sleep(heard);
    else
      patience.pause();
  }
  return brake.finish() ? error : EIO;
}

}  // namespace

int access_alone(Team& team, const Local& local, Brake* brake) {
  const std::int64_t bytes = local.data.count();
  if (bytes == 0) return brake ? pass_in_rounds(team, {}, *brake, [](auto...) { return 0; }) : 0;
  layout::Walk walk = memory_walk(local, local.data);
  const std::int64_t first = local.view.offset(local.data.first);
  const Extent file{first, first + bytes};
  if (std::byte* run = run_of(walk, local.buffer, 0)) {
    if (!brake) return pass_directly(team, local, bytes_at(run, bytes), first);
    return pass_in_rounds(team, file, *brake, [&](std::int64_t count, std::int64_t at) {
      return pass_directly(team, local, bytes_at(run + (at - first), count), at);
    });
  }
  if (!brake) return pass_run(team, local, walk, file);
  const std::unique_ptr<std::byte[]> window = window_for(team, file);
  return pass_in_rounds(team, file, *brake, [&](std::int64_t count, std::int64_t at) {
    return pass_window(team, local, walk, bytes_at(window.get(), count), at);
  });
}

int access_locked(Team& team, const Local& local) {
  if (local.data.count() == 0) return 0;
  const Extent span = local.view.span(local.data);
  if (const int error = team.storage.lock(span, local.writes)) return error;
  layout::Walk memory = memory_walk(local, local.data);
  layout::Segments segments = local.view.segments(local.data);
  int error = 0;
  for (auto segment = segments.next(); segment && error == 0; segment = segments.next())
    error = pass_run(team, local, memory, {segment->at, segment->at + segment->length});
  const int unlocked = team.storage.unlock(span);
  return error != 0 ? error : unlocked;
}

}  // namespace hocket::runtime::collective
