// Decodes random nested datatypes of the MPI that it runs on. It compares the bytes that hocket gathers and scatters
// with those of MPI_Pack and MPI_Unpack, and compares sizes and bounds.
//
//   decode_types SEED TYPES   prints how many types were compared; reports a difference and ends with exit code 1
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "collective/datatypes.hpp"
#include "layout/copy.hpp"

using namespace hocket;

namespace {

using layout::Layout;
using Bytes = std::vector<std::byte>;

std::mt19937_64 random_bits;

std::int64_t draw(std::int64_t first, std::int64_t last) {
  return first + static_cast<std::int64_t>(random_bits() % static_cast<std::uint64_t>(last - first + 1));
}

std::vector<int> draws(std::size_t count, int first, int last) {
  std::vector<int> numbers(count);
  for (int& number : numbers) number = static_cast<int>(draw(first, last));
  return numbers;
}

void require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

#ifdef OPEN_MPI
// Open MPI packs overlapping data, types with an empty part, and complex vectors with gaps in its own ways.
constexpr bool open_mpi = true;
#else
constexpr bool open_mpi = false;
#endif
constexpr int shortest = open_mpi ? 1 : 0;  // blocks

struct Type {
  MPI_Datatype handle;
  bool ours;  // must be freed
  std::string words;
};

Type named() {
  // long double is left out: 6 of its 16 bytes hold no data, and MPICH omits them when it copies by elements.
  static const std::vector<std::pair<MPI_Datatype, const char*>> types = {{MPI_BYTE, "byte"},
                                                                          {MPI_CHAR, "char"},
                                                                          {MPI_SHORT, "short"},
                                                                          {MPI_INT, "int"},
                                                                          {MPI_DOUBLE, "double"},
                                                                          {MPI_2INT, "2int"},
                                                                          {MPI_SHORT_INT, "short_int"},
                                                                          {MPI_LONG_INT, "long_int"},
                                                                          {MPI_DOUBLE_INT, "double_int"},
                                                                          {MPI_FLOAT_INT, "float_int"},
                                                                          {MPI_C_DOUBLE_COMPLEX, "complex"}};
  const auto& [handle, words] =
      types[static_cast<std::size_t>(draw(0, static_cast<std::int64_t>(types.size()) - (open_mpi ? 2 : 1)))];
  return {handle, false, words};
}

// Displacements of blocks that do not overlap, not always in rising order.
template <class Number>
std::vector<Number> places(const std::vector<int>& lengths, std::int64_t unit) {
  std::vector<Number> at(lengths.size());
  std::int64_t next = draw(-2, 2) * unit;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    at[i] = static_cast<Number>(next);
    next += (lengths[i] + draw(0, 2)) * unit;
  }
  if (draw(0, 2) == 0) {  // equal lengths may change places
    for (std::size_t i = 0; i + 1 < lengths.size(); ++i)
      if (lengths[i] == lengths[i + 1]) std::swap(at[i], at[i + 1]);
  }
  return at;
}

Type structure_of(const std::vector<Type>& members) {
  std::vector<int> lengths = draws(members.size(), shortest, 2);
  std::vector<MPI_Aint> at(members.size());
  std::vector<MPI_Datatype> handles;
  MPI_Aint next = draw(-8, 16);
  std::string words = "struct(";
  for (std::size_t i = 0; i < members.size(); ++i) {
    MPI_Aint lower = 0, extent = 0, true_lower = 0, true_extent = 0;
    MPI_Type_get_extent(members[i].handle, &lower, &extent);
    MPI_Type_get_true_extent(members[i].handle, &true_lower, &true_extent);
    const MPI_Aint low = std::min(lower, true_lower), high = std::max(lower + extent, true_lower + true_extent);
    at[i] = next - low;
    next += std::abs(extent) * lengths[i] + (high - low) + draw(0, 9);
    handles.push_back(members[i].handle);
    words += std::to_string(lengths[i]) + "@" + std::to_string(at[i]) + " " + members[i].words + ", ";
  }
  MPI_Datatype type;
  MPI_Type_create_struct(static_cast<int>(members.size()), lengths.data(), at.data(), handles.data(), &type);
  return {type, true, words + ")"};
}

