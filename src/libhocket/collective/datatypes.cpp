#include "collective/datatypes.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "mpi_shim/pmpi.hpp"

namespace hocket::runtime::collective {
namespace {

using layout::Layout;
using Numbers = std::span<const std::int64_t>;

constexpr int deepest = 1000;  // nested datatypes; a depth that the stack certainly holds

// The arguments with which a datatype was made. Its counts, integers and addresses form one row of numbers. So the
// large-count form of nearly every combiner reads like the other: a count stands where the other has an integer or
// address.
struct Contents {
  int combiner = MPI_COMBINER_NAMED;
  std::size_t counts = 0;  // large counts, which come first in `numbers`
  std::vector<std::int64_t> numbers;
  std::vector<MPI_Datatype> types;
};

template <class Number>
void put(std::vector<std::int64_t>& numbers, const std::vector<Number>& more) {
  for (const Number number : more) numbers.push_back(static_cast<std::int64_t>(number));
}

// Reads the arguments of a datatype. Returns false if the MPI library does not give them.
#if MPI_VERSION >= 4
bool read_contents(MPI_Datatype type, Contents& contents) {
  MPI_Count integers = 0, addresses = 0, counts = 0, types = 0;
  if (HOCKET_PMPI(Type_get_envelope_c)(type, &integers, &addresses, &counts, &types, &contents.combiner) != MPI_SUCCESS)
    return false;
  if (contents.combiner == MPI_COMBINER_NAMED) return true;
  std::vector<int> i(static_cast<std::size_t>(integers));
  std::vector<MPI_Aint> a(static_cast<std::size_t>(addresses));
  std::vector<MPI_Count> c(static_cast<std::size_t>(counts));
  contents.types.resize(static_cast<std::size_t>(types));
  if (HOCKET_PMPI(Type_get_contents_c)(type, integers, addresses, counts, types, i.data(), a.data(), c.data(),
                                       contents.types.data()) != MPI_SUCCESS) {
    contents.types.clear();
    return false;
  }
  contents.counts = c.size();
  put(contents.numbers, c);
  put(contents.numbers, i);
  put(contents.numbers, a);
  return true;
}
#else
bool read_contents(MPI_Datatype type, Contents& contents) {
  int integers = 0, addresses = 0, types = 0;
  if (HOCKET_PMPI(Type_get_envelope)(type, &integers, &addresses, &types, &contents.combiner) != MPI_SUCCESS)
    return false;
  if (contents.combiner == MPI_COMBINER_NAMED) return true;
  std::vector<int> i(static_cast<std::size_t>(integers));
  std::vector<MPI_Aint> a(static_cast<std::size_t>(addresses));
  contents.types.resize(static_cast<std::size_t>(types));
  if (HOCKET_PMPI(Type_get_contents)(type, integers, addresses, types, i.data(), a.data(), contents.types.data()) !=
      MPI_SUCCESS) {
    contents.types.clear();
    return false;
  }
  put(contents.numbers, i);
  put(contents.numbers, a);
  return true;
}
#endif

// True for types that exist without having been made: their parts do not matter, and they are not freed.
bool predefined(int combiner) {
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
  if (combiner == MPI_COMBINER_VALUE_INDEX) return true;
#endif
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
         combiner == MPI_COMBINER_F90_INTEGER;
}

bool is_predefined(MPI_Datatype type) {
#if MPI_VERSION >= 4
  MPI_Count integers = 0, addresses = 0, counts = 0, types = 0;
  int combiner = MPI_COMBINER_NAMED;
  HOCKET_PMPI(Type_get_envelope_c)(type, &integers, &addresses, &counts, &types, &combiner);
#else
  int integers = 0, addresses = 0, types = 0, combiner = MPI_COMBINER_NAMED;
  HOCKET_PMPI(Type_get_envelope)(type, &integers, &addresses, &types, &combiner);
#endif
  return predefined(combiner);
}

// Frees the handles that MPI_Type_get_contents gave, which belong to the caller.
class TypeHandles {
 public:
  explicit TypeHandles(std::vector<MPI_Datatype>& types) : types_(types) {}
  ~TypeHandles() {
    for (MPI_Datatype& type : types_)
      if (!is_predefined(type)) HOCKET_PMPI(Type_free)(&type);
  }
  TypeHandles(const TypeHandles&) = delete;
  TypeHandles& operator=(const TypeHandles&) = delete;

