#include "collective/node_memory.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <functional>
#include <new>
#include <string>

#include "collective/coverage.hpp"
#include "mpi_shim/calls.hpp"

namespace hocket::runtime::collective {
namespace {

constexpr std::size_t line = 64;  // bytes of a cache line; separates variables that different ranks write
constexpr std::size_t page = 4096;
constexpr long progress_ns = 1'000'000;  // longest sleep between two calls that let MPI make progress

std::size_t rounded(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

// Returns a hash that is equal for processes that see each other in /proc: same boot of one kernel, same PID
// namespace, same effective user.
std::int64_t process_identity() {
  std::array<char, 256> text{};
  std::string all = std::to_string(geteuid());
  if (const ssize_t n = readlink("/proc/self/ns/pid", text.data(), text.size()); n > 0)
    all.append(text.data(), static_cast<std::size_t>(n));
  const Fd boot(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (const ssize_t n = read(boot.get(), text.data(), text.size()); n > 0)
    all.append(text.data(), static_cast<std::size_t>(n));
  return static_cast<std::int64_t>(std::hash<std::string>{}(all));
}

// Gathers the numbers of all ranks, in the order of ranks; empty if MPI failed.
std::vector<std::int64_t> gather(MPI_Comm comm, std::span<const std::int64_t> own) {
  std::vector<std::int64_t> all(own.size() * static_cast<std::size_t>(mpi::size_of(comm)));
  if (!mpi::gather_all(comm, own, all.data())) all.clear();
  return all;
}
std::vector<std::int64_t> gather(MPI_Comm comm, std::int64_t own) { return gather(comm, std::span(&own, 1)); }

// Calls futex without FUTEX_PRIVATE_FLAG, because the waiting processes differ.
long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* time) {
  static_assert(sizeof(word) == sizeof(std::uint32_t) && std::atomic<std::uint32_t>::is_always_lock_free);
  return syscall(SYS_futex, &word, operation, value, time, nullptr, 0);
}

}  // namespace

std::vector<std::int64_t> node_numbers(MPI_Comm comm) {
  std::vector<std::int64_t> numbers = gather(comm, process_identity());
  if (numbers.empty()) numbers.assign(static_cast<std::size_t>(mpi::size_of(comm)), 0);
  return numbers;
}

// The first bytes of the segment: the token that proves its identity, and the two boards of tell_all().
struct NodeMemory::SegmentHeader {
  std::int64_t token;
  struct alignas(line) Board {
    std::atomic<std::uint32_t> told;   // members that have written their message of this round
    std::atomic<std::uint32_t> round;  // last round that all members have written
  };
  std::array<Board, 2> boards;
};

// Wake-up counter of one member; a cache line of its own.
struct alignas(line) NodeMemory::Bell {
  std::atomic<std::uint32_t> rung;    // times it was woken; the futex word
  std::atomic<std::uint32_t> asleep;  // 1 while it sleeps or is about to
};

// ---- where things are --------------------------------------------------------------------------------------------

// The segment holds, in this order: header, bells, two boards of messages, posts, gates, then (page-aligned) the
// collective buffers, each followed by its coverage. All members compute the same positions.
NodeMemory::SegmentHeader& NodeMemory::header() const { return *reinterpret_cast<SegmentHeader*>(memory()); }

NodeMemory::Bell& NodeMemory::bell(int position) const {
  return reinterpret_cast<Bell*>(memory() + rounded(sizeof(SegmentHeader), line))[position];
}

std::byte* NodeMemory::word(std::uint32_t board, int position) const {
  const std::size_t first = rounded(sizeof(SegmentHeader), line) + static_cast<std::size_t>(members_) * sizeof(Bell);
  return memory() + first +
         (static_cast<std::size_t>(board) * static_cast<std::size_t>(members_) + static_cast<std::size_t>(position)) *
             word_bytes;
}

std::size_t NodeMemory::posts_at() const {
  return rounded(sizeof(SegmentHeader), line) + static_cast<std::size_t>(members_) * (sizeof(Bell) + 2 * word_bytes);
}

std::size_t NodeMemory::gates_at() const { return posts_at() + static_cast<std::size_t>(members_) * line; }

std::size_t NodeMemory::windows_at() const {
  return rounded(gates_at() + static_cast<std::size_t>(aggregators_) * slots * line, page);
}

// Bytes from one collective buffer to the next: the buffer and its coverage, each in whole pages.
std::size_t NodeMemory::window_stride() const {
  const auto words = static_cast<std::size_t>(Coverage::words_for(window_));
  return rounded(static_cast<std::size_t>(window_), page) + rounded(words * sizeof(std::uint64_t), page);
}

std::size_t NodeMemory::bytes() const {
  return windows_at() + static_cast<std::size_t>(aggregators_) * slots * window_stride();
}

std::size_t NodeMemory::index_of(int rank, int slot) const {
  return static_cast<std::size_t>(aggregator_[static_cast<std::size_t>(rank)]) * slots + static_cast<std::size_t>(slot);
}

NodeMemory::Gate& NodeMemory::gate(int rank, int slot) const {
  static_assert(sizeof(Gate) <= line);
  return *reinterpret_cast<Gate*>(memory() + gates_at() + index_of(rank, slot) * line);
}

NodeMemory::Post& NodeMemory::post(int rank) const {
  static_assert(sizeof(Post) <= line);
  const auto position = static_cast<std::size_t>(position_[static_cast<std::size_t>(rank)]);
  return *reinterpret_cast<Post*>(memory() + posts_at() + position * line);
}

std::byte* NodeMemory::window(int rank, int slot) const {
  return memory() + windows_at() + index_of(rank, slot) * window_stride();
}

std::uint64_t* NodeMemory::coverage(int rank, int slot) const {
  return reinterpret_cast<std::uint64_t*>(window(rank, slot) + rounded(static_cast<std::size_t>(window_), page));
}

// ---- beginning and end -------------------------------------------------------------------------------------------

std::unique_ptr<NodeMemory> NodeMemory::make(MPI_Comm comm, const std::vector<int>& aggregators, std::int64_t window) {
  std::unique_ptr<NodeMemory> made(new NodeMemory(comm, window));
  if (mpi::size_of(comm) == 1) return nullptr;
  const std::int64_t own = process_identity();
  const std::vector<std::int64_t> identities = gather(comm, own);
  if (identities.empty()) return nullptr;
  std::vector<int> members;
  for (std::size_t rank = 0; rank < identities.size(); ++rank)
    if (identities[rank] == own) members.push_back(static_cast<int>(rank));
  // All members must agree: if one could not map the segment, none uses it.
  const std::vector<std::int64_t> shared = gather(comm, made->share(members, aggregators) ? 1 : 0);
  if (shared.empty()) return nullptr;
  const bool all_share =
      std::all_of(members.begin(), members.end(), [&](int r) { return shared[static_cast<std::size_t>(r)] == 1; });
  return all_share && members.size() > 1 ? std::move(made) : nullptr;
}

// Makes or maps the segment. Collective: a rank in which a step fails still takes part in all later collective calls.
bool NodeMemory::share(std::vector<int> members, const std::vector<int>& aggregators) {
  const int rank = mpi::rank_in(comm_);
  const auto ranks = static_cast<std::size_t>(mpi::size_of(comm_));
  position_.assign(ranks, -1);
  aggregator_.assign(ranks, -1);
  for (const int member : members) position_[static_cast<std::size_t>(member)] = members_++;
  for (const int aggregator : aggregators)
    if (shares(aggregator)) aggregator_[static_cast<std::size_t>(aggregator)] = aggregators_++;
  own_ = position_[static_cast<std::size_t>(rank)];
  has_all_ = members.size() == ranks;
  // The member at position 0 makes the segment and sends the others its process id, the descriptor to open in /proc,
  // and the random token that stands in the segment's first bytes.
  enum { pid, descriptor, token, numbers };
  std::array<std::int64_t, numbers> place = {0, -1, 0};
  const auto all = static_cast<std::int64_t>(bytes());
  if (own_ == 0 && members_ > 1) {
    segment_ = transport::SharedSegment::make(all);
    if (segment_ && getrandom(&place[token], sizeof(std::int64_t), 0) == sizeof(std::int64_t)) {
      new (memory()) SegmentHeader{};
      header().token = place[token];
      for (const int aggregator : aggregators)
        for (int slot = 0; shares(aggregator) && slot < slots; ++slot) gate(aggregator, slot).open = Gate::closed;
      place[pid] = getpid();
      place[descriptor] = segment_->descriptor();
    }
  }
  const std::vector<std::int64_t> places = gather(comm_, place);
  if (places.empty()) return false;
  const std::int64_t* at = &places[static_cast<std::size_t>(members.front()) * numbers];
  if (at[descriptor] < 0) return false;
  if (own_ == 0) return true;
  const std::string path = "/proc/" + std::to_string(at[pid]) + "/fd/" + std::to_string(at[descriptor]);
  segment_ = transport::SharedSegment::map(Fd(open(path.c_str(), O_RDWR | O_CLOEXEC)), all);
  // A process id may have been reused, so the opened file could be another one; the token proves it.
  return segment_ && header().token == at[token];
}

// ---- waking and messages -----------------------------------------------------------------------------------------

void NodeMemory::ring(int rank) {
  Bell& bell = this->bell(position_[static_cast<std::size_t>(rank)]);
  // The counter rises before `asleep` is read, and sleep() does both in the opposite order: one of the two sees the
  // other.
  bell.rung.fetch_add(1);
  if (bell.asleep.load() != 0) futex(bell.rung, FUTEX_WAKE, 1, nullptr);
}

std::uint32_t NodeMemory::heard() const { return bell(own_).rung.load(); }

// A wake-up between the load and the futex call is not lost: the kernel compares the counter with `heard` again.
void NodeMemory::sleep(std::uint32_t heard) {
  Bell& bell = this->bell(own_);
  bell.asleep.store(1);
  constexpr timespec a_while{0, progress_ns};
  const bool late =
      bell.rung.load() == heard && futex(bell.rung, FUTEX_WAIT, heard, &a_while) != 0 && errno == ETIMEDOUT;
  bell.asleep.store(0);
  if (late) mpi::push(comm_);
}

// Uses two boards alternately. A rank that writes on a board again has passed the round on the other board since, and
// so all ranks have read the first.
void NodeMemory::tell_all(std::span<const std::byte> own, std::span<std::byte> all) {
  const std::uint32_t round = ++told_;
  SegmentHeader::Board& board = header().boards[round % 2];
  std::memcpy(word(round % 2, own_), own.data(), own.size());
  if (board.told.fetch_add(1) + 1 == static_cast<std::uint32_t>(members_)) {
    board.told.store(0);
    board.round.store(round);
    futex(board.round, FUTEX_WAKE, INT_MAX, nullptr);
  }
  // Another rank may reach this call only after a receive from this rank, and MPI moves that message only inside its
  // calls.
  constexpr timespec a_while{0, progress_ns};
  for (std::uint32_t seen = board.round.load(); seen != round; seen = board.round.load())
    if (futex(board.round, FUTEX_WAIT, seen, &a_while) != 0 && errno == ETIMEDOUT) mpi::push(comm_);
  for (int i = 0; i < members_; ++i)
    std::memcpy(all.data() + static_cast<std::size_t>(i) * own.size(), word(round % 2, i), own.size());
}

}  // namespace hocket::runtime::collective
