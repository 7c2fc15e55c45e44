// The registered arrays of a malleable application: where they are, how they are shared out now, and how they move.
//
// A sparse matrix is three arrays that move together: the lengths of its rows (its starts are made of them on arrival),
// its columns and its values. Not thread-safe.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "redistribute/partition.hpp"
#include "redistribute/plan.hpp"
#include "runtime/malleable/blob.hpp"
#include "runtime/malleable/memory.hpp"
#include "runtime/malleable/redistribution.hpp"

namespace hocket::runtime {

enum class Sharing { replicated, block, weighted, nonzeros, like_rows };

class Arrays {
 public:
  struct Spec {
    std::string name;
    std::int64_t element_bytes = 0;
    std::int64_t length = 0;
    Sharing sharing = Sharing::block;
    std::size_t matrix = 0;  // of like_rows
    bool constant = false;
    void** pointer = nullptr;  // of the program, told where the data are
  };
  struct MatrixSpec {
    std::string name;
    std::int64_t rows = 0;
    Sharing sharing = Sharing::block;
    bool constant = false;
    void** starts = nullptr;
    void** columns = nullptr;
    void** values = nullptr;
    std::int64_t column_bytes = 0;
    std::int64_t value_bytes = 0;
  };

  // `rank`, `processes`: of those that compute at the start; a process that joins gives rank -1 and holds nothing.
  // False: no memory.
  bool add(const Spec& spec, int rank, int processes);
  // Gives the matrix's number, or -1: no memory.
  int add_matrix(const MatrixSpec& spec, int rank, int processes);
  bool reserve_nonzeros(std::size_t matrix, std::int64_t nonzeros);

  // What is wrong with the matrices as this process filled them; "": nothing.
  std::string wrongly_filled() const;
  // The first processes have filled their matrices: how many nonzeros each holds becomes known to all. Collective over
  // `comm`, of those that compute. False: the MPI failed.
  bool count_nonzeros(MPI_Comm comm, int rank, int processes);

  // By name; -1: there is none.
  int find(std::string_view name) const;
  int find_matrix(std::string_view name) const;
  std::size_t matrices() const { return matrices_.size(); }
  std::int64_t rows(std::size_t matrix) const { return matrices_[matrix].spec.rows; }
  redistribute::Interval range(int array, int rank) const;
  redistribute::Interval rows_of(int matrix, int rank) const;
  // Elements that `rank` holds of the first array that is shared out by weights; 0: there is none.
  std::int64_t weighted_elements(int rank) const;

  // The same in all processes that registered the same.
  std::uint64_t registry() const;
  // What a process that joins has to know of how they are shared out.
  void brief(Blob& blob) const;
  void take_briefing(Blob& blob);

  // How they will be shared out over roles.targets. Collective over `all`, the union, in which this process is `rank`.
  // False: the MPI failed.
  bool plan(MPI_Comm all, const redistribute::Roles& roles, int rank, const std::vector<double>& weights);
  // Whether every array stays as it is, for those that are sources and targets alike.
  bool all_in_place(const redistribute::Roles& roles) const;

  // Moves: in order of registration, `constant` or variable data alone. `pending` makes room and gives the transfers of
  // all of them; after they have arrived, `arrived`; then `adopt` frees the old ones and tells the program the new.
  // Where no program reads them meanwhile, `move_each` does all that array by array, so that less memory is needed.
  Result<std::vector<Transfer>> pending(bool constant);
  void arrived(bool constant);
  void adopt();
  Status move_each(bool constant, const std::function<Status(std::vector<Transfer>)>& move);

  // Bytes of all that this process sends to others, and keeps, by the plan.
  std::int64_t bytes_sent() const;
  std::int64_t bytes_kept() const;

  // This process holds nothing any more; what comes next is as for one that joins. False: no memory.
  bool forget();

  // A check value of the constant data in this process; the same as long as nobody writes into them.
  std::uint64_t constant_check() const;
  void free();

 private:
  // One array that moves: a registered one, or a part of a matrix.
  struct Part {
    std::string name;
    std::int64_t element_bytes = 0;
    std::int64_t length = 0;
    Sharing sharing = Sharing::block;
    std::size_t matrix = 0;
    enum class Of { array, lengths, columns, values } of = Of::array;
    bool constant = false;
    void** pointer = nullptr;
    Memory memory;
    Memory next;
    bool moving = false;  // `next` takes the place of `memory`
    redistribute::Partition shares;
    redistribute::Partition next_shares;
    redistribute::Plan plan;
  };
  struct Matrix {
    MatrixSpec spec;
    Memory starts;
    Memory next_starts;
    redistribute::Partition rows;
    redistribute::Partition next_rows;
    redistribute::Partition next_nonzeros;
    std::size_t first_part = 0;  // lengths, columns, values
    std::int64_t held_rows = 0;  // by this process: `starts` has one more
    std::int64_t reserved = 0;   // nonzeros for which there is room, before they are counted
  };

  redistribute::Partition next_shares_of(const Part& part, int targets, const std::vector<double>& weights) const;
  bool plan_rows(MPI_Comm all, Matrix& matrix, const redistribute::Roles& roles, int rank,
                 const std::vector<double>& weights);
  bool find_bounds(MPI_Comm all, const Matrix& matrix, int source, std::vector<std::int64_t>& rows,
                   std::vector<std::int64_t>& nonzeros, bool by_nonzeros) const;
  Status make_room(Part& part, bool in_peace, std::vector<Transfer>& transfers);
  std::span<const std::int64_t> starts_of(const Matrix& matrix) const;
  void write_lengths(Part& part);
  void read_lengths(Part& part);
  void adopt(Part& part);

  std::vector<Part> parts_;
  std::vector<Matrix> matrices_;
};

}  // namespace hocket::runtime