 private:
  std::vector<MPI_Datatype>& types_;
};

std::int64_t size_of(MPI_Datatype type) {
  MPI_Count size = 0;
  HOCKET_PMPI(Type_size_x)(type, &size);
  return static_cast<std::int64_t>(size);
}

// Sets the bounds to those that this MPI library gives the type: MPI libraries differ in their padding.
Result<Layout> bounded(MPI_Datatype type, const Result<Layout>& data) {
  if (!data) return data;
  MPI_Count lower = 0, extent = 0;
  if (HOCKET_PMPI(Type_get_extent_x)(type, &lower, &extent) != MPI_SUCCESS)
    return Error{"a datatype whose extent the MPI library does not report"};
  return layout::resized(static_cast<std::int64_t>(lower), static_cast<std::int64_t>(extent), data.value());
}

// Returns the layout of a C structure of a value and an index, with its padding between them.
Result<Layout> pair_of(std::int64_t value, std::int64_t index) {
  const std::int64_t alignment = std::min<std::int64_t>(index, alignof(std::max_align_t));
  const std::int64_t at = alignment == 0 ? value : (value + alignment - 1) / alignment * alignment;
  const Result<Layout> first = layout::contiguous_bytes(value);
  const Result<Layout> second = layout::contiguous_bytes(index);
  if (!first || !second) return Error{"a pair type of more than 2^62 bytes"};
  const std::int64_t one[] = {1, 1}, places[] = {0, at};
  const Layout both[] = {first.value(), second.value()};
  return layout::structure(one, places, both);
}

// Pair types (MPI_DOUBLE_INT and the like) have a hole where the index is aligned; all others are bytes in a row.
Result<Layout> decode_predefined(MPI_Datatype type, const Contents& contents) {
  if (!contents.types.empty() && contents.types.size() == 2)
    return pair_of(size_of(contents.types[0]), size_of(contents.types[1]));
  if (type == mpi::short_int_type()) return pair_of(sizeof(short), sizeof(int));
  return layout::contiguous_bytes(size_of(type));  // no other pair type has a hole before its end
}

layout::Order order_of(std::int64_t order) {
  return order == MPI_ORDER_FORTRAN ? layout::Order::fortran : layout::Order::c;
}

layout::Distribution distribution_of(std::int64_t distribution) {
  switch (distribution) {
    case MPI_DISTRIBUTE_BLOCK: return layout::Distribution::block;
    case MPI_DISTRIBUTE_CYCLIC: return layout::Distribution::cyclic;
    default: return layout::Distribution::none;
  }
}

// Reads the arguments of a subarray. The large-count form has the sizes first.
Result<Layout> decode_subarray(const Contents& contents, const Layout& child) {
  const Numbers numbers(contents.numbers);
  const Numbers integers = numbers.subspan(contents.counts);
  const auto n = static_cast<std::size_t>(integers[0]);
  const Numbers sizes = contents.counts > 0 ? numbers.first(3 * n) : integers.subspan(1, 3 * n);
  return layout::subarray(sizes.first(n), sizes.subspan(n, n), sizes.subspan(2 * n, n), order_of(integers.back()),
                          child);
}

// Reads the arguments of a distributed array, whose processes and rank are integers in both forms.
Result<Layout> decode_darray(const Contents& contents, const Layout& child) {
  const Numbers numbers(contents.numbers);
  const Numbers integers = numbers.subspan(contents.counts);
  const auto n = static_cast<std::size_t>(integers[2]);
  const Numbers sizes = contents.counts > 0 ? numbers.first(n) : integers.subspan(3, n);
  const Numbers others = integers.subspan(contents.counts > 0 ? 3 : 3 + n, 3 * n);
  std::vector<layout::Dimension> dimensions(n);
  for (std::size_t d = 0; d < n; ++d) {
    const std::int64_t argument = others[n + d];
    dimensions[d] = {sizes[d], distribution_of(others[d]),
                     argument == MPI_DISTRIBUTE_DFLT_DARG ? layout::default_argument : argument, others[2 * n + d]};
  }
  return layout::darray(integers[0], integers[1], dimensions, order_of(integers.back()), child);
}

Result<Layout> decode(MPI_Datatype type, int depth);

// Decodes each distinct handle once: a structure may name one type a thousand times.
Result<std::vector<Layout>> decode_parts(const std::vector<MPI_Datatype>& types, int depth) {
  std::vector<Layout> parts;
  std::unordered_map<MPI_Datatype, std::size_t> known;
  for (const MPI_Datatype type : types) {
    const auto [found, is_new] = known.emplace(type, parts.size());
    if (!is_new) {
      parts.push_back(Layout(parts[found->second]));
      continue;
    }
    Result<Layout> part = decode(type, depth);
    if (!part) return part.error();
    parts.push_back(std::move(part).value());
  }
  return parts;
}

Result<Layout> combine(const Contents& contents, const std::vector<Layout>& parts) {
  const Numbers numbers(contents.numbers);
  // Returns row k of an argument list that has a count first, then as many lengths, then as many displacements.
  const auto row = [&](std::size_t k) {
    const auto n = static_cast<std::size_t>(numbers[0]);
    return numbers.subspan(1 + k * n, n);
  };
  if (contents.combiner == MPI_COMBINER_STRUCT) return layout::structure(row(0), row(1), parts);
  if (parts.size() != 1) return Error{"a datatype of " + std::to_string(parts.size()) + " parts instead of one"};
  const Layout& child = parts[0];
  switch (contents.combiner) {
    case MPI_COMBINER_DUP: return child;
    case MPI_COMBINER_CONTIGUOUS: return layout::contiguous(numbers[0], child);
    case MPI_COMBINER_VECTOR: return layout::vector(numbers[0], numbers[1], numbers[2], child);
    case MPI_COMBINER_HVECTOR: return layout::hvector(numbers[0], numbers[1], numbers[2], child);
    case MPI_COMBINER_INDEXED: return layout::indexed(row(0), row(1), child);
    case MPI_COMBINER_HINDEXED: return layout::hindexed(row(0), row(1), child);
    case MPI_COMBINER_INDEXED_BLOCK: return layout::indexed_block(numbers[1], numbers.subspan(2), child);
    case MPI_COMBINER_HINDEXED_BLOCK: return layout::hindexed_block(numbers[1], numbers.subspan(2), child);
    case MPI_COMBINER_SUBARRAY: return decode_subarray(contents, child);
    case MPI_COMBINER_DARRAY: return decode_darray(contents, child);
    case MPI_COMBINER_RESIZED: return layout::resized(numbers[0], numbers[1], child);
    default:
      return Error{"a datatype of combiner " + std::to_string(contents.combiner) + ", which hocket does not know"};
  }
}

Result<Layout> decode(MPI_Datatype type, int depth) {
  if (type == mpi::no_type()) return Error{"MPI_DATATYPE_NULL, which describes no data"};
  if (depth > deepest) return Error{"a datatype of more than " + std::to_string(deepest) + " levels"};
  Contents contents;
  if (!read_contents(type, contents)) return Error{"a datatype whose construction the MPI library does not report"};
  // Frees the handles on every path from here on.
  const TypeHandles parts(contents.types);
  if (predefined(contents.combiner)) return bounded(type, decode_predefined(type, contents));
  const Result<std::vector<Layout>> decoded = decode_parts(contents.types, depth + 1);
  if (!decoded) return decoded.error();
  return bounded(type, combine(contents, decoded.value()));
}

}  // namespace

Result<Layout> decode(MPI_Datatype type) {
  Result<Layout> decoded = decode(type, 0);
  // A wrong size would corrupt the file, so the two are compared before any use.
  if (decoded && decoded.value().size() != size_of(type))
    return Error{"a datatype of " + std::to_string(size_of(type)) + " bytes that was read as one of " +
                 std::to_string(decoded.value().size())};
  return decoded;
}

}  // namespace hocket::runtime::collective