Type darray_of(const Type& child) {
  const int n = static_cast<int>(draw(1, 3));
  const auto dimensions = static_cast<std::size_t>(n);
  std::vector<int> sizes = draws(dimensions, 1, 7), distributions(dimensions), arguments(dimensions);
  std::vector<int> grid(dimensions);
  int processes = 1;
  for (std::size_t d = 0; d < dimensions; ++d) {
    const int kinds[] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
    distributions[d] = kinds[draw(0, 2)];
    grid[d] = distributions[d] == MPI_DISTRIBUTE_NONE ? 1 : static_cast<int>(draw(1, 3));
    arguments[d] = MPI_DISTRIBUTE_DFLT_DARG;
    if (distributions[d] == MPI_DISTRIBUTE_CYCLIC && draw(0, 1) == 1) arguments[d] = static_cast<int>(draw(1, 3));
    processes *= grid[d];
  }
  const int rank = static_cast<int>(draw(0, processes - 1));
  const int order = draw(0, 1) == 0 ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
  MPI_Datatype type;
  if (MPI_Type_create_darray(processes, rank, n, sizes.data(), distributions.data(), arguments.data(), grid.data(),
                             order, child.handle, &type) == MPI_SUCCESS)
    return {type, true, "darray(" + child.words + ")"};
  MPI_Type_dup(child.handle, &type);  // Open MPI makes no darray of some types without data
  return {type, true, "dup(" + child.words + ")"};
}

Type subarray_of(const Type& child) {
  const int n = static_cast<int>(draw(1, 3));
  std::vector<int> sizes = draws(static_cast<std::size_t>(n), 1, 6), parts(sizes), starts(sizes);
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    parts[d] = static_cast<int>(draw(1, sizes[d]));
    starts[d] = static_cast<int>(draw(0, sizes[d] - parts[d]));
  }
  const int order = draw(0, 1) == 0 ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
  MPI_Datatype type;
#if MPI_VERSION >= 4
  if (draw(0, 1) == 0) {
    const std::vector<MPI_Count> c_sizes(sizes.begin(), sizes.end()), c_parts(parts.begin(), parts.end()),
        c_starts(starts.begin(), starts.end());
    MPI_Type_create_subarray_c(n, c_sizes.data(), c_parts.data(), c_starts.data(), order, child.handle, &type);
    return {type, true, "subarray_c(" + child.words + ")"};
  }
#endif
  MPI_Type_create_subarray(n, sizes.data(), parts.data(), starts.data(), order, child.handle, &type);
  return {type, true, "subarray(" + child.words + ")"};
}

#if MPI_VERSION >= 4
// Makes types by the large-count forms. Their descriptions are those of the plain forms.
bool large(int way, const Type& child, MPI_Aint extent, MPI_Datatype* type) {
  const std::vector<int> lengths = draws(static_cast<std::size_t>(draw(1, 4)), shortest, 3);
  const std::vector<MPI_Count> many(lengths.begin(), lengths.end());
  const MPI_Count block = draw(1, 3), n = static_cast<MPI_Count>(lengths.size());
  switch (way) {
    case 1: MPI_Type_contiguous_c(block, child.handle, type); return true;
    case 2: MPI_Type_vector_c(n, block, block + 1, child.handle, type); return true;
    case 3: MPI_Type_create_hvector_c(n, block, (block + 1) * extent + 3, child.handle, type); return true;
    case 4: MPI_Type_indexed_c(n, many.data(), places<MPI_Count>(lengths, 1).data(), child.handle, type); return true;
    case 5:
      MPI_Type_create_hindexed_c(n, many.data(), places<MPI_Count>(lengths, extent).data(), child.handle, type);
      return true;
    case 6:
      MPI_Type_create_indexed_block_c(n, 2, places<MPI_Count>(std::vector<int>(lengths.size(), 2), 1).data(),
                                      child.handle, type);
      return true;
    case 10: MPI_Type_create_resized_c(child.handle, -3, extent + 9, type); return true;
    default: return false;
  }
}
#endif

Type random_type(int depth);

