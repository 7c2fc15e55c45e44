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
#include "malleable/job_log.hpp"
#include "mpi_shim/calls.hpp"
#include "process/call_log.hpp"
#include "process/guarded.hpp"

using hocket::runtime::ArrayDistribution;
using hocket::runtime::Arrays;
using hocket::runtime::guarded;
using hocket::runtime::MalleableJob;
namespace call_log = hocket::runtime::call_log;

struct hocket_malleable {
  std::unique_ptr<MalleableJob> job;
  hocket::runtime::JobLog log;
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
  if (job->job->has_left()) return wrong(function, shown + ": this process has left");
  const Arrays& arrays = job->job->arrays();
  if ((arrays.find(name) >= 0 && !arrays.is_unclaimed(name)) || arrays.find_matrix(name) >= 0)
    return wrong(function, shown + " is registered already: give each array its own name");
  if (length < 0 || length > longest)
    return wrong(function, shown + " has length " + std::to_string(length) + ": give 0 to " + std::to_string(longest));
  if (kind != HOCKET_MALLEABLE_CONSTANT && kind != HOCKET_MALLEABLE_VARIABLE)
    return wrong(function, shown + " has kind " + std::to_string(kind) +
                               ": give HOCKET_MALLEABLE_CONSTANT or HOCKET_MALLEABLE_VARIABLE");
  return HOCKET_OK;
}

// Sets the distribution of an array from the number that the program gave. Returns false if there is no such number.
bool take_distribution(const Arrays& arrays, int distribution, Arrays::Spec& spec) {
  switch (distribution) {
    case HOCKET_MALLEABLE_REPLICATED: spec.sharing = ArrayDistribution::replicated; return true;
    case HOCKET_MALLEABLE_BLOCK: spec.sharing = ArrayDistribution::block; return true;
    case HOCKET_MALLEABLE_WEIGHTED: spec.sharing = ArrayDistribution::weighted; return true;
    default: break;
  }
  const auto registered = arrays.distributions();
  if (distribution < 0 || static_cast<std::size_t>(distribution) >= registered.size()) return false;
  spec.registered = static_cast<std::size_t>(distribution);
  spec.sharing = registered[spec.registered].sharing;
  return true;
}

// Returns an error text if an array of this length cannot have its distribution, else "".
std::string misfit(const Arrays& arrays, const Arrays::Spec& spec) {
  if (spec.sharing != ArrayDistribution::like_rows && spec.sharing != ArrayDistribution::rectangles) return {};
  const auto& registered = arrays.distributions()[spec.registered];
  const std::string has = quoted(spec.name.c_str()) + " has " + std::to_string(spec.length) + " elements, its ";
  if (spec.sharing == ArrayDistribution::like_rows) {
    const std::int64_t rows = arrays.rows(static_cast<std::size_t>(registered.matrix));
    return rows == spec.length ? "" : has + "matrix has " + std::to_string(rows) + " rows: they must be equal";
  }
  return registered.rows * registered.columns == spec.length
             ? ""
             : has + "distribution has " + std::to_string(registered.rows) + " rows of " +
                   std::to_string(registered.columns) + ": it must have as many";
}

// Returns the code for a change of the arrays, and keeps its text.
int status_of(const hocket::runtime::ArrayChange& change, const char* function, const char* name) {
  using hocket::runtime::ArrayChange;
  if (change.outcome == ArrayChange::done) return HOCKET_OK;
  return change.outcome == ArrayChange::no_memory ? no_memory(function, name)
                                                  : wrong(function, quoted(name) + ": " + change.what);
}

int no_array(const char* function, const char* name) {
  return wrong(function, "no array or matrix is registered as '" + std::string(name) + "'");
}

int create(const char* function, MPI_Comm comm, hocket_malleable** job) {
  if (!job) return no_null(function, "job");
  *job = nullptr;
  int initialised = 0;
  int finalised = 0;
  HOCKET_PMPI(Initialized)(&initialised);
  HOCKET_PMPI(Finalized)(&finalised);
  if (!initialised || finalised)
    return wrong(function, "MPI is not initialised: call it after MPI_Init and before MPI_Finalize");
  if (MalleableJob::is_joining()) comm = hocket::runtime::mpi::world();
  if (comm == hocket::runtime::mpi::no_comm() || hocket::runtime::mpi::is_inter(comm))
    return wrong(function, "comm is MPI_COMM_NULL or an intercommunicator: give an intracommunicator");
  auto made = MalleableJob::create(comm);
  if (!made) return wrong(function, "the communicator could not be duplicated");
  *job = new hocket_malleable{std::move(made), {}};
  return HOCKET_OK;
}

