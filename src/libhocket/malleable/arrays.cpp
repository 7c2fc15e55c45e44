#include "malleable/arrays.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "mpi_shim/calls.hpp"

namespace hocket::runtime {
namespace {

using redistribute::ElementRange;
using redistribute::Partition;
using redistribute::Roles;

constexpr auto length_bytes = static_cast<std::int64_t>(sizeof(std::int64_t));

// Returns the position of `rank` in `ranks`, or -1.
int index_of(const std::vector<int>& ranks, int rank) {
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
}

// Returns the part of `rank`; empty for a rank that holds none, such as -1.
ElementRange part_of(const Partition& shares, int rank) {
  return rank >= 0 && rank < shares.parts() ? shares.part(rank) : ElementRange{};
}

// Returns an FNV-1a hash computed by words; it detects accidents, not attacks.
std::uint64_t hash(std::uint64_t seed, std::span<const std::byte> bytes) {
  constexpr std::uint64_t prime = 1099511628211ULL;
  std::uint64_t value = seed ^ 14695981039346656037ULL;
  std::size_t at = 0;
  for (; at + sizeof(std::uint64_t) <= bytes.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    value = (value ^ word) * prime;
    value ^= value >> 29;
  }
  for (; at < bytes.size(); ++at) value = (value ^ static_cast<std::uint64_t>(bytes[at])) * prime;
  return value;
}

std::uint64_t hash(std::uint64_t seed, std::string_view text) { return hash(seed, std::as_bytes(std::span(text))); }

}  // namespace

// ---- registration ------------------------------------------------------------------------------------------------

bool Arrays::add(const Spec& spec, int rank, int processes) {
  MovingArray part;
  part.name = spec.name;
  part.element_bytes = spec.element_bytes;
  part.length = spec.length;
  part.sharing = spec.sharing;
  part.matrix = spec.matrix;
  part.constant = spec.constant;
  part.pointer = spec.pointer;
  part.shares = spec.sharing == ArrayDistribution::like_rows ? matrices_[spec.matrix].rows
                                                             : Partition::block(spec.length, std::max(1, processes));
  // A process that joins later gets its data with the first redistribution.
  const std::int64_t held = rank < 0                                        ? 0
                            : spec.sharing == ArrayDistribution::replicated ? spec.length
                                                                            : part_of(part.shares, rank).count();
  part.memory = Memory::allocate(held * spec.element_bytes);
  if (!part.memory.data()) return false;
  *part.pointer = part.memory.data();
  parts_.push_back(std::move(part));
  return true;
}

int Arrays::add_matrix(const MatrixSpec& spec, int rank, int processes) {
  Matrix matrix;
  matrix.spec = spec;
  matrix.rows = Partition::block(spec.rows, std::max(1, processes));
  matrix.held_rows = part_of(matrix.rows, rank).count();
  matrix.starts = Memory::allocate((matrix.held_rows + 1) * length_bytes);
  if (!matrix.starts.data()) return -1;
  *spec.starts = matrix.starts.data();
  // The three parts follow each other, and first_part names the first.
  matrix.first_part = parts_.size();
  const auto add_part = [&](MovingArray::Of of, std::int64_t element_bytes, void** pointer) {
    MovingArray part;
    part.name = spec.name;
    part.element_bytes = element_bytes;
    part.sharing = spec.sharing;
    part.matrix = matrices_.size();
    part.of = of;
    part.constant = spec.constant;
    part.pointer = pointer;
    if (of == MovingArray::Of::lengths) {
      part.length = spec.rows;
      part.shares = matrix.rows;
    } else {
      part.memory = Memory::allocate(0);
      *pointer = part.memory.data();
    }
    parts_.push_back(std::move(part));
  };
  add_part(MovingArray::Of::lengths, length_bytes, nullptr);
  add_part(MovingArray::Of::columns, spec.column_bytes, spec.columns);
  add_part(MovingArray::Of::values, spec.value_bytes, spec.values);
  matrices_.push_back(std::move(matrix));
  return static_cast<int>(matrices_.size()) - 1;
}

bool Arrays::reserve_nonzeros(std::size_t matrix, std::int64_t nonzeros) {
  Matrix& of = matrices_[matrix];
  // Columns and values follow the row lengths.
  for (const std::size_t index : {of.first_part + 1, of.first_part + 2}) {
    MovingArray& part = parts_[index];
    Memory room = Memory::allocate(nonzeros * part.element_bytes);
    if (!room.data()) return false;
    part.memory = std::move(room);
    *part.pointer = part.memory.data();
  }
  of.reserved = nonzeros;
  return true;
}

// Returns the starts of this process's rows, and their end.
std::span<const std::int64_t> Arrays::starts_of(const Matrix& matrix) const {
  return {reinterpret_cast<const std::int64_t*>(matrix.starts.data()), static_cast<std::size_t>(matrix.held_rows) + 1};
}

std::string Arrays::wrongly_filled() const {
  for (const Matrix& matrix : matrices_) {
    const auto starts = starts_of(matrix);
    const std::string shown = "the starts of '" + matrix.spec.name + "' ";
    if (starts.front() != 0) return shown + "begin with " + std::to_string(starts.front()) + ": they must begin with 0";
    const auto falls = std::is_sorted_until(starts.begin(), starts.end());
    if (falls != starts.end()) return shown + "fall at local row " + std::to_string(falls - starts.begin() - 1);
    if (starts.back() > matrix.reserved)
      return shown + "end with " + std::to_string(starts.back()) + ", but hocket_malleable_csr_reserve made room for " +
             std::to_string(matrix.reserved) + " nonzeros";
  }
  return {};
}

bool Arrays::count_nonzeros(MPI_Comm comm, int rank, int processes) {
  for (Matrix& matrix : matrices_) {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(processes));
    // Each rank sets its own element only, so the maximum over all ranks gathers them.
    counts[static_cast<std::size_t>(rank)] = starts_of(matrix).back();
    if (!mpi::largest(comm, counts)) return false;
    std::vector<std::int64_t> bounds{0};
    for (const std::int64_t count : counts) bounds.push_back(bounds.back() + count);
    for (const std::size_t index : {matrix.first_part + 1, matrix.first_part + 2}) {
      parts_[index].shares = Partition(bounds);
      parts_[index].length = bounds.back();
    }
  }
  return true;
}

