// Random MPI datatypes with a model of each: where every byte of its data lies, one by one, by the MPI standard's
// definitions of the constructors.
//
// All ranks draw from the same numbers, so that each knows the types of all; only who needs a type makes its handle.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace random_types {

inline std::mt19937_64 bits;
inline bool making = true;  // handles too, not the model alone

inline std::int64_t draw(std::int64_t first, std::int64_t last) {
  return first + static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(last - first + 1));
}
inline bool one_in(int n) { return draw(1, n) == 1; }
inline std::int64_t divisor_of(std::int64_t number) {
  std::vector<std::int64_t> all;
  for (std::int64_t d = 1; d <= number && d <= 64; ++d)
    if (number % d == 0) all.push_back(d);
  return all[static_cast<std::size_t>(draw(0, static_cast<std::int64_t>(all.size()) - 1))];
}

#ifdef OPEN_MPI
constexpr int shortest = 1;  // its types with an empty block have other bounds than the standard says
#else
constexpr int shortest = 0;
#endif

using Places = std::vector<std::int64_t>;

// Invariant: all of its data are in [lower, upper), so copies side by side do not overlap.
struct Type {
  std::shared_ptr<MPI_Datatype> made;
  Places at;  // of each byte, in the order of the data
  std::int64_t lower = 0, upper = 0;
  std::string words;

  MPI_Datatype handle() const { return made ? *made : MPI_DATATYPE_NULL; }
  std::int64_t bytes() const { return static_cast<std::int64_t>(at.size()); }
  std::int64_t extent() const { return upper - lower; }
};

inline void adopt(Type& type, MPI_Datatype handle) {
  type.made = std::shared_ptr<MPI_Datatype>(new MPI_Datatype(handle), [](MPI_Datatype* owned) {
    MPI_Type_free(owned);
    delete owned;
  });
}

inline Type named(MPI_Datatype handle, std::int64_t bytes, const char* words) {
  Type type{std::make_shared<MPI_Datatype>(handle), Places(static_cast<std::size_t>(bytes)), 0, bytes, words};
  std::iota(type.at.begin(), type.at.end(), 0);
  return type;
}

inline void put(Type& type, const Type& child, std::int64_t place) {
  if (child.at.empty() && child.extent() == 0) return;
  const bool first = type.at.empty() && type.extent() == 0;
  type.lower = first ? place + child.lower : std::min(type.lower, place + child.lower);
  type.upper = first ? place + child.upper : std::max(type.upper, place + child.upper);
  for (const std::int64_t byte : child.at) type.at.push_back(place + byte);
}

inline Type contiguous(std::int64_t count, const Type& child) {
  Type type;
  type.words = std::to_string(count) + " * " + child.words;
  for (std::int64_t i = 0; i < count; ++i) put(type, child, i * child.extent());
  if (!making) return type;
  MPI_Datatype handle;
  MPI_Type_contiguous(static_cast<int>(count), child.handle(), &handle);
  adopt(type, handle);
  return type;
}

inline Type resized(const Type& child, std::int64_t lower, std::int64_t upper) {
  Type type;
  type.at = child.at;
  type.lower = lower, type.upper = upper;
  type.words = "resized(" + std::to_string(lower) + " to " + std::to_string(upper) + ", " + child.words + ")";
  if (!making) return type;
  MPI_Datatype handle;
  MPI_Type_create_resized(child.handle(), lower, upper - lower, &handle);
  adopt(type, handle);
  return type;
}

// Open MPI rounds the bounds up to what the elements are aligned to where places are in bytes: they are set.
inline Type bounded(const Type& type) { return resized(type, type.lower, type.upper); }

