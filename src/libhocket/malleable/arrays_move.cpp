// The new distribution of the registered arrays, and their way from the old memory to the new one.
#include <algorithm>
#include <utility>

#include "malleable/arrays.hpp"
#include "mpi_shim/calls.hpp"

namespace hocket::runtime {
namespace {

using redistribute::ElementDistribution;
using redistribute::ElementRange;
using redistribute::Extents;
using redistribute::Partition;
using redistribute::Roles;

// Returns the position of `rank` in `ranks`, or -1.
int index_of(const std::vector<int>& ranks, int rank) {
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
}

}  // namespace

// ---- shares ------------------------------------------------------------------------------------------------------

// Returns what the program's function says, or an error if that is no distribution.
Result<ElementDistribution> Arrays::listed(const RegisteredDistribution& distribution, std::int64_t length, int parts) {
  std::vector<Extents> lists(static_cast<std::size_t>(parts));
  std::vector<hocket_malleable_extent> extents(64);
  for (int part = 0; part < parts; ++part) {
    const auto ask = [&] {
      return distribution.owner(distribution.context, length, parts, part, static_cast<std::int64_t>(extents.size()),
                                extents.data());
    };
    std::int64_t number = ask();
    if (number > static_cast<std::int64_t>(extents.size())) {
      extents.resize(static_cast<std::size_t>(number));
      number = ask();
    }
    if (number < 0 || number > static_cast<std::int64_t>(extents.size()))
      return Error{"the function of owners returns " + std::to_string(number) + " extents for rank " +
                   std::to_string(part) + " of " + std::to_string(parts)};
    for (std::int64_t i = 0; i < number; ++i) {
      const hocket_malleable_extent& extent = extents[static_cast<std::size_t>(i)];
      lists[static_cast<std::size_t>(part)].push_back({extent.first, extent.first + extent.count});
    }
  }
  const std::string wrong = redistribute::complaint(length, lists);
  if (!wrong.empty())
    return Error{"the function of owners is wrong for " + std::to_string(parts) + " processes: " + wrong};
  return ElementDistribution::listed(length, std::move(lists));
}

Status Arrays::check_owners(int processes) const {
  for (const MovingArray& part : parts_) {
    if (part.sharing != ArrayDistribution::listed) continue;
    const auto shares = listed(registered_[part.registered], part.length, processes);
    if (!shares) return Error{"'" + part.name + "': " + shares.error().text};
  }
  return success();
}

Status Arrays::check_owners(const Spec& spec, int processes) const {
  if (spec.sharing != ArrayDistribution::listed) return success();
  const auto shares = listed(registered_[spec.registered], spec.length, processes);
  return shares ? success() : Status(shares.error());
}

// Returns the distribution of an array over as many processes as weights. check_owners() has found no error.
ElementDistribution Arrays::shares_of(const MovingArray& part, std::int64_t length,
                                      const std::vector<double>& weights) const {
  const int parts = std::max(1, static_cast<int>(weights.size()));
  const RegisteredDistribution* const registered =
      part.registered < registered_.size() ? &registered_[part.registered] : nullptr;
  switch (part.sharing) {
    case ArrayDistribution::like_rows: return matrices_[part.matrix].rows;
    case ArrayDistribution::cyclic: return ElementDistribution::cyclic(length, registered->block, parts);
    case ArrayDistribution::rectangles:
      return ElementDistribution::rectangles(registered->rows, registered->columns, parts);
    case ArrayDistribution::listed: {
      auto shares = listed(*registered, length, parts);
      return shares ? std::move(shares).value() : ElementDistribution(Partition::block(length, parts));
    }
    case ArrayDistribution::weighted:
      if (!weights.empty()) return Partition::weighted(length, weights);
      break;
    default: break;
  }
  return Partition::block(length, parts);
}

// Finds the rows at which the parts begin, and the nonzeros before each, from the ranks that hold these rows. Source k
// knows the nonzeros before each row in (first, end] of its part; a maximum over all ranks collects the results.
// Collective.
bool Arrays::find_bounds(MPI_Comm all, const Matrix& matrix, int source, std::vector<std::int64_t>& rows,
                         std::vector<std::int64_t>& nonzeros, bool by_nonzeros) const {
  const Partition& counts = *parts_[matrix.first_part + 1].shares.ranges();
  const std::int64_t total = counts.length();
  const auto parts = static_cast<std::int64_t>(rows.size()) - 1;
  const ElementRange own = source < 0 ? ElementRange{} : matrix.rows.part(source);
  const std::int64_t before = source < 0 ? 0 : counts.part(source).first;
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
bool Arrays::share_out_rows(MPI_Comm all, Matrix& matrix, int source, const std::vector<double>& weights) {
  const ArrayDistribution sharing = matrix.spec.sharing;
  const Partition wished = sharing == ArrayDistribution::weighted
                               ? Partition::weighted(matrix.spec.rows, weights)
                               : Partition::block(matrix.spec.rows, static_cast<int>(weights.size()));
  std::vector<std::int64_t> rows(wished.bounds().begin(), wished.bounds().end());
  std::vector<std::int64_t> nonzeros(rows.size());
  if (!find_bounds(all, matrix, source, rows, nonzeros, sharing == ArrayDistribution::nonzeros)) return false;
  matrix.next_rows = Partition(std::move(rows));
  matrix.next_nonzeros = Partition(std::move(nonzeros));
  return true;
}

// Returns the new distribution of a part. Parts of a matrix, and arrays that go with it, follow its rows.
ElementDistribution Arrays::next_shares_of(const MovingArray& part, const std::vector<double>& weights) const {
  if (part.of == MovingArray::Of::columns || part.of == MovingArray::Of::values)
    return matrices_[part.matrix].next_nonzeros;
  if (part.of == MovingArray::Of::lengths || part.sharing == ArrayDistribution::like_rows)
    return matrices_[part.matrix].next_rows;
  return shares_of(part, part.length, weights);
}

bool Arrays::share_out(MPI_Comm all, const std::vector<int>& sources, int rank, const std::vector<double>& weights) {
  for (Matrix& matrix : matrices_)
    if (!parts_[matrix.first_part].planned && !share_out_rows(all, matrix, index_of(sources, rank), weights))
      return false;
  for (MovingArray& part : parts_)
    if (!part.planned) part.next_shares = next_shares_of(part, weights);
  return true;
}

redistribute::Overlap Arrays::overlap(int sources, int parts) const {
  redistribute::Overlap overlap(sources, parts);
  for (const MovingArray& part : parts_)
    if (part.sharing != ArrayDistribution::replicated)
      overlap.add(part.shares, part.next_shares, static_cast<double>(part.element_bytes));
  return overlap;
}

void Arrays::plan(const Roles& roles, int rank) {
  for (MovingArray& part : parts_) {
    if (std::exchange(part.planned, true)) continue;
    part.plan = part.sharing == ArrayDistribution::replicated
                    ? redistribute::plan_replicated(part.length, part.length, roles, rank)
                    : redistribute::plan(part.shares, part.next_shares, roles, rank);
  }
}

void Arrays::forget_plans() {
  for (MovingArray& part : parts_) {
    part.planned = part.moving = part.arrived = false;
    part.next = {};
  }
}

bool Arrays::all_in_place(const Roles& roles) const {
  return roles.sources == roles.targets && std::all_of(parts_.begin(), parts_.end(), [](const MovingArray& part) {
           return part.sharing == ArrayDistribution::replicated || part.shares == part.next_shares;
         });
}

std::int64_t Arrays::bytes_sent() const {
  std::int64_t bytes = 0;
  for (const MovingArray& part : parts_)
    for (const redistribute::Message& message : part.plan.sends)
      bytes += redistribute::count(message.places) * part.element_bytes;
  return bytes;
}

std::int64_t Arrays::bytes_kept() const {
  std::int64_t bytes = 0;
  for (const MovingArray& part : parts_) bytes += part.plan.kept_count() * part.element_bytes;
  return bytes;
}

// ---- moves -------------------------------------------------------------------------------------------------------

// Prepares the transfer of one part. If what stays is the front of the memory before and after, the part keeps its
// address and no byte is copied. A part that gets shorter is cut in adopt(), because other ranks may still read it. A
// part that gets longer is enlarged now, if its address may change: `in_peace` says that the program does not compute
// with it.
Status Arrays::make_room(MovingArray& part, bool in_peace, std::vector<ArrayTransfer>& transfers) {
  if (part.of == MovingArray::Of::lengths) write_lengths(part);
  const redistribute::RedistributionPlan& plan = part.plan;
  const bool in_front = plan.kept.size() == 1 && plan.kept.front().from == 0 && plan.kept.front().to == 0;
  const bool shortens = in_front && plan.kept.front().count == plan.after;
  const bool lengthens = in_front && plan.kept.front().count == plan.before && in_peace;
  part.moving = part.of == MovingArray::Of::lengths || !(shortens || lengthens);
  const std::int64_t needed = plan.after * part.element_bytes;
  bool room = true;
  ArrayTransfer transfer{nullptr, nullptr, part.element_bytes, plan};
  if (part.moving) {
    part.next = Memory::allocate(needed, part.allocator);
    room = part.next.data() != nullptr;
    transfer.to = part.next.data();
  } else {
    if (lengthens) room = part.memory.grow(needed);
    transfer.plan.kept = {};
    transfer.to = part.memory.data();
  }
  if (!room) return Error{"no memory for " + std::to_string(plan.after) + " elements of '" + part.name + "'"};
  transfer.from = part.memory.data();
  transfers.push_back(std::move(transfer));
  return success();
}

// Computes row lengths from the starts: lengths do not depend on the rows before, so they can move between processes.
void Arrays::write_lengths(MovingArray& part) {
  const auto* starts = reinterpret_cast<const std::int64_t*>(matrices_[part.matrix].starts.data());
  const std::int64_t rows = part.plan.before;
  part.memory = Memory::allocate(rows * length_bytes);
  if (!part.memory.data()) return;
  auto* lengths = reinterpret_cast<std::int64_t*>(part.memory.data());
  for (std::int64_t row = 0; row < rows; ++row) lengths[row] = starts[row + 1] - starts[row];
}

// Computes the new starts from the row lengths that have arrived.
void Arrays::read_lengths(MovingArray& part) {
  Matrix& matrix = matrices_[part.matrix];
  const std::int64_t rows = part.plan.after;
  matrix.next_starts = Memory::allocate((rows + 1) * length_bytes, matrix.allocator);
  if (!matrix.next_starts.data()) return;
  const auto* lengths = reinterpret_cast<const std::int64_t*>(part.next.data());
  auto* starts = reinterpret_cast<std::int64_t*>(matrix.next_starts.data());
  starts[0] = 0;
  for (std::int64_t row = 0; row < rows; ++row) starts[row + 1] = starts[row] + lengths[row];
  part.next = {};
  part.memory = {};
}

Result<std::vector<ArrayTransfer>> Arrays::pending(bool constant) {
  std::vector<ArrayTransfer> transfers;
  for (MovingArray& part : parts_) {
    if (part.constant != constant || part.arrived) continue;
    if (const Status room = make_room(part, false, transfers); !room) return room.error();
  }
  return transfers;
}

void Arrays::arrived(bool constant) {
  for (MovingArray& part : parts_) {
    if (part.constant != constant || std::exchange(part.arrived, true)) continue;
    if (part.of == MovingArray::Of::lengths) read_lengths(part);
  }
}

// Makes the new distribution and data of a part current, and sets the program's pointer.
void Arrays::adopt(MovingArray& part) {
  part.shares = part.next_shares;
  part.planned = part.arrived = false;
  if (part.of == MovingArray::Of::lengths) {
    Matrix& matrix = matrices_[part.matrix];
    matrix.rows = matrix.next_rows;
    matrix.held_rows = part.plan.after;
    matrix.starts = std::exchange(matrix.next_starts, {});
    show_starts(matrix);
    return;
  }
  if (std::exchange(part.moving, false))
    part.memory = std::exchange(part.next, {});
  else
    part.memory.shrink(part.plan.after * part.element_bytes);
  part.show();
}

void Arrays::adopt() {
  for (MovingArray& part : parts_) adopt(part);
}

// Allocates, moves and frees one part before the next, so that at most one part exists twice.
Status Arrays::move_each(bool constant, const std::function<Status(std::vector<ArrayTransfer>)>& move) {
  for (MovingArray& part : parts_) {
    if (part.constant != constant || part.arrived) continue;
    std::vector<ArrayTransfer> one;
    Status done = make_room(part, true, one);
    if (done) done = move(std::move(one));
    if (!done) return done;
    if (part.of == MovingArray::Of::lengths) read_lengths(part);
    part.arrived = true;
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
    part.planned = part.moving = part.arrived = false;
    if (part.of == MovingArray::Of::lengths) continue;
    part.memory = Memory::allocate(0, part.allocator);
    part.show();
    room = room && part.memory.data();
  }
  for (Matrix& matrix : matrices_) {
    matrix.next_starts = {};
    matrix.held_rows = 0;
    matrix.starts = Memory::allocate(length_bytes, matrix.allocator);
    show_starts(matrix);
    room = room && matrix.starts.data();
  }
  return room;
}

void Arrays::free() {
  parts_.clear();
  matrices_.clear();
}

}  // namespace hocket::runtime