// ---- what is asked about them ------------------------------------------------------------------------------------

int Arrays::find(std::string_view name) const {
  for (std::size_t i = 0; i < parts_.size(); ++i)
    if (parts_[i].of == MovingArray::Of::array && parts_[i].name == name) return static_cast<int>(i);
  return -1;
}

int Arrays::find_matrix(std::string_view name) const {
  for (std::size_t i = 0; i < matrices_.size(); ++i)
    if (matrices_[i].spec.name == name) return static_cast<int>(i);
  return -1;
}

ElementRange Arrays::range(int array, int rank) const {
  const MovingArray& part = parts_[static_cast<std::size_t>(array)];
  return part.sharing == ArrayDistribution::replicated ? ElementRange{0, part.length} : part_of(part.shares, rank);
}

ElementRange Arrays::rows_of(int matrix, int rank) const {
  return part_of(matrices_[static_cast<std::size_t>(matrix)].rows, rank);
}

const Partition* Arrays::weighted() const {
  for (const MovingArray& part : parts_)
    if (part.sharing == ArrayDistribution::weighted) return &part.shares;
  return nullptr;
}

double Arrays::weighted_bytes() const {
  double bytes = 0;
  for (const MovingArray& part : parts_) {
    const bool follows = part.sharing == ArrayDistribution::like_rows &&
                         matrices_[part.matrix].spec.sharing == ArrayDistribution::weighted;
    if (follows || part.sharing == ArrayDistribution::weighted)
      bytes += static_cast<double>(part.length) * static_cast<double>(part.element_bytes);
  }
  return bytes;
}