Type derived(int depth) {
  const int way = static_cast<int>(draw(0, 11));
  if (way == 11) {
    std::vector<Type> members;
    for (std::int64_t i = draw(1, 4); i > 0; --i) members.push_back(random_type(depth - 1));
    Type made_of = structure_of(members);
    for (Type& member : members)
      if (member.ours) MPI_Type_free(&member.handle);
    return made_of;
  }
  Type child = random_type(depth - 1);
  MPI_Aint lower = 0, extent = 0;
  MPI_Type_get_extent(child.handle, &lower, &extent);
  const std::vector<int> lengths = draws(static_cast<std::size_t>(draw(1, 4)), shortest, 3);
  const int n = static_cast<int>(lengths.size()), block = static_cast<int>(draw(1, 3));
  const std::vector<int> blocks(lengths.size(), block);
  Type type{MPI_DATATYPE_NULL, true, std::to_string(way) + "(" + child.words + ")"};
#if MPI_VERSION >= 4
  const bool is_large = draw(0, 2) == 0 && large(way, child, extent, &type.handle);
  if (is_large) type.words = "large " + type.words;
#else
  constexpr bool is_large = false;
#endif
  if (!is_large) switch (way) {
      case 0: MPI_Type_dup(child.handle, &type.handle); break;
      case 1: MPI_Type_contiguous(block, child.handle, &type.handle); break;
      case 2: MPI_Type_vector(n, block, block + static_cast<int>(draw(0, 2)), child.handle, &type.handle); break;
      case 3: MPI_Type_create_hvector(n, block, -(block + 1) * extent - 5, child.handle, &type.handle); break;
      case 4: MPI_Type_indexed(n, lengths.data(), places<int>(lengths, 1).data(), child.handle, &type.handle); break;
      case 5:
        MPI_Type_create_hindexed(n, lengths.data(), places<MPI_Aint>(lengths, extent).data(), child.handle,
                                 &type.handle);
        break;
      case 6: MPI_Type_create_indexed_block(n, block, places<int>(blocks, 1).data(), child.handle, &type.handle); break;
      case 7:
        MPI_Type_create_hindexed_block(n, block, places<MPI_Aint>(blocks, extent).data(), child.handle, &type.handle);
        break;
      case 8: type = subarray_of(child); break;
      case 9: type = darray_of(child); break;
      default: MPI_Type_create_resized(child.handle, lower - draw(0, 4), extent + draw(4, 12), &type.handle); break;
    }
  if (child.ours) MPI_Type_free(&child.handle);
  int size = 0;
  MPI_Type_size(type.handle, &size);
  if (size > 0 || !open_mpi) return type;
  MPI_Type_free(&type.handle);
  return named();
}

Type random_type(int depth) { return depth == 0 || draw(0, 5) == 0 ? named() : derived(depth); }

bool overlaps(const Layout& type) {
  std::vector<std::pair<std::int64_t, std::int64_t>> runs;
  layout::Segments segments(type.walk());
  while (const auto run = segments.next()) runs.emplace_back(run->at, run->at + run->length);
  std::sort(runs.begin(), runs.end());
  for (std::size_t i = 1; i < runs.size(); ++i)
    if (runs[i].first < runs[i - 1].second) return true;
  return false;
}

Bytes random_bytes(std::size_t count) {
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_bits());
  return bytes;
}

// Returns true if the type was compared.
bool compare(const Type& type) {
  Result<Layout> decoded = runtime::collective::decode(type.handle);
  require(decoded.ok(), type.words + ": " + (decoded.ok() ? "" : decoded.error().text));
  MPI_Aint lower = 0, extent = 0;
  int size = 0;
  MPI_Type_get_extent(type.handle, &lower, &extent);
  MPI_Type_size(type.handle, &size);
  require(
      decoded.value().size() == size && decoded.value().lower_bound() == lower && decoded.value().extent() == extent,
      type.words + ": other size or bounds");
  const Result<Layout> twice = layout::contiguous(2, decoded.value());
  require(twice.ok(), type.words + ": not twice");
  const bool overlapping = overlaps(twice.value());
  if (overlapping && open_mpi) return false;
  const layout::Extent span = twice.value().span();
  if (span.count() > 1 << 20 || size == 0) return false;
  const auto bytes = static_cast<std::size_t>(span.count()) + 64;
  const Bytes buffer = random_bytes(bytes);
  const auto at = [&](auto& memory) { return memory.data() + 32 - span.first; };
  Bytes theirs(static_cast<std::size_t>(2 * size)), ours(theirs.size());
  int position = 0;
  MPI_Pack(at(buffer), 2, type.handle, theirs.data(), static_cast<int>(theirs.size()), &position, MPI_COMM_SELF);
  layout::Walk walk = twice.value().walk();
  layout::gather(walk, at(buffer), 0, ours);
  require(ours == theirs, type.words + ": MPI_Pack gathers other bytes");
  if (overlapping) return true;
  Bytes their_memory(bytes, std::byte{0xEE}), our_memory(their_memory);
  position = 0;
  MPI_Unpack(theirs.data(), static_cast<int>(theirs.size()), &position, at(their_memory), 2, type.handle,
             MPI_COMM_SELF);
  walk = twice.value().walk();
  layout::scatter(walk, at(our_memory), 0, theirs);
  require(our_memory == their_memory, type.words + ": MPI_Unpack scatters to other bytes");
  return true;
}

