// The registered arrays of a malleable application: their memory, their current distribution, and the steps by which
// they move to a new one (arrays_move.cpp).
//
// A sparse matrix is three arrays that move together: the lengths of its rows, from which its starts are computed on
// arrival, its columns and its values. Not thread-safe; job.hpp calls all functions from the thread that calls MPI.
//
// Arrays may come, change their length and go after the start, in all computing processes alike. Each has an id that is
// the same in all processes. A process that joins, or that slept, learns of the changes by the briefing: what it has
// not registered itself arrives without a pointer, until the program claims it by the same registration.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "hocket/malleable.h"
#include "malleable/blob.hpp"
#include "malleable/memory.hpp"
#include "malleable/redistribution.hpp"
#include "redistribute/order.hpp"
#include "redistribute/plan.hpp"

namespace hocket::runtime {

// Distribution of an array over the processes, as in malleable.h. nonzeros: rows so that each process has about
// as many nonzeros. like_rows: as the rows of a matrix. listed: as a function of the program says.
enum class ArrayDistribution { replicated, block, weighted, nonzeros, like_rows, cyclic, rectangles, listed };

// The size of an element of the lengths of a matrix's rows.
inline constexpr auto length_bytes = static_cast<std::int64_t>(sizeof(std::int64_t));

// A distribution that the program has registered by a function of its own; arrays name it by its number.
struct RegisteredDistribution {
  ArrayDistribution sharing = ArrayDistribution::block;
  std::int64_t matrix = 0;  // like_rows: index of the matrix
  std::int64_t block = 0;   // cyclic: elements
  std::int64_t rows = 0;    // rectangles: the matrix
  std::int64_t columns = 0;
  hocket_malleable_owner owner = nullptr;  // listed
  void* context = nullptr;
  bool operator==(const RegisteredDistribution&) const = default;
};

// All arrays and matrices of one process. Parts are numbered in the order of registration, which must be the same in
// all processes.
class Arrays {
 public:
  // Registration of an array.
  struct Spec {
    std::string name;
    std::int64_t element_bytes = 0;
    std::int64_t length = 0;
    ArrayDistribution sharing = ArrayDistribution::block;
    std::size_t registered = 0;  // number of the registered distribution, if `sharing` is one
    bool constant = false;
    void** pointer = nullptr;  // a pointer variable of the program, which receives the address of the data
  };
  // Registration of a sparse matrix. `starts`, `columns` and `values` are pointer variables of the program.
  struct MatrixSpec {
    std::string name;
    std::int64_t rows = 0;
    ArrayDistribution sharing = ArrayDistribution::block;
    bool constant = false;
    void** starts = nullptr;
    void** columns = nullptr;
    void** values = nullptr;
    std::int64_t column_bytes = 0;
    std::int64_t value_bytes = 0;
  };

  // Registers a distribution. Returns its number, which arrays and add_matrix()'s callers use.
  int add_distribution(const RegisteredDistribution& distribution);
  std::span<const RegisteredDistribution> distributions() const { return registered_; }
  // Arrays and matrices registered from now on get their memory from this allocator.
  void allocate_by(Allocator allocator) { allocator_ = allocator; }

  // Registers an array and allocates this process's part. `rank` and `weights`, the speeds of all processes, are those
  // of now; a process that joins later passes rank -1 and holds nothing. Returns false if memory has run out; then
  // nothing has changed.
  bool add(const Spec& spec, int rank, const std::vector<double>& weights);
  // Registers a matrix, and a distribution for arrays that move with its rows. Returns the number of that distribution,
  // or -1 if memory has run out.
  int add_matrix(const MatrixSpec& spec, int rank, int processes);
  // Allocates columns and values for `nonzeros` elements in this process. Returns false if memory has run out.
  bool reserve_nonzeros(std::size_t matrix, std::int64_t nonzeros);

  // Returns an error text if this process has filled a matrix wrongly, else "". Local.
  std::string wrongly_filled() const;
  // Makes the number of nonzeros of each process known to all, after the first processes have filled their matrices.
  // Collective over `comm`, the computing processes. Returns false if MPI failed.
  bool count_nonzeros(MPI_Comm comm, int rank, int processes);