std::uint64_t Arrays::registry() const {
  std::uint64_t value = parts_.size();
  for (const MovingArray& part : parts_) {
    value = hash(value, part.name);
    // The number of nonzeros is unknown at registration, so it is left out.
    const bool known = part.of == MovingArray::Of::array || part.of == MovingArray::Of::lengths;
    const std::array<std::int64_t, 5> numbers{part.element_bytes, known ? part.length : 0,
                                              static_cast<std::int64_t>(part.sharing), part.constant,
                                              static_cast<std::int64_t>(part.of)};
    value = hash(value, std::as_bytes(std::span(numbers)));
  }
  return value;
}

// Specs are not sent: each process has registered them, and registry() compares them.
void Arrays::brief(Blob& blob) const {
  for (const MovingArray& part : parts_) {
    blob.put(part.length);
    blob.put(std::vector<std::int64_t>(part.shares.bounds().begin(), part.shares.bounds().end()));
  }
  for (const Matrix& matrix : matrices_)
    blob.put(std::vector<std::int64_t>(matrix.rows.bounds().begin(), matrix.rows.bounds().end()));
}

void Arrays::take_briefing(Blob& blob) {
  std::vector<std::int64_t> bounds;
  for (MovingArray& part : parts_) {
    blob.take(part.length);
    blob.take(bounds);
    part.shares = Partition(bounds);
  }
  for (Matrix& matrix : matrices_) {
    blob.take(bounds);
    matrix.rows = Partition(bounds);
  }
}

// ---- plans -------------------------------------------------------------------------------------------------------

// Finds the rows at which the parts begin, and the nonzeros before each, from the ranks that hold these rows. Source k
// knows the nonzeros before each row in (first, end] of its part; a maximum over all ranks collects the results.
// Collective.
bool Arrays::find_bounds(MPI_Comm all, const Matrix& matrix, int source, std::vector<std::int64_t>& rows,
                         std::vector<std::int64_t>& nonzeros, bool by_nonzeros) const {
  const Partition& counts = parts_[matrix.first_part + 1].shares;
  const std::int64_t total = counts.length();
  const auto parts = static_cast<std::int64_t>(rows.size()) - 1;
  const ElementRange own = source < 0 ? ElementRange{} : part_of(matrix.rows, source);
  const std::int64_t before = source < 0 ? 0 : part_of(counts, source).first;
  const auto starts = starts_of(matrix);
  if (by_nonzeros && total > 0) {
    std::fill(rows.begin(), rows.end(), 0);
    for (std::int64_t k = 1; k < parts && own.count() > 0; ++k) {
      // Computes ceil(k * total / parts) without an overflow of k * total.
      const std::int64_t wanted = k * (total / parts) + (k * (total % parts) + parts - 1) / parts - before;
      if (wanted <= 0 || wanted > starts.back()) continue;
      const auto row = std::lower_bound(starts.begin(), starts.end(), wanted) - starts.begin();
      rows[static_cast<std::size_t>(k)] = own.first + row;
    }
    rows.back() = matrix.spec.rows;
    if (!mpi::largest(all, rows)) return false;
    // Empty parts found no row of their own and begin where the part before ends.
    for (std::size_t k = 1; k < rows.size(); ++k) rows[k] = std::max(rows[k], rows[k - 1]);
  }
  // Each bound is known to the one source whose rows contain it; the others contribute 0 to the maximum.
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const bool known = rows[k] > own.first && rows[k] <= own.end;
    nonzeros[k] = known ? before + starts[static_cast<std::size_t>(rows[k] - own.first)] : 0;
  }
  return mpi::largest(all, nonzeros);
}

// Computes the new distribution of a matrix's rows and nonzeros. Collective.
bool Arrays::plan_rows(MPI_Comm all, Matrix& matrix, const Roles& roles, int rank, const std::vector<double>& weights) {
  const int targets = static_cast<int>(roles.targets.size());
  const ArrayDistribution sharing = matrix.spec.sharing;
  const Partition wished = sharing == ArrayDistribution::weighted ? Partition::weighted(matrix.spec.rows, weights)
                                                                  : Partition::block(matrix.spec.rows, targets);
  std::vector<std::int64_t> rows(wished.bounds().begin(), wished.bounds().end());
  std::vector<std::int64_t> nonzeros(rows.size());
  if (!find_bounds(all, matrix, index_of(roles.sources, rank), rows, nonzeros, sharing == ArrayDistribution::nonzeros))
    return false;
  matrix.next_rows = Partition(std::move(rows));
  matrix.next_nonzeros = Partition(std::move(nonzeros));
  return true;
}

