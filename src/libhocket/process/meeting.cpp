#include "process/meeting.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "base/clock.hpp"
#include "base/saturating.hpp"
#include "mpi_shim/calls.hpp"

namespace hocket::runtime {
namespace {

constexpr int upwards = 0;  // tags
constexpr int downwards = 1;

MPI_Comm ours{};      // a duplicate of MPI_COMM_WORLD. It is never freed: a message of a failed meeting may be unread.
bool opened = false;  // `ours` exists
bool apart = false;   // a meeting has failed

}  // namespace

// What a process and those below it in the tree know. Downwards, it is what all know.
struct MeetingPoint::Knowledge {
  std::int64_t bytes = 0;
  std::int64_t stops = 0;
  std::int64_t least_place = 0;
  std::int64_t most_place = 0;
  std::int64_t missing = 0;  // processes that have not come, at least

  void add(const Knowledge& other) {
    bytes = saturating_sum(bytes, other.bytes);
    stops += other.stops;
    least_place = std::min(least_place, other.least_place);
    most_place = std::max(most_place, other.most_place);
    missing += other.missing;
  }
  void send(int rank, int tag) const { mpi::send_copy(ours, rank, tag, std::as_bytes(std::span(this, 1))); }
  bool receive(int rank, int tag, Time until) {
    return mpi::receive_within(ours, rank, tag, std::as_writable_bytes(std::span(this, 1)), until);
  }
};

void open_meetings() {
  ours = mpi::duplicate(mpi::world());
  opened = ours != mpi::no_comm();
}

MeetingPoint::MeetingPoint(MPI_Comm comm) : comm_(comm), size_(mpi::size_of(comm)) {
  if (size_ < 2) return;
  const std::vector<int> ranks = mpi::ranks_in_world(comm);
  of_world_ = !ranks.empty();
  if (!of_world_) return;
  const std::int64_t own = mpi::rank_in(comm);
  for (std::int64_t bit = 1; bit < size_; bit *= 2) {
    if ((own & bit) != 0) {
      parent_ = ranks[static_cast<std::size_t>(own - bit)];
      return;
    }
    if (own + bit < size_) children_.push_back(ranks[static_cast<std::size_t>(own + bit)]);
  }
}

// Sums up what all processes know. Returns false if MPI fails, or if not all come in time.
bool MeetingPoint::gather(Knowledge& known, Time until) const {
  for (const int child : children_) {
    Knowledge below;
    if (below.receive(child, upwards, until))
      known.add(below);
    else
      ++known.missing;
  }
  if (parent_ >= 0) {
    known.send(parent_, upwards);
    Knowledge all;
    if (all.receive(parent_, downwards, until)) {
      known = all;
    } else {
      ++known.missing;
      known.send(parent_, upwards);  // a parent that comes later and succeeds finds it at its next meeting
    }
  }
  for (const int child : children_) known.send(child, downwards);
  mpi::push(ours);
  return known.missing == 0;
}

Met MeetingPoint::meet(std::int64_t place, Meeting& known, Duration limit) const {
  if (size_ < 2) return Met::all;
  if (apart || !opened) return Met::apart;
  Knowledge all{known.bytes, known.stops ? 1 : 0, place, place};
  bool came = false;
  if (of_world_) {
    came = gather(all, saturating_sum(node_now(), limit));
  } else {  // processes of two worlds, after a reconfiguration, have no other communicator in common
    std::array<std::int64_t, 4> sums{all.bytes, all.stops, place, place * place};
    came = mpi::total_within(comm_, sums, limit);
    const bool alike = size_ * sums[3] == sums[2] * sums[2];  // equal numbers alone fulfil it
    if (came) all = {sums[0], sums[1], alike ? place : 0, place};
  }
  const bool alike = all.least_place == all.most_place;
  apart = !came || !alike;
  if (apart) return alike ? Met::missing : Met::unlike;
  known = {all.bytes, all.stops > 0};
  return Met::all;
}

}  // namespace hocket::runtime