hocket_malleable_times times_of(const hocket::runtime::LastResize& last) {
  using hocket::to_s;
  const hocket::event::Reconfiguration& record = last.record;
  hocket_malleable_times times{};
  times.number = last.number;
  times.sources = record.sources;
  times.destinations = record.targets;
  times.iteration = record.iteration;
  times.started = record.started;
  times.woken = record.woken;
  times.bytes_moved = record.bytes_moved;
  times.bytes_kept = record.bytes_kept;
  times.wait_s = to_s(record.wait);
  times.spawn_s = to_s(record.spawning);
  times.spawn_stopped_s = to_s(record.spawning_stopped);
  times.constant_s = to_s(record.constant);
  times.constant_stopped_s = to_s(record.constant_stopped);
  times.variable_s = to_s(record.variable);
  times.resume_s = to_s(record.resuming);
  times.stopped_s = to_s(record.stopped);
  times.total_s = to_s(last.total);
  return times;
}

}  // namespace

int hocket_malleable_create(hocket_malleable** job) {
  return guarded([&] { return create("hocket_malleable_create", hocket::runtime::mpi::world(), job); });
}

int hocket_malleable_create_on(MPI_Comm comm, hocket_malleable** job) {
  return guarded([&] { return create("hocket_malleable_create_on", comm, job); });
}

// Functions that return no error code accept NULL and return a neutral value.
int hocket_malleable_joined(const hocket_malleable* job) { return job && job->job->joined() ? 1 : 0; }

int hocket_malleable_array(hocket_malleable* job, const char* name, MPI_Datatype type, int64_t length, int distribution,
                           int kind, void* data) {
  return guarded([&]() -> int {
    constexpr const char* function = "hocket_malleable_array";
    if (const int status = check(function, job, name, length, kind); status != HOCKET_OK) return status;
    if (!data) return no_null(function, "data");
    const Arrays& arrays = job->job->arrays();
    Arrays::Spec spec{
        name, bytes_of(type), length, {}, 0, kind == HOCKET_MALLEABLE_CONSTANT, static_cast<void**>(data)};
    const std::string shown = quoted(name);
    if (spec.element_bytes <= 0 || spec.element_bytes > largest_element)
      return wrong(function,
                   shown + " is of a type with gaps, without size, or of more than 1 MiB: use a smaller element");
    if (!take_distribution(arrays, distribution, spec))
      return wrong(function, shown + " has distribution " + std::to_string(distribution) +
                                 ": give HOCKET_MALLEABLE_REPLICATED, _BLOCK, _WEIGHTED, or the number of a "
                                 "distribution that was registered before");
    if (const std::string text = misfit(arrays, spec); !text.empty()) return wrong(function, text);
    return status_of(job->job->add_array(spec), function, name);
  });
}

