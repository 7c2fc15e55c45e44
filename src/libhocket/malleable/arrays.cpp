#include "malleable/arrays.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "mpi_shim/calls.hpp"

namespace hocket::runtime {
namespace {

using redistribute::ElementDistribution;
using redistribute::ElementRange;
using redistribute::Extents;
using redistribute::Partition;

// Returns the part of `rank`; empty for a rank that holds none, such as -1.
ElementRange part_of(const Partition& shares, int rank) {
  return rank >= 0 && rank < shares.parts() ? shares.part(rank) : ElementRange{};
}

Extents extents_of(const ElementDistribution& shares, int rank) {
  return rank >= 0 && rank < shares.parts() ? shares.extents(rank) : Extents{};
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

// Returns the number of an equal distribution if there is one: a process that joined may know it by the briefing.
int Arrays::add_distribution(const RegisteredDistribution& distribution) {
  const auto found = std::find(registered_.begin(), registered_.end(), distribution);
  if (found != registered_.end()) return static_cast<int>(found - registered_.begin());
  registered_.push_back(distribution);
  return static_cast<int>(registered_.size()) - 1;
}

bool Arrays::add(const Spec& spec, int rank, const std::vector<double>& weights) {
  MovingArray part;
  part.id = next_id_++;  // also if memory has run out here: it must be the same in all processes
  part.name = spec.name;
  part.element_bytes = spec.element_bytes;
  part.length = spec.length;
  part.sharing = spec.sharing;
  part.registered = spec.registered;
  if (spec.sharing == ArrayDistribution::like_rows)
    part.matrix = static_cast<std::size_t>(registered_[spec.registered].matrix);
  part.constant = spec.constant;
  part.pointer = spec.pointer;
  part.allocator = allocator_;
  part.shares = shares_of(part, spec.length, weights);
  // A process that joins later gets its data with the first redistribution.
  const std::int64_t held = rank < 0                                        ? 0
                            : spec.sharing == ArrayDistribution::replicated ? spec.length
                                                                            : count(extents_of(part.shares, rank));
  part.memory = Memory::allocate(held * spec.element_bytes, allocator_);
  if (!part.memory.data()) return false;
  part.show();
  parts_.push_back(std::move(part));
  changed_ = true;
  return true;
}

int Arrays::add_matrix(const MatrixSpec& spec, int rank, int processes) {
  Matrix matrix;
  matrix.spec = spec;
  matrix.rows = Partition::block(spec.rows, std::max(1, processes));
  matrix.held_rows = part_of(matrix.rows, rank).count();
  matrix.allocator = allocator_;
  matrix.starts = Memory::allocate((matrix.held_rows + 1) * length_bytes, allocator_);
  if (!matrix.starts.data()) return -1;
  show_starts(matrix);
  // The three parts follow each other, and first_part names the first.
  matrix.first_part = parts_.size();
  const auto add_part = [&](MovingArray::Of of, std::int64_t element_bytes, void** pointer) {
    MovingArray part;
    part.id = next_id_++;
    part.name = spec.name;
    part.element_bytes = element_bytes;
    part.sharing = spec.sharing;
    part.matrix = matrices_.size();
    part.of = of;
    part.constant = spec.constant;
    part.pointer = pointer;
    part.allocator = allocator_;
    if (of == MovingArray::Of::lengths) {
      part.length = spec.rows;
      part.shares = matrix.rows;
    } else {
      part.memory = Memory::allocate(0, allocator_);
      part.show();
    }
    parts_.push_back(std::move(part));
  };
  add_part(MovingArray::Of::lengths, length_bytes, nullptr);
  add_part(MovingArray::Of::columns, spec.column_bytes, spec.columns);
  add_part(MovingArray::Of::values, spec.value_bytes, spec.values);
  matrices_.push_back(std::move(matrix));
  RegisteredDistribution like_rows;
  like_rows.sharing = ArrayDistribution::like_rows;
  like_rows.matrix = static_cast<std::int64_t>(matrices_.size()) - 1;
  return add_distribution(like_rows);
}

// Sets the program's pointer. The first start is 0 even if the program has allocated the memory.
void Arrays::show_starts(Matrix& matrix) {
  *matrix.spec.starts = matrix.starts.data();
  if (matrix.starts.data()) reinterpret_cast<std::int64_t*>(matrix.starts.data())[0] = 0;
}

bool Arrays::reserve_nonzeros(std::size_t matrix, std::int64_t nonzeros) {
  Matrix& of = matrices_[matrix];
  // Columns and values follow the row lengths.
  for (const std::size_t index : {of.first_part + 1, of.first_part + 2}) {
    MovingArray& part = parts_[index];
    Memory room = Memory::allocate(nonzeros * part.element_bytes, part.allocator);
    if (!room.data()) return false;
    part.memory = std::move(room);
    part.show();
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

// ---- changes after the start -------------------------------------------------------------------------------------

void Arrays::begin() { registry_ = registry(); }

bool Arrays::is_unclaimed(std::string_view name) const {
  const int array = find(name);
  return array >= 0 && !parts_[static_cast<std::size_t>(array)].pointer;
}

bool Arrays::claim(const Spec& spec, int rank) {
  MovingArray& part = parts_[static_cast<std::size_t>(find(spec.name))];
  if (part.element_bytes != spec.element_bytes || part.length != spec.length || part.sharing != spec.sharing ||
      part.registered != spec.registered || part.constant != spec.constant)
    return false;
  part.pointer = spec.pointer;
  part.allocator = allocator_;
  if (allocator_.resize) {
    const std::int64_t bytes = part.element_bytes * count(extents(find(spec.name), rank));
    Memory own = Memory::allocate(bytes, allocator_);
    if (!own.data()) return false;
    std::memcpy(own.data(), part.memory.data(), static_cast<std::size_t>(bytes));
    part.memory = std::move(own);
  }
  part.show();
  return true;
}

Arrays::Spec Arrays::spec(int array) const {
  const MovingArray& part = parts_[static_cast<std::size_t>(array)];
  return {part.name, part.element_bytes, part.length, part.sharing, part.registered, part.constant, part.pointer};
}

void Arrays::drop(int array) {
  const auto place = parts_.begin() + array;
  if (place->pointer) *place->pointer = nullptr;
  parts_.erase(place);
  index_matrices();
  changed_ = true;
}

std::string Arrays::fixed_length(int array) const {
  switch (parts_[static_cast<std::size_t>(array)].sharing) {
    case ArrayDistribution::like_rows: return "it has as many elements as its matrix has rows";
    case ArrayDistribution::rectangles: return "it has as many elements as its rows and columns say";
    default: return {};
  }
}

Result<ArrayTransfer> Arrays::begin_length(int array, std::int64_t length, int rank,
                                           const std::vector<double>& weights) {
  MovingArray& part = parts_[static_cast<std::size_t>(array)];
  redistribute::Roles roles;
  for (int r = 0; r < static_cast<int>(weights.size()); ++r) roles.sources.push_back(r);
  roles.targets = roles.sources;
  part.next_shares = shares_of(part, length, weights);
  const bool replicated = part.sharing == ArrayDistribution::replicated;
  const auto plan = replicated ? redistribute::plan_replicated(part.length, length, roles, rank)
                               : redistribute::plan(part.shares, part.next_shares, roles, rank);
  part.next = Memory::allocate(plan.after * part.element_bytes, part.allocator);
  if (!part.next.data()) return Error{"no memory"};
  // New elements come last in the memory of each process.
  std::int64_t fresh = replicated ? std::max<std::int64_t>(0, length - part.length) : 0;
  for (const ElementRange& range : replicated ? Extents{} : part.next_shares.extents(rank))
    fresh += std::max<std::int64_t>(0, range.end - std::max(range.first, part.length));
  std::memset(part.next.data() + (plan.after - fresh) * part.element_bytes, 0,
              static_cast<std::size_t>(fresh * part.element_bytes));
  return ArrayTransfer{part.memory.data(), part.next.data(), part.element_bytes, plan};
}

void Arrays::end_length(int array, std::int64_t length, bool give_up) {
  MovingArray& part = parts_[static_cast<std::size_t>(array)];
  Memory next = std::exchange(part.next, {});
  ++part.version;  // data that have arrived for a reconfiguration in progress are gone
  part.planned = part.arrived = part.moving = false;
  changed_ = true;
  if (give_up) return;
  part.memory = std::move(next);
  part.shares = part.next_shares;
  part.length = length;
  part.show();
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

Extents Arrays::extents(int array, int rank) const {
  const MovingArray& part = parts_[static_cast<std::size_t>(array)];
  if (part.sharing != ArrayDistribution::replicated) return extents_of(part.shares, rank);
  return part.length > 0 ? Extents{{0, part.length}} : Extents{};
}

std::vector<Arrays::HeldArray> Arrays::held_by(int rank) const {
  std::vector<HeldArray> held;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const MovingArray& part = parts_[i];
    const std::int64_t bytes = redistribute::count(extents(static_cast<int>(i), rank)) * part.element_bytes;
    held.push_back({part.name, bytes, part.constant, part.sharing == ArrayDistribution::replicated});
  }
  return held;
}

ElementRange Arrays::range(int array, int rank) const {
  const MovingArray& part = parts_[static_cast<std::size_t>(array)];
  if (part.sharing == ArrayDistribution::replicated) return {0, part.length};
  return part_of(*part.shares.ranges(), rank);
}

bool Arrays::has_ranges(int array) const { return parts_[static_cast<std::size_t>(array)].shares.ranges() != nullptr; }

std::optional<redistribute::Rectangle> Arrays::rectangle(int array, int rank) const {
  const MovingArray& part = parts_[static_cast<std::size_t>(array)];
  if (part.sharing != ArrayDistribution::rectangles) return std::nullopt;
  const int parts = part.shares.parts();
  if (rank < 0 || rank >= parts) return redistribute::Rectangle{};
  const RegisteredDistribution& matrix = registered_[part.registered];
  return redistribute::rectangle_of(matrix.rows, matrix.columns, parts, rank);
}

ElementRange Arrays::rows_of(int matrix, int rank) const {
  return part_of(matrices_[static_cast<std::size_t>(matrix)].rows, rank);
}

const Partition* Arrays::weighted() const {
  for (const MovingArray& part : parts_)
    if (part.sharing == ArrayDistribution::weighted) return part.shares.ranges();
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
  if (registry_) return *registry_;
  std::uint64_t value = parts_.size();
  for (const MovingArray& part : parts_) {
    value = hash(value, part.name);
    // The number of nonzeros is unknown at registration, so it is left out.
    const bool known = part.of == MovingArray::Of::array || part.of == MovingArray::Of::lengths;
    const std::array<std::int64_t, 6> numbers{part.element_bytes,
                                              known ? part.length : 0,
                                              static_cast<std::int64_t>(part.sharing),
                                              static_cast<std::int64_t>(part.registered),
                                              part.constant,
                                              static_cast<std::int64_t>(part.of)};
    value = hash(value, std::as_bytes(std::span(numbers)));
  }
  for (const RegisteredDistribution& d : registered_) {
    const std::array<std::int64_t, 5> numbers{static_cast<std::int64_t>(d.sharing), d.matrix, d.block, d.rows,
                                              d.columns};
    value = hash(value, std::as_bytes(std::span(numbers)));
  }
  return value;
}

std::uint64_t Arrays::constant_check() const {
  std::uint64_t value = 0;
  for (const MovingArray& part : parts_) {
    if (!part.constant || part.of == MovingArray::Of::lengths) continue;
    value = hash(value, std::span(part.memory.data(), static_cast<std::size_t>(part.plan.before * part.element_bytes)));
  }
  return value;
}

// ---- the briefing ------------------------------------------------------------------------------------------------

void Arrays::brief(Blob& blob) {
  blob.put(registered_);
  blob.put(next_id_);
  blob.put(static_cast<std::int64_t>(parts_.size()));
  for (const MovingArray& part : parts_) {
    blob.put(part.id);
    blob.put(part.version);
    blob.put(part.name);
    blob.put(part.element_bytes);
    blob.put(part.length);
    blob.put(part.sharing);
    blob.put(part.registered);
    blob.put(part.matrix);
    blob.put(part.of);
    blob.put(part.constant);
    const Partition* const ranges = part.shares.ranges();
    blob.put(part.shares.parts());
    blob.put(ranges ? std::vector<std::int64_t>(ranges->bounds().begin(), ranges->bounds().end())
                    : std::vector<std::int64_t>{});
  }
  for (const Matrix& matrix : matrices_)
    blob.put(std::vector<std::int64_t>(matrix.rows.bounds().begin(), matrix.rows.bounds().end()));
  changed_ = false;
}

// An array that this process has registered keeps its pointer and memory; a new one waits to be claimed. One that is
// not in the briefing was dropped by the others.
void Arrays::take_briefing(Blob& blob) {
  take_distributions(blob);
  blob.take(next_id_);
  std::int64_t parts = 0;
  blob.take(parts);
  std::vector<MovingArray> old = std::exchange(parts_, {});
  for (; parts > 0; --parts) {
    std::int64_t id = 0;
    blob.take(id);
    const auto own = std::find_if(old.begin(), old.end(), [&](const MovingArray& part) { return part.id == id; });
    parts_.push_back(own == old.end() ? MovingArray{} : std::move(*own));
    take_part(parts_.back(), id, blob);
    if (own == old.end())
      parts_.back().memory = Memory::allocate(0);
    else
      old.erase(own);
  }
  for (const MovingArray& part : old)
    if (part.pointer) *part.pointer = nullptr;
  index_matrices();
  std::vector<std::int64_t> bounds;
  for (Matrix& matrix : matrices_) {
    blob.take(bounds);
    matrix.rows = Partition(bounds);
  }
}

// Addresses of the program's functions are those of this process; another one's mean nothing here.
void Arrays::take_distributions(Blob& blob) {
  std::vector<RegisteredDistribution> briefed;
  blob.take(briefed);
  for (std::size_t i = registered_.size(); i < briefed.size(); ++i) registered_.push_back(briefed[i]);
}

void Arrays::take_part(MovingArray& part, std::int64_t id, Blob& blob) {
  std::int64_t version = 0;
  int parts = 0;
  std::vector<std::int64_t> bounds;
  blob.take(version);
  if (part.version != version) {
    part.planned = part.arrived = part.moving = false;
    part.next = {};
  }
  part.id = id;
  part.version = version;
  blob.take(part.name);
  blob.take(part.element_bytes);
  blob.take(part.length);
  blob.take(part.sharing);
  blob.take(part.registered);
  blob.take(part.matrix);
  blob.take(part.of);
  blob.take(part.constant);
  blob.take(parts);
  blob.take(bounds);
  part.shares = bounds.empty() ? shares_of(part, part.length, std::vector<double>(static_cast<std::size_t>(parts), 1.0))
                               : ElementDistribution(Partition(bounds));
}

// The parts of a matrix may have other indexes after arrays before them have come or gone.
void Arrays::index_matrices() {
  for (std::size_t i = 0; i < parts_.size(); ++i)
    if (parts_[i].of == MovingArray::Of::lengths) matrices_[parts_[i].matrix].first_part = i;
}

}  // namespace hocket::runtime
