// Moves 1 GiB between processes by every method, and by a bare MPI_Alltoallv of the same extents (bench/README.md).
//
//   redistribute-MPI WORLDS SOURCES TARGETS LAYOUT REPETITIONS SET
//
// WORLDS is "one" (that of mpiexec) or "many" (rank 0 spawns the others, each in its own world). LAYOUT is "block" or
// "csr". SET is "blocking", or "all" for all strategies of every method; each transfer is finished at once. SET can
// also be "compute METHOD STRATEGY". It measures iterations of the sources during the transfer, with a thread that
// copies as many bytes, and alone. Rank 0 prints one line for each sample: variant, seconds (of the slowest rank; of
// all iterations), and bytes beyond what the arrays need (of the worst rank). With "compute", the line "moving" has
// the number of iterations there.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "malleable/memory.hpp"
#include "malleable/redistribution.hpp"
#include "redistribute/plan.hpp"

using namespace hocket;

namespace {

using redistribute::ElementRange;
using redistribute::Partition;
using redistribute::RedistributionPlan;
using redistribute::Roles;
using runtime::ArrayTransfer;
using runtime::Memory;
using runtime::Method;
using runtime::Redistribution;
using runtime::Strategy;

// One distributed array, with its partitions before and after.
struct Array {
  std::int64_t element_bytes = 0;
  Partition before;
  Partition after;
};

constexpr std::int64_t total_bytes = std::int64_t{1} << 30;  // 1 GiB over all arrays and processes

// Returns the partition of the nonzeros that belongs to a partition of the rows. The matrix is a 27-point stencil on
// a cube of `side` rows a side.
Partition nonzeros_of(const Partition& rows, std::int64_t side) {
  const auto near = [&](std::int64_t i) { return i == 0 || i == side - 1 ? 2 : 3; };
  std::vector<std::int64_t> bounds;
  std::int64_t nonzeros = 0;
  std::int64_t row = 0;
  for (const std::int64_t bound : rows.bounds()) {
    for (; row < bound; ++row) nonzeros += near(row % side) * near(row / side % side) * near(row / side / side);
    bounds.push_back(nonzeros);
  }
  return Partition{bounds};
}

// Returns the arrays of a layout: one array of doubles, or row starts, columns and values of a CSR matrix.
std::vector<Array> make_arrays(bool csr, int sources, int targets) {
  if (!csr) {
    const std::int64_t length = total_bytes / 8;
    return {{8, Partition::block(length, sources), Partition::block(length, targets)}};
  }
  constexpr std::int64_t side = 148;  // 332 bytes for each row: 1 GiB
  const Partition before = Partition::block(side * side * side, sources);
  const Partition after = Partition::block(side * side * side, targets);
  const Partition nonzeros_before = nonzeros_of(before, side);
  const Partition nonzeros_after = nonzeros_of(after, side);
  return {{8, before, after}, {4, nonzeros_before, nonzeros_after}, {8, nonzeros_before, nonzeros_after}};
}

// Returns the roles of `merge`: the first ranks are sources and the first ranks are destinations.
Roles merge_roles(int sources, int targets) {
  Roles roles;
  for (int r = 0; r < sources; ++r) roles.sources.push_back(r);
  for (int r = 0; r < targets; ++r) roles.targets.push_back(r);
  return roles;
}

// Spawns processes in worlds of their own until the communicator has `processes`. The new ones run the same loop.
MPI_Comm grow(int processes, char** argv) {
  MPI_Comm all = MPI_COMM_NULL;
  MPI_Comm parent = MPI_COMM_NULL;
  MPI_Comm_get_parent(&parent);
  if (parent == MPI_COMM_NULL)
    MPI_Comm_dup(MPI_COMM_SELF, &all);
  else
    MPI_Intercomm_merge(parent, 1, &all);
  for (int size = 0; MPI_Comm_size(all, &size), size < processes;) {
    MPI_Comm born = MPI_COMM_NULL;
    MPI_Comm merged = MPI_COMM_NULL;
    MPI_Comm_spawn(argv[0], argv + 1, 1, MPI_INFO_NULL, 0, all, &born, MPI_ERRCODES_IGNORE);
    MPI_Intercomm_merge(born, 0, &merged);
    all = merged;
  }
  return all;
}

// Returns a field of /proc/self/status in bytes, or 0 if there is none.
std::int64_t status_bytes(const std::string& key) {
  std::ifstream status{"/proc/self/status"};
  for (std::string line; std::getline(status, line);) {
    if (line.compare(0, key.size(), key) == 0) return 1024 * std::atoll(line.c_str() + key.size() + 1);
  }
  return 0;
}

// Resets the kernel's peak of this process's memory (proc(5)).
void forget_peak() { std::ofstream{"/proc/self/clear_refs"} << 5; }

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Returns the expected value of a byte. Any process can compute it, and it reveals data in a wrong place.
std::uint8_t expected(std::size_t array, std::int64_t byte) {
  return static_cast<std::uint8_t>((static_cast<std::uint64_t>(byte) / 8 * 2654435761U >> 13U) + array);
}

// Elements that this process holds of each array, before and after.
struct Held {
  ElementRange before;
  ElementRange after;
};
std::vector<Held> held;

// Fills the source's memory and sets the transfer's origin.
void fill(ArrayTransfer& t, std::byte* memory, std::size_t array) {
  const std::int64_t first = held[array].before.first * t.element_bytes;
  const std::int64_t bytes = t.plan.before * t.element_bytes;
  for (std::int64_t i = 0; i < bytes; ++i) memory[i] = static_cast<std::byte>(expected(array, first + i));
  t.from = memory;
}

// Checks the received bytes. To save time it skips every second stretch of 4 KiB, except in the last 8 KiB.
bool right(const ArrayTransfer& t, std::size_t array) {
  const std::int64_t first = held[array].after.first * t.element_bytes;
  const std::int64_t bytes = t.plan.after * t.element_bytes;
  for (std::int64_t i = 0; i < bytes; i += i % 4096 == 0 && bytes - i > 8192 ? 4097 : 1) {
    if (t.to[i] != static_cast<std::byte>(expected(array, first + i))) return false;
  }
  return true;
}

// Moves each array by one bare call. What stays is copied: as a message to itself it would take MPICH five times as
// long.
void bare(MPI_Comm all, const std::vector<ArrayTransfer>& transfers) {
  int ranks = 0;
  MPI_Comm_size(all, &ranks);
  for (const ArrayTransfer& t : transfers) {
// Open MPI may lack the large-count functions of MPI 4, hence two sets of types.
#ifdef OPEN_MPI
    using Count = int;
    using Place = int;
#else
    using Count = MPI_Count;
    using Place = MPI_Aint;
#endif
    std::vector<Count> sent(ranks), received(ranks);
    std::vector<Place> sent_at(ranks), received_at(ranks);
    for (const auto& m : t.plan.sends) {
      sent[m.peer] = static_cast<Count>(m.places.front().count());
      sent_at[m.peer] = static_cast<Place>(m.places.front().first);
    }
    for (const auto& m : t.plan.receives) {
      received[m.peer] = static_cast<Count>(m.places.front().count());
      received_at[m.peer] = static_cast<Place>(m.places.front().first);
    }
    for (const auto& kept : t.plan.kept)
      std::memcpy(t.to + kept.to * t.element_bytes, t.from + kept.from * t.element_bytes,
                  static_cast<std::size_t>(kept.count * t.element_bytes));
    MPI_Datatype element = t.element_bytes == 8 ? MPI_DOUBLE : MPI_INT32_T;
#ifdef OPEN_MPI
    MPI_Alltoallv(t.from, sent.data(), sent_at.data(), element, t.to, received.data(), received_at.data(), element,
                  all);
#else
    MPI_Alltoallv_c(t.from, sent.data(), sent_at.data(), element, t.to, received.data(), received_at.data(), element,
                    all);
#endif
  }
}

// One way of moving all arrays, and its name in the output.
struct Variant {
  std::string name;
  std::function<void(MPI_Comm, const std::vector<ArrayTransfer>&)> move;
};

// Starts a redistribution, or ends all processes with its error.
std::unique_ptr<Redistribution> start(MPI_Comm all, const std::vector<ArrayTransfer>& transfers, Method method,
                                      Strategy strategy) {
  auto started = Redistribution::start(all, transfers, method, strategy);
  if (started) return std::move(started).value();
  std::fprintf(stderr, "redistribute: %s\n", started.error().text.c_str());
  MPI_Abort(all, 1);
  return nullptr;
}

// Finishes a redistribution, or ends all processes with its error.
void finish(MPI_Comm all, Redistribution& moving) {
  if (const Status finished = moving.finish(); !finished) {
    std::fprintf(stderr, "redistribute: %s\n", finished.error().text.c_str());
    MPI_Abort(all, 1);
  }
}

constexpr std::array methods{Method::collective, Method::p2p, Method::rma_lock, Method::rma_lock_all};
constexpr std::array strategies{Strategy::blocking, Strategy::wait_sources, Strategy::wait_targets, Strategy::thread};

// Returns "METHOD STRATEGY" as settings name them.
std::string name_of(Method method, Strategy strategy) {
  return std::string{runtime::Names::of(method)} + " " + std::string{runtime::Names::of(strategy)};
}

// Returns the bare call and the methods, with the blocking strategy or with all of them.
std::vector<Variant> variants(bool all_strategies) {
  std::vector<Variant> result{{"bare", bare}};
  for (const Strategy strategy : strategies) {
    if (strategy != Strategy::blocking && !all_strategies) break;
    for (const Method method : methods) {
      result.push_back({name_of(method, strategy), [=](MPI_Comm all, const auto& transfers) {
                          finish(all, *start(all, transfers, method, strategy));
                        }});
    }
  }
  return result;
}

// Allocates fresh memory for the data that will arrive. The transfers point into it.
std::vector<Memory> make_room(std::vector<ArrayTransfer>& transfers) {
  std::vector<Memory> memory;
  for (ArrayTransfer& t : transfers) {
    memory.push_back(Memory::allocate(t.plan.after * t.element_bytes));
    t.to = memory.back().data();
  }
  return memory;
}

// Prints the largest value of all processes; rank 0 prints.
void print_worst(MPI_Comm all, const std::string& variant, double seconds, double bytes) {
  const double figures[2] = {seconds, bytes};
  double worst[2] = {};
  MPI_Reduce(figures, worst, 2, MPI_DOUBLE, MPI_MAX, 0, all);
  int rank = 0;
  MPI_Comm_rank(all, &rank);
  if (rank == 0) std::printf("%s\t%.6f\t%.0f\n", variant.c_str(), worst[0], worst[1]);
  std::fflush(stdout);
}

// Measures one variant: duration, and peak memory beyond the arrays and the process itself (`rest`).
void sample(MPI_Comm all, const Variant& variant, std::vector<ArrayTransfer> transfers, std::int64_t rest) {
  const std::vector<Memory> memory = make_room(transfers);
  std::int64_t arrays = 0;
  for (const ArrayTransfer& t : transfers) arrays += (t.plan.before + t.plan.after) * t.element_bytes;
  // Everything that is not part of the transfer is allocated before this point.
  forget_peak();
  MPI_Barrier(all);
  const double begin = now_s();
  variant.move(all, transfers);
  const double seconds = now_s() - begin;
  const std::int64_t above = status_bytes("VmHWM:") - rest - arrays;
  // A method that is fast but wrong must not pass.
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    if (right(transfers[i], i)) continue;
    std::fprintf(stderr, "redistribute: %s brought wrong data\n", variant.name.c_str());
    MPI_Abort(all, 1);
  }
  print_worst(all, variant.name, seconds, static_cast<double>(above));
}