// Returns the new distribution of a part. Parts of a matrix, and arrays that go with it, follow its rows.
Partition Arrays::next_shares_of(const MovingArray& part, int targets, const std::vector<double>& weights) const {
  if (part.of == MovingArray::Of::columns || part.of == MovingArray::Of::values)
    return matrices_[part.matrix].next_nonzeros;
  if (part.of == MovingArray::Of::lengths || part.sharing == ArrayDistribution::like_rows)
    return matrices_[part.matrix].next_rows;
  if (part.sharing == ArrayDistribution::weighted) return Partition::weighted(part.length, weights);
  return Partition::block(part.length, targets);
}

bool Arrays::plan(MPI_Comm all, const Roles& roles, int rank, const std::vector<double>& weights) {
  for (Matrix& matrix : matrices_)
    if (!plan_rows(all, matrix, roles, rank, weights)) return false;
  for (MovingArray& part : parts_) {
    part.next_shares = next_shares_of(part, static_cast<int>(roles.targets.size()), weights);
    part.plan = part.sharing == ArrayDistribution::replicated
                    ? redistribute::plan_replicated(part.length, roles, rank)
                    : redistribute::plan(part.shares, part.next_shares, roles, rank);
  }
  return true;
}

bool Arrays::all_in_place(const Roles& roles) const {
  return roles.sources == roles.targets && std::all_of(parts_.begin(), parts_.end(), [](const MovingArray& part) {
           return part.sharing == ArrayDistribution::replicated || part.shares == part.next_shares;
         });
}

std::int64_t Arrays::bytes_sent() const {
  std::int64_t bytes = 0;
  for (const MovingArray& part : parts_)
    for (const redistribute::Message& message : part.plan.sends) bytes += message.elements.count() * part.element_bytes;
  return bytes;
}

std::int64_t Arrays::bytes_kept() const {
  std::int64_t bytes = 0;
  for (const MovingArray& part : parts_) bytes += part.plan.kept.count() * part.element_bytes;
  return bytes;
}

// ---- moves -------------------------------------------------------------------------------------------------------

// Prepares the transfer of one part. If its first element stays the first, the part keeps its address and no byte is
// copied. A part that gets shorter is cut in adopt(), because other ranks may still read it. A part that gets longer is
// enlarged now, if its address may change: `in_peace` says that the program does not compute with it.
Status Arrays::make_room(MovingArray& part, bool in_peace, std::vector<ArrayTransfer>& transfers) {
  if (part.of == MovingArray::Of::lengths) write_lengths(part);
  const redistribute::RedistributionPlan& plan = part.plan;
  const bool same_first = plan.kept.first == plan.before.first && plan.kept.first == plan.after.first;
  const bool shortens = same_first && plan.kept == plan.after;
  const bool lengthens = same_first && plan.kept == plan.before && in_peace;
  part.moving = part.of == MovingArray::Of::lengths || plan.before.count() == 0 || !(shortens || lengthens);
  const std::int64_t needed = plan.after.count() * part.element_bytes;
  bool room = true;
  ArrayTransfer transfer{nullptr, nullptr, part.element_bytes, plan};
  if (part.moving) {
    part.next = Memory::allocate(needed);
    room = part.next.data() != nullptr;
    transfer.to = part.next.data();
  } else {
    if (lengthens) room = part.memory.grow(needed);
    transfer.plan.kept = {};
    transfer.to = part.memory.data();
  }
  if (!room) return Error{"no memory for " + std::to_string(plan.after.count()) + " elements of '" + part.name + "'"};
  transfer.from = part.memory.data();
  transfers.push_back(std::move(transfer));
  return success();
}