  // Ends the registrations that every process makes before it begins; registry() is about these.
  void begin();
  void resume_registration() { registry_.reset(); }
  // True if an array of this name arrived without a pointer. claim() sets the program's, or returns false if the array
  // was registered differently elsewhere, or if memory has run out.
  bool is_unclaimed(std::string_view name) const;
  bool claim(const Spec& spec, int rank);
  // Returns the registration of an array with its present length.
  Spec spec(int array) const;
  // Frees an array, and sets the program's pointer to NULL.
  void drop(int array);
  // Return why the length of this array cannot change; "" if it can.
  std::string fixed_length(int array) const;
  // Prepare and complete a change of length over the same processes: begin_length() returns the transfer, or an error
  // if memory has run out; then, or if give_up is true, end_length() leaves all as it was.
  Result<ArrayTransfer> begin_length(int array, std::int64_t length, int rank, const std::vector<double>& weights);
  void end_length(int array, std::int64_t length, bool give_up);

  // Return the index of an array or matrix by its name; -1 if there is none.
  int find(std::string_view name) const;
  int find_matrix(std::string_view name) const;
  std::int64_t rows(std::size_t matrix) const { return matrices_[matrix].spec.rows; }
  // Return the elements (rows) that `rank` holds now; empty for a rank that holds nothing.
  redistribute::Extents extents(int array, int rank) const;
  redistribute::ElementRange range(int array, int rank) const;  // of an array with has_ranges()
  redistribute::ElementRange rows_of(int matrix, int rank) const;
  // True if each process holds one range of the array by the kind of its distribution.
  bool has_ranges(int array) const;
  // The part that a rank holds of an array, or of one of a matrix's three.
  struct HeldArray {
    std::string_view name;
    std::int64_t bytes = 0;
    bool constant = false;
    bool replicated = false;
  };
  std::vector<HeldArray> held_by(int rank) const;
  // Returns the rectangle that `rank` holds of an array that is distributed by rectangles; nothing for another one.
  std::optional<redistribute::Rectangle> rectangle(int array, int rank) const;
  // Returns the current distribution of the first array or matrix with distribution *weighted*; nullptr if there is
  // none.
  const redistribute::Partition* weighted() const;
  // Returns the bytes of all that is distributed by weights, in all processes together.
  double weighted_bytes() const;

  // Returns a hash that is equal in processes that registered the same before they began.
  std::uint64_t registry() const;
  // Write and read all arrays with their current distribution, which a new process must know. brief() begins to count
  // changes anew: changed() is true if arrays have come, gone or got another length since.
  void brief(Blob& blob);
  void take_briefing(Blob& blob);
  bool changed() const { return changed_; }

  // Return an error if a function of the program lists wrong owners for this number of processes, of all arrays or of
  // one to be registered. Local.
  Status check_owners(int processes) const;
  Status check_owners(const Spec& spec, int processes) const;
  // Computes the new distribution of all arrays that have none yet, over as many parts as weights. Collective over
  // `all`, the merged communicator, in which this process is `rank` and `sources` held the data. Returns false if MPI
  // failed.
  bool share_out(MPI_Comm all, const std::vector<int>& sources, int rank, const std::vector<double>& weights);
  // Returns what each source holds of each part of the new distribution.
  redistribute::Overlap overlap(int sources, int parts) const;
  // Computes this rank's redistribution plans of all arrays that have none yet, after share_out().
  void plan(const redistribute::Roles& roles, int rank);
  // Forgets the new distribution and the plans.
  void forget_plans();
  // True if the new distribution of every array is the current one, and sources and destinations are the same ranks.
  bool all_in_place(const redistribute::Roles& roles) const;

