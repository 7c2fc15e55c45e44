// Implements the public functions of include/hocket/malleable.h: checks of arguments, with an error text for each,
// around MalleableJob. No exception leaves a function (`guarded`). The header states who may call what.
#include "hocket/malleable.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <new>
#include <string>

#include "api/status.hpp"
#include "malleable/job.hpp"
#include "mpi_shim/calls.hpp"
#include "process/guarded.hpp"

using hocket::runtime::ArrayDistribution;
using hocket::runtime::Arrays;
using hocket::runtime::guarded;
using hocket::runtime::MalleableJob;

struct hocket_malleable {
  std::unique_ptr<MalleableJob> job;
};

namespace {

using hocket::api::fail;
using hocket::api::no_null;

// Returns the name in quotes. Uses characters instead of strings: for a string of one character, g++ 12 at -O3 warns of
// an overlap that does not exist (GCC bug 105651).
std::string quoted(const char* name) { return '\'' + std::string(name) + '\''; }

// Returns HOCKET_ERROR_ARGUMENT and keeps the text for hocket_error_text.
int wrong(const char* function, const std::string& what) {
  return fail(HOCKET_ERROR_ARGUMENT, std::string(function) + ": " + what);
}

int no_memory(const char* function, const char* name) {
  return fail(HOCKET_ERROR_MEMORY, std::string(function) + ": no memory for '" + name + "'");
}

// Returns the bytes of an element; 0 if the type has gaps, or is no type.
std::int64_t bytes_of(MPI_Datatype type) {
  if (type == hocket::runtime::mpi::no_type()) return 0;
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  MPI_Count size = 0;
  if (HOCKET_PMPI(Type_get_extent)(type, &lower, &extent) != MPI_SUCCESS ||
      HOCKET_PMPI(Type_size_x)(type, &size) != MPI_SUCCESS)
    return 0;
  return lower == 0 && extent == size ? static_cast<std::int64_t>(size) : 0;
}

// Largest length of an array and largest element in bytes: the array's bytes still fit 64 bits.
constexpr std::int64_t longest = std::int64_t{1} << 42;
constexpr std::int64_t largest_element = std::int64_t{1} << 20;

// Checks the arguments that arrays and matrices have in common. Returns HOCKET_OK if all are valid.
int check(const char* function, const hocket_malleable* job, const char* name, std::int64_t length, int kind) {
  if (!job) return no_null(function, "job");
  if (!name) return no_null(function, "name");
  const std::string shown = quoted(name);
  if (job->job->begun()) return wrong(function, shown + " comes after hocket_malleable_begin: register it before");
  const Arrays& arrays = job->job->arrays();
  if (arrays.find(name) >= 0 || arrays.find_matrix(name) >= 0)
    return wrong(function, shown + " is registered already: give each array its own name");
  if (length < 0 || length > longest)
    return wrong(function, shown + " has length " + std::to_string(length) + ": give 0 to " + std::to_string(longest));
  if (kind != HOCKET_MALLEABLE_CONSTANT && kind != HOCKET_MALLEABLE_VARIABLE)
    return wrong(function, shown + " has kind " + std::to_string(kind) +
                               ": give HOCKET_MALLEABLE_CONSTANT or HOCKET_MALLEABLE_VARIABLE");
  return HOCKET_OK;
}

int no_array(const char* function, const char* name) {
  return wrong(function, "no array or matrix is registered as '" + std::string(name) + "'");
}

}  // namespace

int hocket_malleable_create(hocket_malleable** job) {
  return guarded([&]() -> int {
    if (!job) return no_null("hocket_malleable_create", "job");
    *job = nullptr;
    int initialised = 0;
    int finalised = 0;
    HOCKET_PMPI(Initialized)(&initialised);
    HOCKET_PMPI(Finalized)(&finalised);
    if (!initialised || finalised)
      return wrong("hocket_malleable_create", "MPI is not initialised: call it after MPI_Init and before MPI_Finalize");
    auto made = MalleableJob::create();
    if (!made) return wrong("hocket_malleable_create", "MPI_COMM_WORLD could not be duplicated");
    *job = new hocket_malleable{std::move(made)};
    return HOCKET_OK;
  });
}

// Functions that return no error code accept NULL and return a neutral value.
int hocket_malleable_joined(const hocket_malleable* job) { return job && job->job->joined() ? 1 : 0; }

