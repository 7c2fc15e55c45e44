// Random puts and gets with lists and MPI datatypes (hocket/file.h, file_mpi.h), compared with a byte-by-byte model.
//
//   random_put FILE SEED CASES [END]    with END: goes on after CASES until that file exists
//
// In each case every rank puts to its own part of the file, alone or together with the others. Then it gets from any
// part, if all have flushed, else from its own. It checks the bytes, their number, and the memory around them. At the
// end rank 0 compares the whole file. All ranks draw the same numbers, so that each has the model of all.
#include <hocket/file_mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "random_types.hpp"

namespace {

using namespace random_types;
using Bytes = std::vector<unsigned char>;

constexpr std::int64_t part_bytes = 3 << 20;  // of the file, for each rank
constexpr unsigned limit_s = 120;             // of a case

int rank, ranks;
long long seed, current;  // the case
hocket_file* file;
Bytes model;
std::int64_t model_size = 0;  // of the file
std::string description;

void require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "random_put: rank %d, seed %lld, case %lld: %s\n%s\n", rank, seed, current, what.c_str(),
               description.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  _exit(1);
}

void succeed(int status) { require(status == HOCKET_OK, status < 0 ? hocket_error_text(status) : "no error"); }

// One rank's access: where each byte of its data is in the file, and in memory.
struct Access {
  bool typed = false;
  Places in_file, in_memory;
  std::int64_t offset = 0;                     // typed
  Type filetype, type;                         // typed
  std::int64_t count = 0;                      // typed: of `type`
  std::vector<std::int64_t> offsets, lengths;  // of a list
};

// A list of extents in any order between `low` and `high`.
Access random_list(std::int64_t low, std::int64_t high) {
  Access access;
  const std::int64_t extents = one_in(8) ? 0 : draw(1, one_in(4) ? 300 : 12);
  const std::int64_t longest = one_in(4) ? 200'000 : 3'000;
  std::vector<std::pair<std::int64_t, std::int64_t>> list;
  std::int64_t at = draw(low, high);
  for (std::int64_t i = 0; i < extents; ++i) {
    const std::int64_t length = std::min(one_in(5) ? 0 : draw(1, longest), high - at);
    list.emplace_back(at, length);
    at = std::min(high, at + length + (one_in(3) ? 0 : draw(0, longest)));
  }
  if (one_in(2)) std::shuffle(list.begin(), list.end(), bits);
  for (const auto& [first, length] : list) {
    access.offsets.push_back(first), access.lengths.push_back(length);
    for (std::int64_t i = 0; i < length; ++i) {
      access.in_memory.push_back(static_cast<std::int64_t>(access.in_file.size()));
      access.in_file.push_back(first + i);
    }
  }
  return access;
}

Access random_typed(std::int64_t low, std::int64_t high) {
  Access access;
  access.typed = true;
  const Type element = one_in(2) ? named(MPI_BYTE, 1, "BYTE") : named(MPI_DOUBLE, 8, "DOUBLE");
  access.filetype = composed(draw(1, 40), element, static_cast<int>(draw(0, 3)), {true, element.bytes()});
  access.offset = draw(low, high);
  access.type = composed(draw(1, 60), element, static_cast<int>(draw(0, 3)), {});
  const std::int64_t tile = access.filetype.bytes(), item = access.type.bytes();
  const auto place = [&](std::int64_t byte) {
    return access.offset + byte / tile * access.filetype.extent() +
           access.filetype.at[static_cast<std::size_t>(byte % tile)];
  };
  access.count = one_in(8) ? 0 : draw(1, one_in(3) ? 1000 : 30);
  while (access.count > 0 && place(access.count * item - 1) >= high) access.count /= 2;
  for (std::int64_t i = 0; i < access.count * item; ++i) {
    access.in_file.push_back(place(i));
    access.in_memory.push_back(i / item * access.type.extent() + access.type.at[static_cast<std::size_t>(i % item)]);
  }
  return access;
}

// Draws the access of a rank; only the rank itself makes the handles.
Access random_access(int of, std::int64_t low, std::int64_t high) {
  making = of == rank;
  Access access = one_in(2) ? random_list(low, high) : random_typed(low, high);
  making = true;
  return access;
}

void describe(const char* what, const Access& access) {
  description = what + std::string(access.typed ? ", typed: " : ", a list of ") +
                std::to_string(access.typed ? access.count : static_cast<std::int64_t>(access.offsets.size()));
  if (access.typed)
    description += " of " + access.type.words + " at " + std::to_string(access.offset) + ": " + access.filetype.words;
}

// Memory of an access with a margin, and the address for the call.
struct Memory {
  explicit Memory(const Access& access) {
    std::int64_t high = 0;
    for (const std::int64_t at : access.in_memory) low = std::min(low, at), high = std::max(high, at + 1);
    bytes.assign(static_cast<std::size_t>(high - low + 2 * margin), 0xEE);
  }
  unsigned char& at(std::int64_t place) { return bytes[static_cast<std::size_t>(place - low + margin)]; }
  void* start() { return bytes.data() + (margin - low); }

  static constexpr std::int64_t margin = 64;
  std::int64_t low = 0;
  Bytes bytes;
};

