// Moves arrays by one method with all strategies, in merged communicators of 1 to all of its ranks, between random
// distributions. It checks each byte afterwards.
//
//   move_arrays METHOD SEED RUNS   METHOD: 0 to 3, as in Method; RUNS: for each strategy and size of the communicator
//   move_arrays large              one message of more than 2^31 bytes from rank 0 to rank 1, by each method
//
// Rank 0 prints how many arrays were moved. A rank that finds an error reports it and ends the job.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "malleable/memory.hpp"
#include "malleable/redistribution.hpp"
#include "redistribute/plan.hpp"

using namespace hocket;

namespace {

using redistribute::ElementDistribution;
using redistribute::ElementRange;
using redistribute::Extents;
using redistribute::Partition;
using redistribute::Roles;
using runtime::ArrayTransfer;
using runtime::Method;
using runtime::Redistribution;
using runtime::Strategy;

constexpr std::size_t guard = 64;  // bytes before and after the received data, which must stay untouched
constexpr std::byte untouched{0xA5};

int world_rank = 0;

template <class... Values>
void require(bool holds, const char* what, Values... values) {
  if (holds) return;
  std::fprintf(stderr, "rank %d: ", world_rank);
  std::fprintf(stderr, what, values...);
  std::fputc('\n', stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

std::byte expected(std::size_t array, std::int64_t byte) {
  return static_cast<std::byte>((static_cast<std::uint64_t>(byte) * 2654435761U >> 9U) + 31 * array);
}

// A transfer of this rank, and the elements that it holds before and will hold.
struct Moving {
  ArrayTransfer transfer;
  Extents before;
  Extents after;
};

struct Moved {
  std::vector<std::byte> from;
  std::vector<std::byte> to;
};

// Returns the bytes of these elements, as any rank has them.
std::vector<std::byte> bytes_of(const Extents& extents, std::int64_t element_bytes, std::size_t array) {
  std::vector<std::byte> bytes;
  for (const ElementRange& range : extents)
    for (std::int64_t i = range.first * element_bytes; i < range.end * element_bytes; ++i)
      bytes.push_back(expected(array, i));
  return bytes;
}

void fill(Moved& memory, Moving& moving, std::size_t array) {
  ArrayTransfer& t = moving.transfer;
  memory.from = bytes_of(moving.before, t.element_bytes, array);
  memory.to.assign(static_cast<std::size_t>(t.plan.after * t.element_bytes) + 2 * guard, untouched);
  t.from = memory.from.empty() ? nullptr : memory.from.data();
  t.to = memory.to.data() + guard;
}

void check(const Moved& memory, const Moving& moving, std::size_t array, const std::string& run) {
  const std::int64_t size = moving.transfer.element_bytes;
  require(memory.from == bytes_of(moving.before, size, array), "%s: array %zu: the source has changed", run.c_str(),
          array);
  const std::vector<std::byte> wanted = bytes_of(moving.after, size, array);
  require(memory.to.size() == wanted.size() + 2 * guard, "%s: array %zu: the plan has another size", run.c_str(),
          array);
  for (std::size_t i = 0; i < memory.to.size(); ++i) {
    const bool inside = i >= guard && i < guard + wanted.size();
    require(memory.to[i] == (inside ? wanted[i - guard] : untouched), "%s: array %zu: byte %zd of the target is wrong",
            run.c_str(), array, static_cast<std::ptrdiff_t>(i) - static_cast<std::ptrdiff_t>(guard));
  }
}

Roles random_roles(std::mt19937& random, int ranks) {
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  const auto some = static_cast<std::ptrdiff_t>(1 + random() % all.size());
  const std::vector<int> first(all.begin(), all.begin() + some);
  const std::vector<int> rest(all.begin() + some, all.end());
  std::vector<int> any = all;
  std::shuffle(any.begin(), any.end(), random);
  any.resize(1 + random() % any.size());
  switch (random() % 5) {
    case 0: return {first, all};                        // growth
    case 1: return {all, any};                          // shrink to any of them
    case 2: return {all, all};                          // other shares
    case 3: return {first, rest.empty() ? all : rest};  // baseline
    default: return {first, any};
  }
}

Partition random_partition(std::mt19937& random, std::int64_t length, std::size_t parts) {
  if (random() % 2 == 0) return Partition::block(length, static_cast<int>(parts));
  std::vector<double> weights(parts);
  for (double& w : weights)
    w = random() % 4 == 0 ? 1e-9 : static_cast<double>(1 + random() % 9);  // some parts are empty
  return Partition::weighted(length, weights);
}

// Blocks dealt in turn, rectangles of a matrix, or lists.
ElementDistribution random_distribution(std::mt19937& random, std::int64_t length, std::size_t parts) {
  const int n = static_cast<int>(parts);
  switch (random() % 6) {
    case 0: return ElementDistribution::cyclic(length, 1 + static_cast<std::int64_t>(random() % 100), n);
    case 1:
      if (length % 20 == 0) return ElementDistribution::rectangles(length / 20, 20, n);
      return ElementDistribution::cyclic(length, 1, n);
    case 2: {
      std::vector<Extents> lists(parts);
      for (std::int64_t at = 0, end = 0; at < length; at = end) {
        end = std::min(length, at + 1 + static_cast<std::int64_t>(random() % 5000));
        lists[random() % parts].push_back({at, end});
      }
      return ElementDistribution::listed(length, std::move(lists));
    }
    default: return random_partition(random, length, parts);
  }
}

Extents held(const ElementDistribution& distribution, const std::vector<int>& ranks, int rank) {
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  return found == ranks.end() ? Extents{} : distribution.extents(static_cast<int>(found - ranks.begin()));
}

Extents replica(std::int64_t length, const std::vector<int>& ranks, int rank) {
  const bool holds = length > 0 && std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
  return holds ? Extents{{0, length}} : Extents{};
}

// Draws the same transfers in all ranks, apart from the rank's own part.
std::vector<Moving> random_transfers(std::mt19937& random, int ranks, int rank) {
  const Roles roles = random_roles(random, ranks);
  std::vector<Moving> transfers(1 + random() % 4);
  for (Moving& moving : transfers) {
    const std::int64_t lengths[] = {0, 3, 1000, 60'000};  // none, fewer than ranks, eager messages, large ones
    const std::int64_t length = lengths[random() % 4];
    const std::int64_t sizes[] = {1, 8, 12};
    moving.transfer.element_bytes = sizes[random() % 3];
    if (random() % 5 == 0) {
      moving.transfer.plan = redistribute::plan_replicated(length, length, roles, rank);
      moving.before = replica(length, roles.sources, rank);
      moving.after = replica(length, roles.targets, rank);
      continue;
    }
    const ElementDistribution before = random_distribution(random, length, roles.sources.size());
    const ElementDistribution after = random_distribution(random, length, roles.targets.size());
    moving.transfer.plan = redistribute::plan(before, after, roles, rank);
    moving.before = held(before, roles.sources, rank);
    moving.after = held(after, roles.targets, rank);
  }
  return transfers;
}

// Stands for the application's own communication on the same communicator; each rank runs at full speed.
void compute(MPI_Comm all, Redistribution& moving, std::mt19937& random) {
  for (auto rounds = random() % 4; rounds > 0; --rounds) {
    int one = 1;
    int sum = 0;
    moving.test();
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
    int size = 0;
    MPI_Comm_size(all, &size);
    require(sum == size, "the caller's own collective gave %d of %d", sum, size);
  }
}

std::size_t move(MPI_Comm all, Method method, Strategy strategy, std::mt19937& random, const std::string& run) {
  int ranks = 0;
  int rank = 0;
  MPI_Comm_size(all, &ranks);
  MPI_Comm_rank(all, &rank);
  std::vector<Moving> arrays = random_transfers(random, ranks, rank);
  std::vector<Moved> memory(arrays.size());
  std::vector<ArrayTransfer> transfers;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    fill(memory[i], arrays[i], i);
    transfers.push_back(arrays[i].transfer);
  }
  auto started = Redistribution::start(all, transfers, method, strategy);
  require(started.ok(), "%s: %s", run.c_str(), started ? "" : started.error().text.c_str());
  Redistribution& moving = *started.value();
  if (strategy == Strategy::blocking) {
    for (std::size_t i = 0; i < transfers.size(); ++i) check(memory[i], arrays[i], i, run + ", started");
  } else {
    compute(all, moving, random);
    if (random() % 2 == 0) {
      while (!moving.test()) {
      }
      for (std::size_t i = 0; i < transfers.size(); ++i) check(memory[i], arrays[i], i, run + ", tested");
    }
  }
  const Status finished = moving.finish();
  require(finished.ok(), "%s: %s", run.c_str(), finished ? "" : finished.error().text.c_str());
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    check(memory[i], arrays[i], i, run);
    std::fill(memory[i].from.begin(), memory[i].from.end(), std::byte{0});  // nobody reads it any more
  }
  return transfers.size();
}

std::size_t all_runs(Method method, unsigned seed, int runs) {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::size_t moved = 0;
  for (int ranks = 1; ranks <= size; ++ranks) {
    MPI_Comm all = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank < ranks ? 0 : MPI_UNDEFINED, world_rank, &all);
    for (int run = 0; all != MPI_COMM_NULL && run < runs; ++run) {
      for (int strategy = 0; strategy < 4; ++strategy) {
        std::mt19937 random{seed + static_cast<unsigned>(1000 * run + 10 * strategy + ranks)};
        const std::string name = "union of " + std::to_string(ranks) + ", run " + std::to_string(run) + ", strategy " +
                                 std::to_string(strategy);
        moved += move(all, method, static_cast<Strategy>(strategy), random, name);
      }
    }
    if (all != MPI_COMM_NULL) MPI_Comm_free(&all);
    // The other ranks wait without using their cores.
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (int done = 0; !done; MPI_Test(&request, &done, MPI_STATUS_IGNORE)) {
      const timespec time{0, 200'000};
      nanosleep(&time, nullptr);
    }
  }
  return moved;
}

std::size_t large() {
  const std::int64_t length = (std::int64_t{1} << 31) + 4097;
  ArrayTransfer t;
  t.element_bytes = 1;
  t.plan = redistribute::plan(Partition::block(length, 1), Partition::block(length, 1), {{0}, {1}}, world_rank);
  runtime::Memory memory = runtime::Memory::allocate(length);
  require(memory.data() != nullptr, "no memory for the large message");
  t.from = memory.data();
  t.to = memory.data();
  for (std::size_t method = 0; method < 4; ++method) {
    for (std::int64_t i = 0; world_rank == 0 && i < length; i += 1021) memory.data()[i] = expected(method, i);
    auto started = Redistribution::start(MPI_COMM_WORLD, {t}, static_cast<Method>(method), Strategy::blocking);
    require(started && started.value()->finish(), "the large message failed with method %zu", method);
    for (std::int64_t i = 0; world_rank == 1 && i < length; i += 1021)
      require(memory.data()[i] == expected(method, i), "method %zu: byte %ld of the large message is wrong", method, i);
  }
  return 4;
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  const bool is_large = argc == 2 && std::strcmp(argv[1], "large") == 0;
  require(is_large || argc == 4, "usage: move_arrays METHOD SEED RUNS, or move_arrays large");
  require(level == MPI_THREAD_MULTIPLE, "the MPI has no threads");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const std::size_t moved = is_large ? large()
                                     : all_runs(static_cast<Method>(std::atoi(argv[1])),
                                                static_cast<unsigned>(std::atoi(argv[2])), std::atoi(argv[3]));
  if (world_rank == 0) std::printf("%zu arrays\n", moved);
  MPI_Finalize();
  return 0;
}
