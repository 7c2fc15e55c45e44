#include "runtime/io/exchange.hpp"

#include <algorithm>
#include <cerrno>

#include "runtime/mpi/calls.hpp"

namespace hocket::runtime::io {
namespace {

constexpr std::size_t slots = 2;  // windows under way
constexpr std::int64_t local_chunk = 64 << 10;

std::span<std::byte> bytes_at(std::byte* at, std::int64_t count) { return {at, static_cast<std::size_t>(count)}; }

// Memory for pieces under way, up to a bound, but for one always.
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

// Where the bytes of a walk are, if they are one run.
std::byte* run_of(layout::Walk walk, std::byte* buffer, std::int64_t origin) {
  const std::int64_t bytes = walk.left();
  const layout::Strip strip = walk.next();
  if (strip.bytes() != bytes || strip.count != 1) return nullptr;
  // Absolute addresses have no buffer (MPI_BOTTOM): they are numbers.
  // NOLINTNEXTLINE(performance-no-int-to-ptr): see above
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::intptr_t>(buffer) + (strip.at - origin));
}

layout::Walk memory_walk(const Local& local, Interval data) {
  return local.memory.walk({data.first - local.data.first, data.end - local.data.first});
}

// A window of an aggregator.
struct Slot {
  enum class State { free, moving, storing } state = State::free;
  Round round;
  std::byte* buffer = nullptr;  // its first byte is that of the round's span
  Coverage coverage;
  std::size_t begun = 0;  // sources whose data have begun to move
  std::size_t left = 0;   // sources whose data have not come, or gone
  std::atomic<bool> stored = false;
};

class Exchange {
 public:
  Exchange(Team& team, const Local& local, const Grid& grid, const std::vector<Participant>& participants);
  int run();

 private:
  void post_own();
  bool post_own(const Piece& piece);
  bool advance();
  bool advance(Slot& slot);
  bool begin_round(Slot& slot);
  bool move_sources(Slot& slot);
  bool move(Slot& slot, const Source& source);
  void moved(Slot& slot, const Source& source);
  void copy_own(Slot& slot, Interval data);
  void store(Slot& slot);
  void submit(Slot& slot, std::function<int()> access);
  int give_up();
  bool done() const;

  Team& team_;
  const Local& local_;
  const std::vector<Participant>& participants_;
  Messages messages_;
  // Of this rank as one of those who have data.
  Pieces pieces_;
  std::optional<Piece> piece_;  // the next one
  std::size_t under_way_ = 0;
  Staging own_staging_;
  // Of this rank as an aggregator.
  int aggregator_ = -1;
  std::optional<Rounds> rounds_;
  bool no_more_rounds_ = true;
  std::array<Slot, slots> slots_;
  std::size_t filling_ = 0;  // slot whose sources move next: rounds go in order
  Staging staging_;
  std::atomic<int> error_ = 0;
};

Exchange::Exchange(Team& team, const Local& local, const Grid& grid, const std::vector<Participant>& participants)
    : team_(team),
      local_(local),
      participants_(participants),
      messages_(team.comm),
      pieces_(local.view, local.data, grid),
      piece_(pieces_.next()),
      own_staging_(2 * team.window),
      staging_(2 * team.window) {
  const auto found = std::find(team.aggregators.begin(), team.aggregators.end(), team.rank);
  if (found == team.aggregators.end()) return;
  aggregator_ = static_cast<int>(found - team.aggregators.begin());
  if (aggregator_ >= grid.aggregators() || grid.domain(aggregator_).count() == 0) return;
  rounds_.emplace(grid, aggregator_, participants);
  no_more_rounds_ = false;
  for (auto& buffer : team.buffers)
    if (!buffer) buffer.reset(new std::byte[static_cast<std::size_t>(team.window)]);
  for (std::size_t i = 0; i < slots; ++i) slots_[i].buffer = team.buffers[i].get();
}

int Exchange::run() {
  mpi::Patience patience = mpi::Patience::for_data();
  while (!done()) {
    post_own();
    bool progress = advance();
    progress |= messages_.poll();
    if (messages_.failed()) return give_up();
    if (progress)
      patience = mpi::Patience::for_data();
    else
      patience.pause();
  }
  return error_;
}

// MPI itself has failed. The thread may be at work for us.
int Exchange::give_up() {
  mpi::Patience patience;
  for (const Slot& slot : slots_)
    while (slot.state == Slot::State::storing && !slot.stored) patience.pause();
  return EIO;
}

bool Exchange::done() const {
  return !piece_ && no_more_rounds_ && messages_.empty() &&
         std::all_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.state == Slot::State::free; });
}