// `stride` in bytes.
inline Type vector(std::int64_t count, std::int64_t block, std::int64_t stride, const Type& child) {
  Type type;
  type.words = "vector(" + std::to_string(count) + " of " + std::to_string(block) + " every " + std::to_string(stride) +
               " B, " + child.words + ")";
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t j = 0; j < block; ++j) put(type, child, i * stride + j * child.extent());
  const bool whole = child.extent() > 0 && stride % child.extent() == 0;
  if (!making) return whole ? type : bounded(type);
  MPI_Datatype handle;
  if (whole)
    MPI_Type_vector(static_cast<int>(count), static_cast<int>(block), static_cast<int>(stride / child.extent()),
                    child.handle(), &handle);
  else
    MPI_Type_create_hvector(static_cast<int>(count), static_cast<int>(block), stride, child.handle(), &handle);
  adopt(type, handle);
  return whole ? type : bounded(type);
}

// `places` in bytes.
inline Type indexed(const std::vector<int>& lengths, const Places& places, const Type& child) {
  Type type;
  type.words = "indexed(";
  bool whole = child.extent() > 0, alike = true;
  std::vector<int> at;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    for (int j = 0; j < lengths[i]; ++j) put(type, child, places[i] + j * child.extent());
    type.words += std::to_string(lengths[i]) + "@" + std::to_string(places[i]) + " ";
    whole = whole && places[i] % child.extent() == 0;
    alike = alike && lengths[i] == lengths[0];
    at.push_back(whole ? static_cast<int>(places[i] / child.extent()) : 0);
  }
  type.words += "of " + child.words + ")";
  if (!making) return whole ? type : bounded(type);
  const std::vector<MPI_Aint> bytes(places.begin(), places.end());
  const int n = static_cast<int>(lengths.size());
  MPI_Datatype handle;
  if (whole && alike)
    MPI_Type_create_indexed_block(n, lengths[0], at.data(), child.handle(), &handle);
  else if (whole)
    MPI_Type_indexed(n, lengths.data(), at.data(), child.handle(), &handle);
  else if (alike)
    MPI_Type_create_hindexed_block(n, lengths[0], bytes.data(), child.handle(), &handle);
  else
    MPI_Type_create_hindexed(n, lengths.data(), bytes.data(), child.handle(), &handle);
  adopt(type, handle);
  return whole ? type : bounded(type);
}

// Its bounds are set: those of a bare struct depend on how the compiler would align its members.
inline Type structure(const std::vector<Type>& members, const Places& places) {
  Type type;
  std::string words = "struct(";
  std::vector<MPI_Datatype> handles;
  for (std::size_t i = 0; i < members.size(); ++i) {
    put(type, members[i], places[i]);
    words += "@" + std::to_string(places[i]) + " " + members[i].words + ", ";
    handles.push_back(members[i].handle());
  }
  type.words = words + ")";
  if (making) {
    const std::vector<int> ones(members.size(), 1);
    const std::vector<MPI_Aint> bytes(places.begin(), places.end());
    MPI_Datatype handle;
    MPI_Type_create_struct(static_cast<int>(members.size()), ones.data(), bytes.data(), handles.data(), &handle);
    adopt(type, handle);
  }
  return bounded(type);
}

// ---- arrays --------------------------------------------------------------------------------------------------------

// The elements of a grid that have an index of `owned[d]` in each dimension, in the order of the grid.
inline void put_owned(Type& type, const Type& child, const std::vector<int>& sizes,
                      const std::vector<std::vector<int>>& owned, bool fortran) {
  std::vector<std::size_t> slow_first(sizes.size());
  std::iota(slow_first.begin(), slow_first.end(), 0);
  if (fortran) std::reverse(slow_first.begin(), slow_first.end());
  Places elements{0};
  for (const std::size_t d : slow_first) {
    Places next;
    for (const std::int64_t element : elements)
      for (const int index : owned[d]) next.push_back(element * sizes[d] + index);
    elements = std::move(next);
  }
  for (const std::int64_t element : elements) put(type, child, element * child.extent());
  type.lower = 0;
  type.upper = std::accumulate(sizes.begin(), sizes.end(), child.extent(), std::multiplies<>());
}

inline std::string words_of(const std::vector<int>& numbers) {
  std::string words;
  for (const int number : numbers) words += (words.empty() ? "" : "x") + std::to_string(number);
  return words;
}

