// The registered arrays of a malleable application: their memory, their current distribution, and the steps by which
// they move to a new one.
//
// A sparse matrix is three arrays that move together: the lengths of its rows, from which its starts are computed on
// arrival, its columns and its values. Not thread-safe; job.hpp calls all functions from the thread that calls MPI.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "malleable/blob.hpp"
#include "malleable/memory.hpp"
#include "malleable/redistribution.hpp"
#include "redistribute/partition.hpp"
#include "redistribute/plan.hpp"

namespace hocket::runtime {

// Distribution of an array over the processes, as in malleable.h. nonzeros: rows so that each process has about as many
// nonzeros. like_rows: as the rows of a matrix.
enum class ArrayDistribution { replicated, block, weighted, nonzeros, like_rows };

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
    std::size_t matrix = 0;  // index of the matrix, for like_rows
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

  // Registers an array and allocates this process's part. `rank` and `processes` are those of the start; a process that
  // joins later passes rank -1 and holds nothing. Returns false if memory has run out.
  bool add(const Spec& spec, int rank, int processes);
  // Registers a matrix. Returns its number, or -1 if memory has run out.
  int add_matrix(const MatrixSpec& spec, int rank, int processes);
  // Allocates columns and values for `nonzeros` elements in this process. Returns false if memory has run out.
  bool reserve_nonzeros(std::size_t matrix, std::int64_t nonzeros);

  // Returns an error text if this process has filled a matrix wrongly, else "". Local.
  std::string wrongly_filled() const;
  // Makes the number of nonzeros of each process known to all, after the first processes have filled their matrices.
  // Collective over `comm`, the computing processes. Returns false if MPI failed.
  bool count_nonzeros(MPI_Comm comm, int rank, int processes);

  // Return the index of an array or matrix by its name; -1 if there is none.
  int find(std::string_view name) const;
  int find_matrix(std::string_view name) const;
  std::size_t matrices() const { return matrices_.size(); }
  std::int64_t rows(std::size_t matrix) const { return matrices_[matrix].spec.rows; }
  // Return the elements (rows) that `rank` holds now; empty for a rank that holds nothing.
  redistribute::ElementRange range(int array, int rank) const;
  redistribute::ElementRange rows_of(int matrix, int rank) const;
  // Returns the current distribution of the first array or matrix with distribution *weighted*; nullptr if there is
  // none.
  const redistribute::Partition* weighted() const;
  // Returns the bytes of all that is distributed by weights, in all processes together.
  double weighted_bytes() const;

  // Returns a hash that is equal in processes that registered the same arrays.
  std::uint64_t registry() const;
  // Write and read the current distribution of all arrays, which a new process must know.
  void brief(Blob& blob) const;
  void take_briefing(Blob& blob);

  // Computes the new distribution over roles.targets, and this rank's redistribution plans. Collective over `all`, the
  // merged communicator, in which this process is `rank`. Returns false if MPI failed.
  bool plan(MPI_Comm all, const redistribute::Roles& roles, int rank, const std::vector<double>& weights);
  // True if the new distribution of every array is the current one, and sources and destinations are the same ranks.
  bool all_in_place(const redistribute::Roles& roles) const;

  // Move the arrays in the order of registration; `constant` selects constant or variable data. pending() allocates
  // memory and returns the transfers of all of them; arrived() completes them after they have ended; adopt() frees the
  // old memory and sets the program's pointers. If the program computes nothing meanwhile, move_each() moves one array
  // after the other instead, which needs less memory; adopt() follows it too.
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
    std::string name;
    std::int64_t element_bytes = 0;
    std::int64_t length = 0;
    ArrayDistribution sharing = ArrayDistribution::block;
    std::size_t matrix = 0;
    enum class Of { array, lengths, columns, values } of = Of::array;
    bool constant = false;
    void** pointer = nullptr;
    Memory memory;                   // current data; of row lengths: only during a move
    Memory next;                     // new data, while they arrive
    bool moving = false;             // `next` will replace `memory`; else the data stay in place
    redistribute::Partition shares;  // current distribution
    redistribute::Partition next_shares;
    redistribute::RedistributionPlan plan;
  };
  struct Matrix {
    MatrixSpec spec;
    Memory starts;
    Memory next_starts;
    redistribute::Partition rows;
    redistribute::Partition next_rows;
    redistribute::Partition next_nonzeros;
    std::size_t first_part = 0;  // index of lengths; columns and values follow
    std::int64_t held_rows = 0;  // rows of this process: `starts` has one element more
    std::int64_t reserved = 0;   // nonzeros with memory, before they are counted
  };

  redistribute::Partition next_shares_of(const MovingArray& part, int targets,
                                         const std::vector<double>& weights) const;
  bool plan_rows(MPI_Comm all, Matrix& matrix, const redistribute::Roles& roles, int rank,
                 const std::vector<double>& weights);
  bool find_bounds(MPI_Comm all, const Matrix& matrix, int source, std::vector<std::int64_t>& rows,
                   std::vector<std::int64_t>& nonzeros, bool by_nonzeros) const;
  Status make_room(MovingArray& part, bool in_peace, std::vector<ArrayTransfer>& transfers);
  std::span<const std::int64_t> starts_of(const Matrix& matrix) const;
  void write_lengths(MovingArray& part);
  void read_lengths(MovingArray& part);
  void adopt(MovingArray& part);

  std::vector<MovingArray> parts_;
  std::vector<Matrix> matrices_;
};

}  // namespace hocket::runtime
