#include "runtime/io/node_memory.hpp"

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

#include "runtime/io/coverage.hpp"
#include "runtime/mpi/calls.hpp"

namespace hocket::runtime::io {
namespace {

constexpr std::size_t line = 64;
constexpr std::size_t page = 4096;
constexpr long progress_ns = 1'000'000;  // of a sleep between two looks at MPI

std::size_t rounded(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

// Those for which it is the same see each other's processes: one kernel, one namespace of process numbers, one user.
std::int64_t identity() {
  std::array<char, 256> text{};
  std::string all = std::to_string(geteuid());
  if (const ssize_t n = readlink("/proc/self/ns/pid", text.data(), text.size()); n > 0)
    all.append(text.data(), static_cast<std::size_t>(n));
  const Fd boot(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (const ssize_t n = read(boot.get(), text.data(), text.size()); n > 0)
    all.append(text.data(), static_cast<std::size_t>(n));
  return static_cast<std::int64_t>(std::hash<std::string>{}(all));
}

// In the order of ranks. Empty: MPI failed.
std::vector<std::int64_t> gather(MPI_Comm comm, std::span<const std::int64_t> own) {
  std::vector<std::int64_t> all(own.size() * static_cast<std::size_t>(mpi::size_of(comm)));
  if (!mpi::gather_all(comm, own, all.data())) all.clear();
  return all;
}
std::vector<std::int64_t> gather(MPI_Comm comm, std::int64_t own) { return gather(comm, std::span(&own, 1)); }

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* time) {
  static_assert(sizeof(word) == sizeof(std::uint32_t) && std::atomic<std::uint32_t>::is_always_lock_free);
  return syscall(SYS_futex, &word, operation, value, time, nullptr, 0);
}

}  // namespace

int count_nodes(MPI_Comm comm) {
  std::vector<std::int64_t> identities = gather(comm, identity());
  if (identities.empty()) return 1;
  std::sort(identities.begin(), identities.end());
  return static_cast<int>(std::unique(identities.begin(), identities.end()) - identities.begin());
}

struct NodeMemory::Header {
  std::int64_t token;
  struct alignas(line) Board {
    std::atomic<std::uint32_t> told;   // by how many, since the start
    std::atomic<std::uint32_t> round;  // the last that all have told
  };
  std::array<Board, 2> boards;
};

struct alignas(line) NodeMemory::Bell {
  std::atomic<std::uint32_t> rung;
  std::atomic<std::uint32_t> asleep;
};

// ---- where things are --------------------------------------------------------------------------------------------

NodeMemory::Header& NodeMemory::header() const { return *reinterpret_cast<Header*>(memory()); }

NodeMemory::Bell& NodeMemory::bell(int position) const {
  return reinterpret_cast<Bell*>(memory() + rounded(sizeof(Header), line))[position];
}

std::byte* NodeMemory::word(std::uint32_t board, int position) const {
  const std::size_t first = rounded(sizeof(Header), line) + static_cast<std::size_t>(members_) * sizeof(Bell);
  return memory() + first +
         (static_cast<std::size_t>(board) * static_cast<std::size_t>(members_) + static_cast<std::size_t>(position)) *
             word_bytes;
}

std::size_t NodeMemory::posts_at() const {
  return rounded(sizeof(Header), line) + static_cast<std::size_t>(members_) * (sizeof(Bell) + 2 * word_bytes);
}

std::size_t NodeMemory::gates_at() const { return posts_at() + static_cast<std::size_t>(members_) * line; }

std::size_t NodeMemory::windows_at() const {
  return rounded(gates_at() + static_cast<std::size_t>(aggregators_) * slots * line, page);
}

// A window and its coverage.
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
  const std::int64_t own = identity();
  const std::vector<std::int64_t> identities = gather(comm, own);
  if (identities.empty()) return nullptr;
  std::vector<int> members;
  for (std::size_t rank = 0; rank < identities.size(); ++rank)
    if (identities[rank] == own) members.push_back(static_cast<int>(rank));
  const std::vector<std::int64_t> shared = gather(comm, made->share(members, aggregators) ? 1 : 0);
  if (shared.empty()) return nullptr;
  const bool all_share =
      std::all_of(members.begin(), members.end(), [&](int r) { return shared[static_cast<std::size_t>(r)] == 1; });
  return all_share && members.size() > 1 ? std::move(made) : nullptr;
}

// Collective: whatever fails in this rank, it goes through all steps.
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
  // What the one who has the memory tells the others: where the file is, and what stands in its first bytes.
  enum { pid, descriptor, token, numbers };
  std::array<std::int64_t, numbers> place = {0, -1, 0};
  const auto all = static_cast<std::int64_t>(bytes());
  if (own_ == 0 && members_ > 1) {
    segment_ = transport::Segment::make(all);
    if (segment_ && getrandom(&place[token], sizeof(std::int64_t), 0) == sizeof(std::int64_t)) {
      new (memory()) Header{};
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
  segment_ = transport::Segment::map(Fd(open(path.c_str(), O_RDWR | O_CLOEXEC)), all);
  return segment_ && header().token == at[token];
}

// ---- waking and words --------------------------------------------------------------------------------------------

void NodeMemory::ring(int rank) {
  Bell& bell = this->bell(position_[static_cast<std::size_t>(rank)]);
  bell.rung.fetch_add(1);
  if (bell.asleep.load() != 0) futex(bell.rung, FUTEX_WAKE, 1, nullptr);
}

std::uint32_t NodeMemory::heard() const { return bell(own_).rung.load(); }

// A ring between the look and the sleep is seen by the kernel, which looks again.
void NodeMemory::sleep(std::uint32_t heard) {
  Bell& bell = this->bell(own_);
  bell.asleep.store(1);
  constexpr timespec a_while{0, progress_ns};
  const bool late =
      bell.rung.load() == heard && futex(bell.rung, FUTEX_WAIT, heard, &a_while) != 0 && errno == ETIMEDOUT;
  bell.asleep.store(0);
  if (late) mpi::push(comm_);
}

// Two boards in turn: who writes on one again has heard from all since, so all have read it.
void NodeMemory::tell_all(std::span<const std::byte> own, std::span<std::byte> all) {
  const std::uint32_t round = ++told_;
  Header::Board& board = header().boards[round % 2];
  std::memcpy(word(round % 2, own_), own.data(), own.size());
  if (board.told.fetch_add(1) + 1 == static_cast<std::uint32_t>(members_)) {
    board.told.store(0);
    board.round.store(round);
    futex(board.round, FUTEX_WAKE, INT_MAX, nullptr);
  }
  // Others may be on their way here through a receive from us, which our MPI moves only while it is called.
  constexpr timespec a_while{0, progress_ns};
  for (std::uint32_t seen = board.round.load(); seen != round; seen = board.round.load())
    if (futex(board.round, FUTEX_WAIT, seen, &a_while) != 0 && errno == ETIMEDOUT) mpi::push(comm_);
  for (int i = 0; i < members_; ++i)
    std::memcpy(all.data() + static_cast<std::size_t>(i) * own.size(), word(round % 2, i), own.size());
}

}  // namespace hocket::runtime::io