int hocket_malleable_csr(hocket_malleable* job, const char* name, int64_t rows, int distribution, int kind,
                         int64_t** starts, MPI_Datatype column_type, void* columns, MPI_Datatype value_type,
                         void* values, int* rows_of) {
  return guarded([&]() -> int {
    constexpr const char* function = "hocket_malleable_csr";
    if (const int status = check(function, job, name, rows, kind); status != HOCKET_OK) return status;
    if (job->job->begun())
      return wrong(function, quoted(name) + " comes after hocket_malleable_begin: register matrices before");
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

// ---- distributions, memory and changes of arrays -----------------------------------------------------------------

namespace {

int add_distribution(hocket_malleable* job, const char* function, const hocket::runtime::RegisteredDistribution& made,
                     int* distribution) {
  if (!distribution) return no_null(function, "distribution");
  if (job->job->has_left()) return wrong(function, "this process has left");
  *distribution = job->job->arrays().add_distribution(made);
  return HOCKET_OK;
}

// Returns the index of an array that the program may change now, or an error code.
int changeable(const char* function, const hocket_malleable* job, const char* name) {
  if (!job) return no_null(function, "job");
  if (!name) return no_null(function, "name");
  if (!job->job->begun()) return wrong(function, quoted(name) + ": call hocket_malleable_begin first");
  if (job->job->has_left()) return wrong(function, quoted(name) + ": this process has left");
  const int array = job->job->arrays().find(name);
  return array >= 0 ? array : wrong(function, "no array is registered as " + quoted(name));
}

}  // namespace

int hocket_malleable_cyclic(hocket_malleable* job, int64_t block, int* distribution) {
  return guarded([&]() -> int {
    constexpr const char* function = "hocket_malleable_cyclic";
    if (!job) return no_null(function, "job");
    if (block < 1 || block > longest)
      return wrong(function, "blocks of " + std::to_string(block) + " elements: give 1 to " + std::to_string(longest));
    hocket::runtime::RegisteredDistribution made;
    made.sharing = ArrayDistribution::cyclic;
    made.block = block;
    return add_distribution(job, function, made, distribution);
  });
}

int hocket_malleable_rectangles(hocket_malleable* job, int64_t rows, int64_t columns, int* distribution) {
  return guarded([&]() -> int {
    constexpr const char* function = "hocket_malleable_rectangles";
    if (!job) return no_null(function, "job");
    if (rows < 0 || columns < 0 || (columns > 0 && rows > longest / columns))
      return wrong(function, std::to_string(rows) + " rows of " + std::to_string(columns) + ": give 0 to " +
                                 std::to_string(longest) + " elements");
    hocket::runtime::RegisteredDistribution made;
    made.sharing = ArrayDistribution::rectangles;
    made.rows = rows;
    made.columns = columns;
    return add_distribution(job, function, made, distribution);
  });
}

int hocket_malleable_owners(hocket_malleable* job, hocket_malleable_owner owner, void* context, int* distribution) {
  return guarded([&]() -> int {
    constexpr const char* function = "hocket_malleable_owners";
    if (!job) return no_null(function, "job");
    if (!owner) return no_null(function, "owner");
    if (job->job->begun())
      return wrong(function,
                   "it comes after hocket_malleable_begin: a process that joins must know the function before");
    hocket::runtime::RegisteredDistribution made;
    made.sharing = ArrayDistribution::listed;
    made.owner = owner;
    made.context = context;
    return add_distribution(job, function, made, distribution);
  });
}

int hocket_malleable_memory(hocket_malleable* job, hocket_malleable_allocator allocator, void* context) {
  return guarded([&]() -> int {
    if (!job) return no_null("hocket_malleable_memory", "job");
    job->job->arrays().allocate_by({allocator, context});
    return HOCKET_OK;
  });
}

int hocket_malleable_length(hocket_malleable* job, const char* name, int64_t length) {
  return guarded([&]() -> int {
    constexpr const char* function = "hocket_malleable_length";
    const int array = changeable(function, job, name);
    if (array < 0) return array;
    if (length < 0 || length > longest)
      return wrong(function,
                   quoted(name) + ": length " + std::to_string(length) + ": give 0 to " + std::to_string(longest));
    if (const std::string fixed = job->job->arrays().fixed_length(array); !fixed.empty())
      return wrong(function, quoted(name) + " keeps its length: " + fixed);
    return status_of(job->job->set_length(array, length), function, name);
  });
}

int hocket_malleable_drop(hocket_malleable* job, const char* name) {
  return guarded([&]() -> int {
    constexpr const char* function = "hocket_malleable_drop";
    const int array = changeable(function, job, name);
    return array < 0 ? array : status_of(job->job->drop_array(array), function, name);
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
    const auto began = call_log::moment();
    const auto begun = job->job->begin(first);
    if (begun) job->log.control_point("hocket_malleable_begin", began, *job->job);
    return begun ? int{HOCKET_OK} : wrong(function, begun.error().text);
  });
}

int hocket_malleable_left(const hocket_malleable* job) { return job && job->job->has_left() ? 1 : 0; }

MPI_Comm hocket_malleable_comm(const hocket_malleable* job) {
  return job ? job->job->comm() : hocket::runtime::mpi::no_comm();
}

namespace {

// A registered array or matrix, and the rank that the program asks about; a negative rank means this process.
struct Asked {
  int array = -1;   // -1: a matrix
  int matrix = -1;  // -1: an array
  int rank = 0;
};

int find_asked(const char* function, const hocket_malleable* job, const char* name, int rank, Asked& asked) {
  if (!job) return no_null(function, "job");
  if (!name) return no_null(function, "name");
  const MalleableJob& of = *job->job;
  asked = {of.arrays().find(name), of.arrays().find_matrix(name), rank < 0 ? of.rank() : rank};
  if (asked.array < 0 && asked.matrix < 0) return no_array(function, name);
  // A process that joins does not know the number of processes before hocket_malleable_begin, so no rank is refused
  // then.
  if (rank >= of.size() && !(of.joined() && !of.begun()))
    return wrong(function, "rank " + std::to_string(rank) + " does not exist: there are " + std::to_string(of.size()) +
                               " processes");
  return HOCKET_OK;
}

}  // namespace

int hocket_malleable_range(const hocket_malleable* job, const char* name, int rank, int64_t* first, int64_t* count) {
  return guarded([&]() -> int {
    constexpr const char* function = "hocket_malleable_range";
    Asked asked;
    if (const int status = find_asked(function, job, name, rank, asked); status != HOCKET_OK) return status;
    if (!first || !count) return no_null(function, !first ? "first" : "count");
    const Arrays& arrays = job->job->arrays();
    if (asked.array >= 0 && !arrays.has_ranges(asked.array))
      return wrong(function, quoted(name) + " may have several extents: use hocket_malleable_extents");
    const auto range =
        asked.array >= 0 ? arrays.range(asked.array, asked.rank) : arrays.rows_of(asked.matrix, asked.rank);
    *first = range.first;
    *count = range.count();
    return HOCKET_OK;
  });
}

int hocket_malleable_extents(const hocket_malleable* job, const char* name, int rank, int64_t capacity,
                             hocket_malleable_extent* extents, int64_t* number, int64_t* elements) {
  return guarded([&]() -> int {
    constexpr const char* function = "hocket_malleable_extents";
    Asked asked;
    if (const int status = find_asked(function, job, name, rank, asked); status != HOCKET_OK) return status;
    if (!extents && capacity > 0) return no_null(function, "extents");
    const Arrays& arrays = job->job->arrays();
    hocket::redistribute::Extents held;
    if (asked.array >= 0)
      held = arrays.extents(asked.array, asked.rank);
    else if (const auto rows = arrays.rows_of(asked.matrix, asked.rank); rows.count() > 0)
      held = {rows};
    for (std::size_t i = 0; i < held.size() && static_cast<std::int64_t>(i) < capacity; ++i)
      extents[i] = {held[i].first, held[i].count()};
    if (number) *number = static_cast<std::int64_t>(held.size());
    if (elements) *elements = hocket::redistribute::count(held);
    return HOCKET_OK;
  });
}

int hocket_malleable_rectangle(const hocket_malleable* job, const char* name, int rank, hocket_malleable_extent* rows,
                               hocket_malleable_extent* columns) {
  return guarded([&]() -> int {
    constexpr const char* function = "hocket_malleable_rectangle";
    Asked asked;
    if (const int status = find_asked(function, job, name, rank, asked); status != HOCKET_OK) return status;
    if (!rows || !columns) return no_null(function, !rows ? "rows" : "columns");
    const auto held = asked.array >= 0 ? job->job->arrays().rectangle(asked.array, asked.rank) : std::nullopt;
    if (!held) return wrong(function, quoted(name) + " is not distributed by hocket_malleable_rectangles");
    *rows = {held->rows.first, held->rows.count()};
    *columns = {held->columns.first, held->columns.count()};
    return HOCKET_OK;
  });
}

int hocket_malleable_next(hocket_malleable* job, int64_t last, int64_t* iteration) {
  return guarded([&]() -> int {
    constexpr const char* function = "hocket_malleable_next";
    if (!job || !iteration) return no_null(function, !job ? "job" : "iteration");
    if (!job->job->begun()) return wrong(function, "call hocket_malleable_begin first");
    const auto began = call_log::moment();
    const auto step = job->job->next(last);
    *iteration = job->job->iteration();
    job->log.control_point("hocket_malleable_next", began, *job->job);
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

int hocket_malleable_request(hocket_malleable* job, int64_t processes, const char* methods) {
  return guarded([&]() -> int {
    constexpr const char* function = "hocket_malleable_request";
    if (!job) return no_null(function, "job");
    MalleableJob& of = *job->job;
    if (!of.begun() || of.has_left())
      return wrong(function, "call it after hocket_malleable_begin, in a process that computes");
    if (processes < 1) return wrong(function, std::to_string(processes) + " processes: give at least one");
    const std::string names = methods ? methods : "";
    if (const auto known = hocket::runtime::parse_methods(names, of.methods()); !known)
      return wrong(function, known.error().text);
    of.request(processes, names);
    return HOCKET_OK;
  });
}

int hocket_malleable_wait(hocket_malleable* job, double limit_s) {
  return guarded([&]() -> int {
    constexpr const char* function = "hocket_malleable_wait";
    constexpr double longest_s = 1e8;
    if (!job) return no_null(function, "job");
    if (!job->job->begun()) return wrong(function, "call hocket_malleable_begin first");
    if (!(limit_s > 0))
      return wrong(function, "limit_s is " + std::to_string(limit_s) + ": give a number of seconds above 0");
    job->job->wait(hocket::from_s(std::min(limit_s, longest_s)));
    return HOCKET_OK;
  });
}

int hocket_malleable_last_times(const hocket_malleable* job, hocket_malleable_times* times) {
  return guarded([&]() -> int {
    constexpr const char* function = "hocket_malleable_last_times";
    if (!job || !times) return no_null(function, !job ? "job" : "times");
    *times = times_of(job->job->last_resize());
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
int hocket_malleable_create_on_f(MPI_Fint comm, hocket_malleable** job) {
  return hocket_malleable_create_on(HOCKET_PMPI(Comm_f2c)(comm), job);
}

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
