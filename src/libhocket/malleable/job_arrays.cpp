// Arrays that come, get another length, or go while the application computes.
#include <array>
#include <functional>
#include <string>

#include "base/clock.hpp"
#include "malleable/job.hpp"
#include "mpi_shim/calls.hpp"
#include "mpi_shim/end_job.hpp"

namespace hocket::runtime {
namespace {

// Returns a hash of a change, by which the processes notice that they want different ones.
std::uint64_t hash_of(const std::string& text) { return std::hash<std::string>{}(text); }

}  // namespace

// Waits for constant data that move in the background: their memory must stay as it is until then. The processes that
// join wait meanwhile for the end of the reconfiguration, and learn there of the change. Collective.
void MalleableJob::end_background_move() {
  if (!change_ || !change_->moving) return;
  change_->mark = node_now();
  finish_moving();
}

// Compares what all processes want, and whether it is possible. Collective.
ArrayChange MalleableJob::agree(std::uint64_t change, const Status& possible) {
  const auto number = static_cast<std::int64_t>(change >> 1);
  std::array<std::int64_t, 3> here{number, -number, possible.ok()};
  if (!mpi::smallest(ours_, here)) end_job("MPI failed when arrays were compared", true);
  if (here[0] != -here[1])
    return {ArrayChange::wrong, "the processes change different arrays, or in different ways: all must do the same"};
  if (!possible) return {ArrayChange::wrong, possible.error().text};
  if (!here[2]) return {ArrayChange::wrong, "it is impossible in another process"};
  return {};
}

ArrayChange MalleableJob::agree_on_memory(bool room) {
  std::array<std::int64_t, 1> here{room};
  if (!mpi::smallest(ours_, here)) end_job("MPI failed when arrays were compared", true);
  return {here[0] ? ArrayChange::done : ArrayChange::no_memory, {}};
}

// Checks the owners now, and in the reconfiguration in progress, whose number of processes is settled.
Status MalleableJob::check_owners(const Arrays::Spec& spec) const {
  Status now = arrays_.check_owners(spec, size_);
  if (!now || !change_ || !change_->in_background) return now;
  return arrays_.check_owners(spec, static_cast<int>(change_->roles.targets.size()));
}

ArrayChange MalleableJob::add_array(const Arrays::Spec& spec) {
  if (!begun_) {
    const std::vector<double> equal(static_cast<std::size_t>(size_), 1.0);
    if (const Status owners = joined_ ? success() : arrays_.check_owners(spec, size_); !owners)
      return {ArrayChange::wrong, owners.error().text};
    return {arrays_.add(spec, rank_, equal) ? ArrayChange::done : ArrayChange::no_memory, {}};
  }
  if (arrays_.is_unclaimed(spec.name)) {
    if (arrays_.claim(spec, rank_)) return {};
    return {ArrayChange::wrong, "it came from the other processes with another type, length, distribution or kind"};
  }
  end_background_move();
  const std::string text = spec.name + ' ' + std::to_string(spec.element_bytes) + ' ' + std::to_string(spec.length) +
                           ' ' + std::to_string(static_cast<int>(spec.sharing)) + ' ' +
                           std::to_string(spec.registered) + ' ' + std::to_string(spec.constant);
  ArrayChange change = agree(hash_of(text), check_owners(spec));
  if (change.outcome != ArrayChange::done) return change;
  const bool room = arrays_.add(spec, rank_, weights_);
  change = agree_on_memory(room);
  if (room && change.outcome != ArrayChange::done) arrays_.drop(arrays_.find(spec.name));
  return change;
}

ArrayChange MalleableJob::set_length(int array, std::int64_t length) {
  end_background_move();
  Arrays::Spec spec = arrays_.spec(array);
  spec.length = length;
  ArrayChange change = agree(hash_of("length " + spec.name + ' ' + std::to_string(length)), check_owners(spec));
  if (change.outcome != ArrayChange::done) return change;
  auto transfer = arrays_.begin_length(array, length, rank_, weights_);
  change = agree_on_memory(transfer.ok());
  if (change.outcome == ArrayChange::done) {
    auto moving =
        Redistribution::start(ours_, {transfer.value()}, settings_.methods.redistribution, Strategy::blocking);
    const Status moved = moving ? moving.value()->finish() : Status(moving.error());
    if (!moved) end_job("'" + spec.name + "' could not get another length: " + moved.error().text, true);
  }
  arrays_.end_length(array, length, change.outcome != ArrayChange::done);
  return change;
}

ArrayChange MalleableJob::drop_array(int array) {
  end_background_move();
  const ArrayChange change = agree(hash_of("drop " + arrays_.spec(array).name), success());
  if (change.outcome == ArrayChange::done) arrays_.drop(array);
  return change;
}

}  // namespace hocket::runtime