  // Move the arrays in the order of registration; `constant` selects constant or variable data. pending() allocates
  // memory and returns the transfers of all of them; arrived() completes them after they have ended; adopt() frees the
  // old memory and sets the program's pointers. If the program computes nothing meanwhile, move_each() moves one array
  // after the other instead, which needs less memory; adopt() follows it too. Arrays that have arrived already are left
  // out.
  Result<std::vector<ArrayTransfer>> pending(bool constant);
  void arrived(bool constant);
  void adopt();
  Status move_each(bool constant, const std::function<Status(std::vector<ArrayTransfer>)>& move);

  // Return the bytes that this process sends to others, and those that it keeps, by the current plan.
  std::int64_t bytes_sent() const;
  std::int64_t bytes_kept() const;

  // Frees all data of this process; afterwards it is like one that joins. Returns false if memory has run out.
  bool forget();

  // Returns a hash of this process's constant data, which changes if the program writes into them.
  std::uint64_t constant_check() const;
  // Frees everything, registrations included.
  void free();

 private:
  // One array that moves: a registered one, or one of a matrix's three.
  struct MovingArray {
    std::int64_t id = 0;
    std::int64_t version = 0;  // changes of its length
    std::string name;
    std::int64_t element_bytes = 0;
    std::int64_t length = 0;
    ArrayDistribution sharing = ArrayDistribution::block;
    std::size_t registered = 0;  // number of the registered distribution
    std::size_t matrix = 0;
    enum class Of { array, lengths, columns, values } of = Of::array;
    bool constant = false;
    void** pointer = nullptr;  // nullptr: not claimed; never set for row lengths
    Allocator allocator;
    Memory memory;                             // current data; of row lengths: only during a move
    Memory next;                               // new data, while they arrive
    bool planned = false;                      // next_shares and plan are valid
    bool moving = false;                       // `next` will replace `memory`; else the data stay in place
    bool arrived = false;                      // the new data are complete
    redistribute::ElementDistribution shares;  // current distribution
    redistribute::ElementDistribution next_shares;
    redistribute::RedistributionPlan plan;

    void show() {
      if (pointer) *pointer = memory.data();
    }
  };
  struct Matrix {
    MatrixSpec spec;
    Allocator allocator;
    Memory starts;
    Memory next_starts;
    redistribute::Partition rows;
    redistribute::Partition next_rows;
    redistribute::Partition next_nonzeros;
    std::size_t first_part = 0;  // index of lengths; columns and values follow
    std::int64_t held_rows = 0;  // rows of this process: `starts` has one element more
    std::int64_t reserved = 0;   // nonzeros with memory, before they are counted
  };

  redistribute::ElementDistribution shares_of(const MovingArray& part, std::int64_t length,
                                              const std::vector<double>& weights) const;
  static Result<redistribute::ElementDistribution> listed(const RegisteredDistribution& distribution,
                                                          std::int64_t length, int parts);
  redistribute::ElementDistribution next_shares_of(const MovingArray& part, const std::vector<double>& weights) const;
  void take_distributions(Blob& blob);
  void take_part(MovingArray& part, std::int64_t id, Blob& blob);
  static void show_starts(Matrix& matrix);
  void index_matrices();
  bool share_out_rows(MPI_Comm all, Matrix& matrix, int source, const std::vector<double>& weights);
  bool find_bounds(MPI_Comm all, const Matrix& matrix, int source, std::vector<std::int64_t>& rows,
                   std::vector<std::int64_t>& nonzeros, bool by_nonzeros) const;
  Status make_room(MovingArray& part, bool in_peace, std::vector<ArrayTransfer>& transfers);
  std::span<const std::int64_t> starts_of(const Matrix& matrix) const;
  void write_lengths(MovingArray& part);
  void read_lengths(MovingArray& part);
  void adopt(MovingArray& part);

  std::vector<MovingArray> parts_;
  std::vector<Matrix> matrices_;
  std::vector<RegisteredDistribution> registered_;
  Allocator allocator_;
  std::int64_t next_id_ = 0;
  std::optional<std::uint64_t> registry_;  // of the registrations before begin()
  bool changed_ = false;
};

}  // namespace hocket::runtime