// ---- iterations during a redistribution ----------------------------------------------------------------------------

// Does a few milliseconds of work within the cache.
void iterate() {
  static std::vector<double> x(4096, 1.0);
  for (int round = 0; round < 1000; ++round) {
    for (double& value : x) value = value * 0.999999 + 1e-6;
  }
  // The compiler must assume that the result is used.
  asm volatile("" : : "g"(x.data()) : "memory");
}

// Iterates until `over` returns true, which is asked after each iteration. Counts iterations and returns seconds.
double iterate_until(const std::function<bool()>& over, int& iterations) {
  const double begin = now_s();
  do {
    iterate();
    ++iterations;
  } while (!over());
  return now_s() - begin;
}

// Copies as many bytes as the process sends, receives and keeps. The destination is as fresh as that of the real
// transfer.
void copy_as_much(const std::vector<ArrayTransfer>& transfers, const std::byte* filled) {
  for (const ArrayTransfer& t : transfers) {
    const auto copy = [&](std::int64_t elements) {
      const Memory to = Memory::allocate(elements * t.element_bytes);
      std::memcpy(to.data(), filled, static_cast<std::size_t>(elements * t.element_bytes));
    };
    copy(t.plan.kept_count());
    for (const auto& m : t.plan.sends) copy(redistribute::count(m.places));
    for (const auto& m : t.plan.receives) copy(redistribute::count(m.places));
  }
}