unsigned char content(int of, std::size_t byte) {
  const auto mixed = (static_cast<std::uint64_t>(current * 64 + of) * 2654435761u + byte) * 0x9E3779B97F4A7C15u;
  return static_cast<unsigned char>(mixed >> 53);
}

void put(const Access& access, std::uint64_t operation) {
  describe(operation ? "put together" : "put", access);
  Memory memory(access);
  for (std::size_t i = 0; i < access.in_memory.size(); ++i) memory.at(access.in_memory[i]) = content(rank, i);
  const Bytes before = memory.bytes;
  const auto extents = static_cast<std::int64_t>(access.offsets.size());
  const std::int64_t *const offsets = access.offsets.data(), *const lengths = access.lengths.data();
  MPI_Datatype filetype = access.filetype.handle(), type = access.type.handle();
  void* const data = memory.start();
  if (access.typed)
    succeed(operation ? hocket_file_put_typed_all(file, operation, access.offset, filetype, data, access.count, type)
                      : hocket_file_put_typed(file, access.offset, filetype, data, access.count, type));
  else
    succeed(operation ? hocket_file_put_list_all(file, operation, extents, offsets, lengths, data)
                      : hocket_file_put_list(file, extents, offsets, lengths, data));
  require(memory.bytes == before, "a put changed the memory");
}

void get(const Access& access, std::uint64_t operation) {
  describe(operation ? "get together" : "get", access);
  Memory memory(access);
  Bytes expected = memory.bytes;
  std::int64_t there = 0, got = -1;
  for (std::size_t i = 0; i < access.in_file.size(); ++i) {
    if (access.in_file[i] >= model_size) continue;
    expected[static_cast<std::size_t>(access.in_memory[i] - memory.low + Memory::margin)] =
        model[static_cast<std::size_t>(access.in_file[i])];
    ++there;
  }
  const auto extents = static_cast<std::int64_t>(access.offsets.size());
  const std::int64_t *const offsets = access.offsets.data(), *const lengths = access.lengths.data();
  MPI_Datatype filetype = access.filetype.handle(), type = access.type.handle();
  void* const data = memory.start();
  if (access.typed)
    succeed(operation
                ? hocket_file_get_typed_all(file, operation, access.offset, filetype, data, access.count, type, &got)
                : hocket_file_get_typed(file, access.offset, filetype, data, access.count, type, &got));
  else
    succeed(operation ? hocket_file_get_list_all(file, operation, extents, offsets, lengths, data, &got)
                      : hocket_file_get_list(file, extents, offsets, lengths, data, &got));
  require(got == there, "got " + std::to_string(got) + " bytes instead of " + std::to_string(there));
  for (std::size_t i = 0; i < expected.size(); ++i)
    require(memory.bytes[i] == expected[i], "byte " + std::to_string(static_cast<std::int64_t>(i) - Memory::margin) +
                                                " of the memory is " + std::to_string(memory.bytes[i]) +
                                                " instead of " + std::to_string(expected[i]));
}

void run_case() {
  alarm(limit_s);
  const auto operation = [](bool together, int which) {
    return together ? static_cast<std::uint64_t>(2 * current + which) : 0;
  };
  const bool puts_together = one_in(2), gets_together = one_in(2), flushes = one_in(2);
  for (int r = 0; r < ranks; ++r) {
    const Access access = random_access(r, r * part_bytes, (r + 1) * part_bytes);
    if (r == rank) put(access, operation(puts_together, 1));
    for (std::size_t i = 0; i < access.in_file.size(); ++i) {
      model[static_cast<std::size_t>(access.in_file[i])] = content(r, i);
      model_size = std::max(model_size, access.in_file[i] + 1);
    }
  }
  if (flushes) succeed(hocket_file_flush(file));
  MPI_Barrier(MPI_COMM_WORLD);
  for (int r = 0; r < ranks; ++r) {
    const std::int64_t low = flushes ? 0 : r * part_bytes, high = flushes ? ranks * part_bytes : low + part_bytes;
    const Access access = random_access(r, low, high);
    if (r == rank) get(access, operation(gets_together, 2));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

bool goes_on(const char* end) {
  int more = end != nullptr && access(end, F_OK) != 0;
  MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return more != 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  require(argc > 3, "give FILE SEED CASES [END]");
  seed = std::atoll(argv[2]);
  model.resize(static_cast<std::size_t>(ranks * part_bytes));
  hocket_file_options options{};
  options.participants = ranks;
  options.group = static_cast<std::uint64_t>(seed) + 1;
  succeed(hocket_file_open(argv[1], HOCKET_FILE_READ | HOCKET_FILE_WRITE | HOCKET_FILE_CREATE, &options, &file));
  MPI_Barrier(MPI_COMM_WORLD);
  const char* const end = argc > 4 ? argv[4] : nullptr;
  for (current = 0; current < std::atoll(argv[3]) || goes_on(end); ++current) {
    bits.seed(static_cast<std::uint64_t>(seed * 1'000'003 + current));
    run_case();
  }
  succeed(hocket_file_close(file));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    std::ifstream stored(argv[1], std::ios::binary);
    const Bytes all{std::istreambuf_iterator<char>(stored), {}};
    model.resize(static_cast<std::size_t>(model_size));
    require(all == model, "the file has other bytes than the model");
    std::printf("%lld cases\n", current);
  }
  MPI_Finalize();
  return 0;
}