// Precondition: the child's lower bound is 0.
inline Type subarray(const std::vector<int>& sizes, const std::vector<int>& parts, const std::vector<int>& starts,
                     bool fortran, const Type& child) {
  Type type;
  type.words = std::string(fortran ? "Fortran " : "") + "subarray(" + words_of(parts) + " from " + words_of(starts) +
               " of " + words_of(sizes) + ", " + child.words + ")";
  std::vector<std::vector<int>> owned;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    owned.emplace_back(static_cast<std::size_t>(parts[d]));
    std::iota(owned.back().begin(), owned.back().end(), starts[d]);
  }
  put_owned(type, child, sizes, owned, fortran);
  if (!making) return type;
  MPI_Datatype handle;
  MPI_Type_create_subarray(static_cast<int>(sizes.size()), sizes.data(), parts.data(), starts.data(),
                           fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C, child.handle(), &handle);
  adopt(type, handle);
  return type;
}

// One dimension of a distributed array. `block` 0: the default of the distribution.
struct Dimension {
  int size = 1, processes = 1, block = 0;
  bool cyclic = false;

  bool owned_by(int process, int index) const {
    const int blocks = block > 0 ? block : cyclic ? 1 : (size + processes - 1) / processes;
    return index / blocks % processes == process;
  }
};

// Precondition: the child's lower bound is 0, and the process has a part of each dimension.
inline Type darray(const std::vector<Dimension>& dimensions, int process, bool fortran, const Type& child) {
  Type type;
  std::vector<int> sizes, grid, kinds, blocks, place(dimensions.size());
  int left = process, processes = 1;
  for (std::size_t d = dimensions.size(); d-- > 0; left /= dimensions[d].processes)
    place[d] = left % dimensions[d].processes;  // grids of processes are row-major in both orders
  std::vector<std::vector<int>> owned(dimensions.size());
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    const Dimension& one = dimensions[d];
    for (int i = 0; i < one.size; ++i)
      if (one.owned_by(place[d], i)) owned[d].push_back(i);
    sizes.push_back(one.size), grid.push_back(one.processes), processes *= one.processes;
    kinds.push_back(one.cyclic ? MPI_DISTRIBUTE_CYCLIC : MPI_DISTRIBUTE_BLOCK);
    blocks.push_back(one.block > 0 ? one.block : MPI_DISTRIBUTE_DFLT_DARG);
  }
  put_owned(type, child, sizes, owned, fortran);
  type.words = std::string(fortran ? "Fortran " : "") + "darray(" + words_of(sizes) + " on " + words_of(grid) +
               ", blocks " + words_of(blocks) + ", process " + std::to_string(process) + ", " + child.words + ")";
  if (!making) return type;
  MPI_Datatype handle;
  MPI_Type_create_darray(processes, process, static_cast<int>(sizes.size()), sizes.data(), kinds.data(), blocks.data(),
                         grid.data(), fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C, child.handle(), &handle);
  adopt(type, handle);
  return type;
}

// ---- random ones ---------------------------------------------------------------------------------------------------

// What a type is for. In files places rise with the data, none is below 0, and gaps are multiples of the etype.
struct Rules {
  bool file = false;
  std::int64_t unit = 1;  // of gaps, bytes
};

inline Type from_zero(const Type& type) { return type.lower == 0 ? type : resized(type, 0, type.upper); }

Type composed(std::int64_t elements, const Type& element, int depth, const Rules& rules);

// Positive numbers, or some of them 0, whose sum is given.
inline std::vector<int> split(std::int64_t sum, int least) {
  std::vector<int> parts;
  while (sum > 0 && parts.size() < 7) {
    const std::int64_t part = draw(least, std::min<std::int64_t>(sum, 1 + sum / 2));
    parts.push_back(static_cast<int>(part)), sum -= part;
  }
  if (sum > 0 || parts.empty()) parts.push_back(static_cast<int>(sum));
  return parts;
}

