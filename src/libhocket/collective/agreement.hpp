// Small collective exchanges between the ranks of a file: every rank's numbers to all, and agreement on one error.
// All functions here are collective over the file's ranks and called from the thread that performs the access.
#pragma once

#include <algorithm>
#include <cerrno>
#include <optional>
#include <span>
#include <vector>

#include "collective/exchange.hpp"
#include "mpi_shim/calls.hpp"

namespace hocket::runtime::collective {

// Gathers one struct of 64-bit numbers from every rank, in the order of ranks. Uses the shared memory of the node if
// all ranks are on one, else MPI. Collective; a waiting rank sleeps. Returns no value if MPI failed.
template <class T>
std::optional<std::vector<T>> tell_all(const Team& team, const T& own) {
  static_assert(alignof(T) == alignof(std::int64_t) && sizeof(T) <= NodeMemory::word_bytes);
  std::vector<T> all(static_cast<std::size_t>(team.ranks));
  if (team.node && team.node->has_all()) {
    team.node->tell_all(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
    return all;
  }
  constexpr std::size_t number_bytes = sizeof(std::int64_t);
  const std::span<const std::int64_t> numbers(reinterpret_cast<const std::int64_t*>(&own), sizeof own / number_bytes);
  if (!mpi::gather_all(team.comm, numbers, reinterpret_cast<std::int64_t*>(all.data()))) return std::nullopt;
  return all;
}

// Returns the more significant of two errno values, independent of their order. ECANCELED, and ETIMEDOUT if another
// rank failed without waiting, only say that something else went wrong, so any other error has precedence.
inline int one_of(int error, int other) {
  const auto weight = [](int one) { return one == 0 ? 0 : one == ECANCELED ? 1 : one == ETIMEDOUT ? 2 : 2 + one; };
  return weight(error) < weight(other) ? other : error;
}

// Returns one errno value of all ranks, the same in all, or 0 if none failed. EIO if MPI failed. Collective.
inline int agree_on_error(const Team& team, int error) {
  const std::optional<std::vector<std::int64_t>> all = tell_all(team, std::int64_t{error});
  if (!all) return EIO;
  for (const std::int64_t theirs : *all) error = one_of(error, static_cast<int>(theirs));
  return error;
}

}  // namespace hocket::runtime::collective