int hocket_malleable_array(hocket_malleable* job, const char* name, MPI_Datatype type, int64_t length, int distribution,
                           int kind, void* data) {
  return guarded([&]() -> int {
    constexpr const char* function = "hocket_malleable_array";
    if (const int status = check(function, job, name, length, kind); status != HOCKET_OK) return status;
    if (!data) return no_null(function, "data");
    Arrays& arrays = job->job->arrays();
    Arrays::Spec spec{
        name, bytes_of(type), length, {}, 0, kind == HOCKET_MALLEABLE_CONSTANT, static_cast<void**>(data)};
    const std::string shown = quoted(name);
    if (spec.element_bytes <= 0 || spec.element_bytes > largest_element)
      return wrong(function,
                   shown + " is of a type with gaps, without size, or of more than 1 MiB: use a smaller element");
    if (distribution == HOCKET_MALLEABLE_REPLICATED)
      spec.sharing = ArrayDistribution::replicated;
    else if (distribution == HOCKET_MALLEABLE_BLOCK)
      spec.sharing = ArrayDistribution::block;
    else if (distribution == HOCKET_MALLEABLE_WEIGHTED)
      spec.sharing = ArrayDistribution::weighted;
    else if (distribution >= 0 && static_cast<std::size_t>(distribution) < arrays.matrices())
      // Non-negative values are numbers of matrices, as hocket_malleable_csr returns them.
      spec.sharing = ArrayDistribution::like_rows;
    else
      return wrong(function, shown + " has distribution " + std::to_string(distribution) +
                                 ": give HOCKET_MALLEABLE_REPLICATED, _BLOCK, _WEIGHTED, or the number that "
                                 "hocket_malleable_csr returned");
    if (spec.sharing == ArrayDistribution::like_rows) {
      spec.matrix = static_cast<std::size_t>(distribution);
      if (length != arrays.rows(spec.matrix))
        return wrong(function, shown + " has " + std::to_string(length) + " elements, its matrix has " +
                                   std::to_string(arrays.rows(spec.matrix)) + " rows: they must be equal");
    }
    return arrays.add(spec, job->job->joined() ? -1 : job->job->rank(), job->job->size()) ? HOCKET_OK
                                                                                          : no_memory(function, name);
  });
}

int hocket_malleable_csr(hocket_malleable* job, const char* name, int64_t rows, int distribution, int kind,
                         int64_t** starts, MPI_Datatype column_type, void* columns, MPI_Datatype value_type,
                         void* values, int* rows_of) {
  return guarded([&]() -> int {
    constexpr const char* function = "hocket_malleable_csr";
    if (const int status = check(function, job, name, rows, kind); status != HOCKET_OK) return status;
    if (!starts || !columns || !values) return no_null(function, !starts ? "starts" : !columns ? "columns" : "values");
    if (!rows_of) return no_null(function, "rows_of");
    const std::string shown = quoted(name);
    Arrays::MatrixSpec spec{name,
                            rows,
                            ArrayDistribution::block,
                            kind == HOCKET_MALLEABLE_CONSTANT,
                            reinterpret_cast<void**>(starts),
                            static_cast<void**>(columns),
                            static_cast<void**>(values),
                            bytes_of(column_type),
                            bytes_of(value_type)};
    if (std::min(spec.column_bytes, spec.value_bytes) <= 0 ||
        std::max(spec.column_bytes, spec.value_bytes) > largest_element)
      return wrong(function, shown +
                                 " has columns or values of a type with gaps, without size, or of more than 1 MiB: "
                                 "use a smaller element");
    if (distribution == HOCKET_MALLEABLE_WEIGHTED)
      spec.sharing = ArrayDistribution::weighted;
    else if (distribution == HOCKET_MALLEABLE_NONZEROS)
      spec.sharing = ArrayDistribution::nonzeros;
    else if (distribution != HOCKET_MALLEABLE_BLOCK)
      return wrong(function,
                   shown + " has distribution " + std::to_string(distribution) +
                       ": give HOCKET_MALLEABLE_BLOCK, HOCKET_MALLEABLE_WEIGHTED or HOCKET_MALLEABLE_NONZEROS");
    const int number =
        job->job->arrays().add_matrix(spec, job->job->joined() ? -1 : job->job->rank(), job->job->size());
    if (number < 0) return no_memory(function, name);
    *rows_of = number;
    return HOCKET_OK;
  });
}

int hocket_malleable_csr_reserve(hocket_malleable* job, const char* name, int64_t nonzeros) {
  return guarded([&]() -> int {
    constexpr const char* function = "hocket_malleable_csr_reserve";
    if (!job) return no_null(function, "job");
    if (!name) return no_null(function, "name");
    const int matrix = job->job->arrays().find_matrix(name);
    if (matrix < 0) return no_array(function, name);
    if (nonzeros < 0 || nonzeros > longest)
      return wrong(function,
                   quoted(name) + ": " + std::to_string(nonzeros) + " nonzeros: give 0 to " + std::to_string(longest));
    if (job->job->joined() || job->job->begun())
      return wrong(
          function,
          "the nonzeros of '" + std::string(name) +
              "' arrive with hocket_malleable_begin: reserve room only before it, and not in a process that joins");
    return job->job->arrays().reserve_nonzeros(static_cast<std::size_t>(matrix), nonzeros) ? HOCKET_OK
                                                                                           : no_memory(function, name);
  });
}