// Measures iterations during a redistribution, beside copying threads, and alone. Processes that are no sources only
// take part in the transfer.
void sample_iterations(MPI_Comm all, std::vector<ArrayTransfer> transfers, Method method, Strategy strategy) {
  const bool computes = transfers.front().plan.before > 0;
  double alone = 0;
  double copying = 0;
  double moving = 0;
  std::int64_t longest = 0;  // length of the longest message
  for (const ArrayTransfer& t : transfers)
    longest = std::max(longest, std::max(t.plan.before, t.plan.after) * t.element_bytes);
  // The copying thread reads from this memory; its pages exist before the measurement.
  Memory filled = Memory::allocate(longest);
  std::memset(filled.data(), 1, static_cast<std::size_t>(longest));

  // The transfer decides how many iterations run meanwhile. As many run beside the copying threads, and alone.
  const std::vector<Memory> memory = make_room(transfers);
  MPI_Barrier(all);
  int needed = 0;
  const auto under_way = start(all, transfers, method, strategy);
  if (computes) moving = iterate_until([&] { return under_way->test(); }, needed);
  finish(all, *under_way);

  MPI_Barrier(all);
  std::atomic<bool> copied = false;
  int done = 0;
  std::thread copier{[&] {
    copy_as_much(transfers, filled.data());
    copied = true;
  }};
  if (computes) copying = iterate_until([&] { return done >= needed && copied.load(); }, done);
  copier.join();
  // Extra iterations, until the copies are complete, are scaled away.
  if (done > needed) copying *= static_cast<double>(needed) / done;

  MPI_Barrier(all);
  done = 0;
  if (computes) alone = iterate_until([&] { return done >= needed; }, done);

  print_worst(all, "alone", alone, 0);
  print_worst(all, "copying", copying, 0);
  print_worst(all, "moving", moving, needed);
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  if (argc != 7 || level != MPI_THREAD_MULTIPLE) {
    std::fprintf(stderr,
                 "usage: redistribute WORLDS SOURCES TARGETS LAYOUT REPETITIONS SET, with MPI_THREAD_MULTIPLE\n");
    return 2;
  }
  const int sources = std::atoi(argv[2]);
  const int targets = std::atoi(argv[3]);
  const int processes = std::max(sources, targets);
  MPI_Comm all = MPI_COMM_WORLD;
  if (std::strcmp(argv[1], "many") == 0) all = grow(processes, argv);
  int rank = 0;
  MPI_Comm_rank(all, &rank);
  const std::int64_t rest = status_bytes("VmRSS:");  // memory of the process before the arrays

  std::vector<ArrayTransfer> transfers;
  std::vector<Memory> memory;
  const std::vector<Array> arrays = make_arrays(std::strcmp(argv[4], "csr") == 0, sources, targets);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    ArrayTransfer t;
    t.element_bytes = arrays[i].element_bytes;
    t.plan = plan(arrays[i].before, arrays[i].after, merge_roles(sources, targets), rank);
    held.push_back({rank < sources ? arrays[i].before.part(rank) : ElementRange{},
                    rank < targets ? arrays[i].after.part(rank) : ElementRange{}});
    memory.push_back(Memory::allocate(t.plan.before * t.element_bytes));
    fill(t, memory.back().data(), i);
    transfers.push_back(t);
  }
  const int repetitions = std::atoi(argv[5]);
  const std::string set = argv[6];
  const std::vector<Variant> all_variants = variants(set == "all");
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    for (const Strategy strategy : strategies) {
      for (const Method method : methods) {
        if (set == "compute " + name_of(method, strategy)) sample_iterations(all, transfers, method, strategy);
      }
    }
    if (set != "all" && set != "blocking") continue;
    // The variants are interleaved, and each repetition begins with another one.
    for (std::size_t i = 0; i < all_variants.size(); ++i)
      sample(all, all_variants[(i + static_cast<std::size_t>(repetition)) % all_variants.size()], transfers, rest);
  }
  MPI_Finalize();
  return 0;
}