// ---- this rank's data --------------------------------------------------------------------------------------------

// In the order of all ranks: what an aggregator waits for first is never behind what it takes later.
void Exchange::post_own() {
  while (piece_ && under_way_ < 2 * team_.aggregators.size()) {
    const bool for_us = team_.aggregators[static_cast<std::size_t>(piece_->aggregator)] == team_.rank;
    if (!for_us && !post_own(*piece_)) return;  // our own we copy as aggregators
    piece_ = pieces_.next();
  }
}

// False: there is no room yet.
bool Exchange::post_own(const Piece& piece) {
  const int rank = team_.aggregators[static_cast<std::size_t>(piece.aggregator)];
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
    messages_.send(run ? run : staged.get(), bytes, rank, [this, staged] { --under_way_; });
  } else {
    messages_.receive(run ? run : staged.get(), bytes, rank, [this, staged, walk, bytes]() mutable {
      --under_way_;
      if (staged) layout::scatter(walk, local_.buffer, 0, bytes_at(staged.get(), bytes));
    });
  }
  return true;
}

// ---- as an aggregator --------------------------------------------------------------------------------------------

// True: something has gone on.
bool Exchange::advance() {
  bool progress = false;
  for (std::size_t i = 0; i < slots; ++i) progress |= advance(slots_[(filling_ + i) % slots]);
  return progress;
}

bool Exchange::advance(Slot& slot) {
  using State = Slot::State;
  switch (slot.state) {
    case State::free: return &slot == &slots_[filling_] && !no_more_rounds_ && begin_round(slot);
    case State::storing:
      if (!slot.stored) return false;
      slot.state = local_.writes ? State::free : State::moving;
      return true;
    case State::moving: break;
  }
  const bool progress = move_sources(slot);
  if (slot.left > 0) return progress;
  if (local_.writes)
    store(slot);
  else
    slot.state = State::free;
  return true;
}

bool Exchange::begin_round(Slot& slot) {
  std::optional<Round> round = rounds_->next();
  if (!round) {
    no_more_rounds_ = true;
    return true;
  }
  slot.round = std::move(*round);
  slot.begun = 0;
  slot.left = slot.round.sources.size();
  if (local_.writes) {
    slot.coverage.reset(slot.round.span);
    slot.state = Slot::State::moving;
  } else {
    store(slot);
  }
  filling_ = (filling_ + 1) % slots;
  return true;
}

// Sources begin in the order of rounds: those of the other slot are before ours if its round is.
bool Exchange::move_sources(Slot& slot) {
  bool progress = false;
  for (const Slot& other : slots_)
    if (other.state != Slot::State::free && other.round.round < slot.round.round &&
        other.begun < other.round.sources.size())
      return false;
  while (slot.begun < slot.round.sources.size() && move(slot, slot.round.sources[slot.begun])) {
    ++slot.begun;
    progress = true;
  }
  return progress;
}