int hocket_malleable_begin(hocket_malleable* job, int64_t first) {
  return guarded([&]() -> int {
    constexpr const char* function = "hocket_malleable_begin";
    if (!job) return no_null(function, "job");
    if (job->job->begun()) return wrong(function, "it was called before: call it once, before the first iteration");
    if (first < 0) return wrong(function, "the first iteration is " + std::to_string(first) + ": give 0 or more");
    const auto begun = job->job->begin(first);
    return begun ? int{HOCKET_OK} : wrong(function, begun.error().text);
  });
}

int hocket_malleable_left(const hocket_malleable* job) { return job && job->job->has_left() ? 1 : 0; }

MPI_Comm hocket_malleable_comm(const hocket_malleable* job) {
  return job ? job->job->comm() : hocket::runtime::mpi::no_comm();
}

int hocket_malleable_range(const hocket_malleable* job, const char* name, int rank, int64_t* first, int64_t* count) {
  return guarded([&]() -> int {
    constexpr const char* function = "hocket_malleable_range";
    if (!job) return no_null(function, "job");
    if (!name) return no_null(function, "name");
    if (!first || !count) return no_null(function, !first ? "first" : "count");
    const MalleableJob& of = *job->job;
    const int array = of.arrays().find(name);
    const int matrix = of.arrays().find_matrix(name);
    if (array < 0 && matrix < 0) return no_array(function, name);
    const int asked = rank < 0 ? of.rank() : rank;
    // A process that joins does not know the number of processes before hocket_malleable_begin, so no rank is refused
    // then.
    if (rank >= of.size() && !(of.joined() && !of.begun()))
      return wrong(function, "rank " + std::to_string(rank) + " does not exist: there are " +
                                 std::to_string(of.size()) + " processes");
    const auto range = array >= 0 ? of.arrays().range(array, asked) : of.arrays().rows_of(matrix, asked);
    *first = range.first;
    *count = range.count();
    return HOCKET_OK;
  });
}

int hocket_malleable_next(hocket_malleable* job, int64_t last, int64_t* iteration) {
  return guarded([&]() -> int {
    constexpr const char* function = "hocket_malleable_next";
    if (!job || !iteration) return no_null(function, !job ? "job" : "iteration");
    if (!job->job->begun()) return wrong(function, "call hocket_malleable_begin first");
    const auto step = job->job->next(last);
    *iteration = job->job->iteration();
    return static_cast<int>(step);
  });
}

int hocket_malleable_balance(hocket_malleable* job, double busy_s) {
  return guarded([&]() -> int {
    if (!job) return no_null("hocket_malleable_balance", "job");
    if (!job->job->begun()) return wrong("hocket_malleable_balance", "call hocket_malleable_begin first");
    job->job->balance(busy_s);
    return HOCKET_OK;
  });
}

int hocket_malleable_declare_flop(hocket_malleable* job, double flop_per_iteration) {
  return guarded([&]() -> int {
    constexpr const char* function = "hocket_malleable_declare_flop";
    if (!job) return no_null(function, "job");
    if (!std::isfinite(flop_per_iteration) || flop_per_iteration < 0)
      return wrong(function,
                   std::to_string(flop_per_iteration) +
                       " floating-point operations an iteration: give a number that is finite and not below 0");
    job->job->declare_flop(flop_per_iteration);
    return HOCKET_OK;
  });
}

int hocket_malleable_free(hocket_malleable** job) {
  return guarded([&]() -> int {
    if (!job || !*job) return HOCKET_OK;
    (*job)->job->end();
    delete *job;
    *job = nullptr;
    return HOCKET_OK;
  });
}

// The functions for Fortran convert MPI handles; hocket_malleable.f90 declares them.
MPI_Fint hocket_malleable_comm_f(const hocket_malleable* job) {
  return HOCKET_PMPI(Comm_c2f)(hocket_malleable_comm(job));
}

int hocket_malleable_array_f(hocket_malleable* job, const char* name, MPI_Fint type, int64_t length, int distribution,
                             int kind, void* data) {
  return hocket_malleable_array(job, name, HOCKET_PMPI(Type_f2c)(type), length, distribution, kind, data);
}

int hocket_malleable_csr_f(hocket_malleable* job, const char* name, int64_t rows, int distribution, int kind,
                           int64_t** starts, MPI_Fint column_type, void* columns, MPI_Fint value_type, void* values,
                           int* rows_of) {
  return hocket_malleable_csr(job, name, rows, distribution, kind, starts, HOCKET_PMPI(Type_f2c)(column_type), columns,
                              HOCKET_PMPI(Type_f2c)(value_type), values, rows_of);
}