// Computes row lengths from the starts: lengths do not depend on the rows before, so they can move between processes.
void Arrays::write_lengths(MovingArray& part) {
  const auto* starts = reinterpret_cast<const std::int64_t*>(matrices_[part.matrix].starts.data());
  const std::int64_t rows = part.plan.before.count();
  part.memory = Memory::allocate(rows * length_bytes);
  if (!part.memory.data()) return;
  auto* lengths = reinterpret_cast<std::int64_t*>(part.memory.data());
  for (std::int64_t row = 0; row < rows; ++row) lengths[row] = starts[row + 1] - starts[row];
}

// Computes the new starts from the row lengths that have arrived.
void Arrays::read_lengths(MovingArray& part) {
  Matrix& matrix = matrices_[part.matrix];
  const std::int64_t rows = part.plan.after.count();
  matrix.next_starts = Memory::allocate((rows + 1) * length_bytes);
  if (!matrix.next_starts.data()) return;
  const auto* lengths = reinterpret_cast<const std::int64_t*>(part.next.data());
  auto* starts = reinterpret_cast<std::int64_t*>(matrix.next_starts.data());
  for (std::int64_t row = 0; row < rows; ++row) starts[row + 1] = starts[row] + lengths[row];
  part.next = {};
  part.memory = {};
}

Result<std::vector<ArrayTransfer>> Arrays::pending(bool constant) {
  std::vector<ArrayTransfer> transfers;
  for (MovingArray& part : parts_) {
    if (part.constant != constant) continue;
    if (const Status room = make_room(part, false, transfers); !room) return room.error();
  }
  return transfers;
}

void Arrays::arrived(bool constant) {
  for (MovingArray& part : parts_)
    if (part.constant == constant && part.of == MovingArray::Of::lengths) read_lengths(part);
}

// Makes the new distribution and data of a part current, and sets the program's pointer.
void Arrays::adopt(MovingArray& part) {
  part.shares = part.next_shares;
  if (part.of == MovingArray::Of::lengths) {
    Matrix& matrix = matrices_[part.matrix];
    matrix.rows = matrix.next_rows;
    matrix.held_rows = part.plan.after.count();
    matrix.starts = std::exchange(matrix.next_starts, {});
    *matrix.spec.starts = matrix.starts.data();
    return;
  }
  if (std::exchange(part.moving, false))
    part.memory = std::exchange(part.next, {});
  else
    part.memory.shrink(part.plan.after.count() * part.element_bytes);
  *part.pointer = part.memory.data();
}

void Arrays::adopt() {
  for (MovingArray& part : parts_) adopt(part);
}

// Allocates, moves and frees one part before the next, so that at most one part exists twice.
Status Arrays::move_each(bool constant, const std::function<Status(std::vector<ArrayTransfer>)>& move) {
  for (MovingArray& part : parts_) {
    if (part.constant != constant) continue;
    std::vector<ArrayTransfer> one;
    Status done = make_room(part, true, one);
    if (done) done = move(std::move(one));
    if (!done) return done;
    if (part.of == MovingArray::Of::lengths) read_lengths(part);
    // Frees the old data; adopt() sets the program's pointer.
    if (part.moving && part.of != MovingArray::Of::lengths) part.memory = {};
  }
  return success();
}

bool Arrays::forget() {
  bool room = true;
  for (MovingArray& part : parts_) {
    part.next = {};
    part.memory = {};
    part.plan = {};
    part.moving = false;
    if (part.of == MovingArray::Of::lengths) continue;
    part.memory = Memory::allocate(0);
    *part.pointer = part.memory.data();
    room = room && part.memory.data();
  }
  for (Matrix& matrix : matrices_) {
    matrix.next_starts = {};
    matrix.held_rows = 0;
    matrix.starts = Memory::allocate(length_bytes);
    *matrix.spec.starts = matrix.starts.data();
    room = room && matrix.starts.data();
  }
  return room;
}

std::uint64_t Arrays::constant_check() const {
  std::uint64_t value = 0;
  for (const MovingArray& part : parts_) {
    if (!part.constant || part.of == MovingArray::Of::lengths) continue;
    value = hash(
        value, std::span(part.memory.data(), static_cast<std::size_t>(part.plan.before.count() * part.element_bytes)));
  }
  return value;
}

void Arrays::free() {
  parts_.clear();
  matrices_.clear();
}

}  // namespace hocket::runtime