// False: there is no room yet.
bool Exchange::move(Slot& slot, const Source& source) {
  if (source.rank == team_.rank) {
    copy_own(slot, source.data);
    moved(slot, source);
    return true;
  }
  const std::int64_t bytes = source.data.count(), origin = slot.round.span.first;
  layout::Walk walk = participants_[static_cast<std::size_t>(source.rank)].view->walk(source.data);
  std::byte* run = run_of(walk, slot.buffer, origin);
  std::shared_ptr<std::byte[]> staged;
  if (!run) {
    if (!staging_.has_room(bytes)) return false;
    staged = staging_.take(bytes);
    if (!local_.writes) layout::gather(walk, slot.buffer, origin, bytes_at(staged.get(), bytes));
  }
  if (local_.writes) {
    messages_.receive(run ? run : staged.get(), bytes, source.rank,
                      [this, &slot, source, staged, walk, origin, bytes]() mutable {
                        if (staged) layout::scatter(walk, slot.buffer, origin, bytes_at(staged.get(), bytes));
                        moved(slot, source);
                      });
  } else {
    messages_.send(run ? run : staged.get(), bytes, source.rank,
                   [this, &slot, source, staged] { moved(slot, source); });
  }
  return true;
}

void Exchange::moved(Slot& slot, const Source& source) {
  --slot.left;
  if (local_.writes) slot.coverage.mark(participants_[static_cast<std::size_t>(source.rank)].view->walk(source.data));
}

// Between our memory and the window.
void Exchange::copy_own(Slot& slot, Interval data) {
  const std::int64_t origin = slot.round.span.first;
  layout::Walk memory = memory_walk(local_, data);
  layout::Walk file = local_.view.walk(data);
  if (std::byte* run = run_of(memory, local_.buffer, 0)) {
    if (local_.writes) return layout::scatter(file, slot.buffer, origin, bytes_at(run, data.count()));
    return layout::gather(file, slot.buffer, origin, bytes_at(run, data.count()));
  }
  std::array<std::byte, local_chunk> chunk;
  while (memory.left() > 0) {
    const std::span<std::byte> part = bytes_at(chunk.data(), std::min(memory.left(), local_chunk));
    if (local_.writes) {
      layout::gather(memory, local_.buffer, 0, part);
      layout::scatter(file, slot.buffer, origin, part);
    } else {
      layout::gather(file, slot.buffer, origin, part);
      layout::scatter(memory, local_.buffer, 0, part);
    }
  }
}

void Exchange::store(Slot& slot) {
  if (local_.writes) {
    return submit(slot, [this, &slot] {
      return team_.storage.write_covered(slot.buffer, slot.round.span, slot.coverage, team_.buffers[slots].get());
    });
  }
  submit(slot, [this, &slot] {
    return team_.storage.read(bytes_at(slot.buffer, slot.round.span.count()), slot.round.span.first);
  });
}

void Exchange::submit(Slot& slot, std::function<int()> access) {
  slot.state = Slot::State::storing;
  slot.stored = false;
  team_.worker.submit([this, &slot, access = std::move(access)] {
    if (error_ == 0) error_ = access();
    slot.stored = true;
  });
}

}  // namespace

int exchange(Team& team, const Local& local, const Grid& grid, const std::vector<Participant>& participants) {
  return Exchange(team, local, grid, participants).run();
}

int access_alone(Team& team, const Local& local) {
  if (local.data.count() == 0) return 0;
  layout::Walk walk = memory_walk(local, local.data);
  std::int64_t offset = local.view.offset(local.data.first);
  if (std::byte* run = run_of(walk, local.buffer, 0)) {
    const std::span<std::byte> all = bytes_at(run, local.data.count());
    return local.writes ? team.storage.write(all, offset) : team.storage.read(all, offset);
  }
  const std::unique_ptr<std::byte[]> window(
      new std::byte[static_cast<std::size_t>(std::min(team.window, local.data.count()))]);
  int error = 0;
  while (walk.left() > 0 && error == 0) {
    const std::span<std::byte> part = bytes_at(window.get(), std::min(walk.left(), team.window));
    if (local.writes) {
      layout::gather(walk, local.buffer, 0, part);
      error = team.storage.write(part, offset);
    } else {
      error = team.storage.read(part, offset);
      if (error == 0) layout::scatter(walk, local.buffer, 0, part);
    }
    offset += static_cast<std::int64_t>(part.size());
  }
  return error;
}

}  // namespace hocket::runtime::io