// Where windows of these lengths may lie, apart from each other: in their order, or in memory in any.
inline Places lay_out(const Places& lengths, const Rules& rules) {
  std::vector<std::size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  if (!rules.file && one_in(3)) std::shuffle(order.begin(), order.end(), bits);
  Places places(lengths.size());
  std::int64_t next = rules.file ? draw(0, 2) * rules.unit : draw(-9, 9);
  for (const std::size_t i : order) {
    places[i] = next;
    next += lengths[i] + (one_in(3) ? 0 : draw(0, 4) * rules.unit);
  }
  return places;
}

inline Type random_indexed(std::int64_t blocks, const Type& child, const Rules& rules) {
  const std::vector<int> lengths = split(blocks, shortest);
  const bool whole = one_in(2) && child.extent() < 2000;  // places are multiples of the child's extent
  Places windows;
  for (const int length : lengths) windows.push_back(whole ? length : length * child.extent());
  Places places = lay_out(windows, whole ? Rules{rules.file, 1} : rules);
  for (std::int64_t& place : places) place *= whole ? child.extent() : 1;
  return indexed(lengths, places, child);
}

inline Type random_structure(std::int64_t elements, const Type& element, int depth, const Rules& rules) {
  std::vector<Type> members;
  Places windows;
  for (const int part : split(elements, 1)) {
    members.push_back(composed(part, element, depth, rules));
    windows.push_back(members.back().extent());
  }
  Places places = lay_out(windows, rules);
  for (std::size_t i = 0; i < members.size(); ++i) places[i] -= members[i].lower;
  if (rules.file) {
    // MPICH's MPI_File_set_view asserts a number of pieces that a struct of one run behind byte 0 does not have.
    const std::int64_t first = places.front() + members.front().at.front();
    const std::int64_t end = places.back() + members.back().at.back() + 1;
    if (end - first == elements * element.bytes())
      for (std::int64_t& place : places) place -= first;
  }
  return structure(members, places);
}

inline Type random_subarray(std::int64_t blocks, const Type& child) {
  std::vector<int> sizes, parts, starts;
  for (std::int64_t d = draw(1, 3); d > 0; --d) {
    const std::int64_t part = d == 1 ? blocks : divisor_of(blocks);
    blocks /= part;
    parts.push_back(static_cast<int>(part));
    starts.push_back(static_cast<int>(draw(0, 2)));
    sizes.push_back(parts.back() + starts.back() + static_cast<int>(draw(0, 2)));
  }
  return subarray(sizes, parts, starts, one_in(2), child);
}

// So many elements in a type of at most that many levels.
inline Type composed(std::int64_t elements, const Type& element, int depth, const Rules& rules) {
  if (depth == 0 || one_in(6)) return contiguous(elements, element);
  const int way = static_cast<int>(draw(0, 5));
  if (way == 3) return random_structure(elements, element, depth - 1, rules);
  const std::int64_t blocks = divisor_of(elements);
  const Type child = composed(elements / blocks, element, depth - 1, rules);
  switch (way) {
    case 0: return contiguous(blocks, child);
    case 1: {
      const std::int64_t count = divisor_of(blocks), block = blocks / count;
      if (one_in(2)) return vector(count, block, (block + draw(0, 2)) * child.extent(), child);
      const std::int64_t stride = block * child.extent() + draw(0, 5) * rules.unit;
      const bool back = !rules.file && one_in(3) && stride > 1;  // Open MPI takes -1 for no stride
      return vector(count, block, back ? -stride : stride, child);
    }
    case 2: return random_indexed(blocks, child, rules);
    case 4:
      if (child.lower >= 0) return random_subarray(blocks, from_zero(child));
      return contiguous(blocks, child);
    default: {
      const Type whole = contiguous(blocks, child);
      if (rules.file) return resized(whole, whole.lower, whole.upper + draw(0, 3) * rules.unit);
      return resized(whole, whole.lower - draw(0, 9), whole.upper + draw(0, 9));
    }
  }
}

}  // namespace random_types