void compare_absolute() {
  const double a = 1.5, b[3] = {2.5, 3.5, 4.5};
  const int c = 7;
  MPI_Aint at[3];
  MPI_Get_address(&a, &at[0]);
  MPI_Get_address(b, &at[1]);
  MPI_Get_address(&c, &at[2]);
  const int lengths[3] = {1, 3, 1};
  const MPI_Datatype types[3] = {MPI_DOUBLE, MPI_DOUBLE, MPI_INT};
  MPI_Datatype type;
  MPI_Type_create_struct(3, lengths, at, types, &type);
  MPI_Type_commit(&type);
  Bytes theirs(36), ours(36);
  int position = 0;
  MPI_Pack(MPI_BOTTOM, 1, type, theirs.data(), 36, &position, MPI_COMM_SELF);
  const Result<Layout> decoded = runtime::collective::decode(type);
  require(decoded.ok(), "absolute addresses: not decoded");
  layout::Walk walk = decoded.value().walk();
  layout::gather(walk, nullptr, 0, ours);
  require(ours == theirs, "absolute addresses: MPI_Pack gathers other bytes");
  MPI_Type_free(&type);
}

void compare_predefined() {
  MPI_Datatype type;
  MPI_Type_create_f90_real(12, MPI_UNDEFINED, &type);
  compare({type, false, "f90 real"});
  MPI_Type_create_f90_integer(9, &type);
  MPI_Type_contiguous(3, type, &type);
  MPI_Type_commit(&type);
  compare({type, true, "3 f90 integers"});
  MPI_Type_free(&type);
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
  MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &type);
  if (type != MPI_DATATYPE_NULL) compare({type, false, "value and index"});
  MPI_Type_get_value_index(MPI_SHORT, MPI_INT, &type);
  if (type != MPI_DATATYPE_NULL) compare({type, false, "short value and index"});
#endif
  const Result<Layout> longest = runtime::collective::decode(MPI_LONG_DOUBLE_INT);
  require(longest.ok() && longest.value().size() == 20 && longest.value().contiguous(), "long_double_int: no 20 bytes");
  require(!runtime::collective::decode(MPI_DATATYPE_NULL).ok(), "MPI_DATATYPE_NULL was decoded");
}

// Types with about 1000 GiB of data, by counts of more than 31 bits.
void compare_large() {
  MPI_Datatype block, type;
  MPI_Type_vector(1 << 20, 1 << 10, 1 << 11, MPI_BYTE, &block);
  MPI_Type_contiguous(1 << 10, block, &type);
  const Result<Layout> decoded = runtime::collective::decode(type);
  require(decoded.ok() && decoded.value().size() == std::int64_t{1} << 40, "a large type: not decoded");
  MPI_Type_free(&block);
  MPI_Type_free(&type);
#if MPI_VERSION >= 4
  const MPI_Count one = 1, far = MPI_Count{1} << 40;
  MPI_Type_create_hindexed_c(1, &one, &far, MPI_INT, &block);
  MPI_Type_contiguous_c(MPI_Count{1} << 33, MPI_BYTE, &type);
  require(runtime::collective::decode(block).value().span().first == far, "a far block: not there");
  require(runtime::collective::decode(type).value().size() == std::int64_t{1} << 33, "2^33 bytes: not as many");
  MPI_Type_free(&block);
  MPI_Type_free(&type);
#endif
}

std::int64_t resident_kib() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  long total = 0, resident = 0;
  require(file && std::fscanf(file, "%ld %ld", &total, &resident) == 2, "no /proc/self/statm");
  std::fclose(file);
  return resident * 4;
}

// Checks that the handles of a type's parts are freed: 20,000 leaked handles would take some megabytes.
void look_for_leaks() {
  MPI_Datatype inner, middle, outer;
  MPI_Type_vector(3, 2, 4, MPI_INT, &inner);
  MPI_Type_create_resized(inner, 0, 64, &middle);
  MPI_Type_contiguous(5, middle, &outer);
  const auto decode_often = [&] {
    for (int i = 0; i < 20'000; ++i) require(runtime::collective::decode(outer).ok(), "a plain type: not decoded");
  };
  decode_often();
  const std::int64_t before = resident_kib();
  decode_often();
  const std::int64_t more = resident_kib() - before;
  require(more < 1024, "decoding 20000 times took " + std::to_string(more) + " KiB more");
  for (MPI_Datatype* type : {&inner, &middle, &outer}) MPI_Type_free(type);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  random_bits.seed(std::strtoull(argv[1], nullptr, 10));
  int compared = 0;
  for (int i = 0; i < std::atoi(argv[2]); ++i) {
    Type type = random_type(static_cast<int>(draw(1, 4)));
    if (type.ours) MPI_Type_commit(&type.handle);
    compared += compare(type) ? 1 : 0;
    if (type.ours) MPI_Type_free(&type.handle);
  }
  compare_absolute();
  compare_predefined();
  compare_large();
  look_for_leaks();
  std::printf("%d types\n", compared);
  MPI_Finalize();
  return 0;
}
