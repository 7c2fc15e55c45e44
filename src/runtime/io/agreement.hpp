// What the ranks of a file say to each other in few words, all at once.
#pragma once

#include <algorithm>
#include <cerrno>
#include <optional>
#include <span>
#include <vector>

#include "runtime/io/exchange.hpp"
#include "runtime/mpi/calls.hpp"

namespace hocket::runtime::io {

// What every rank says, in the order of ranks: a struct of std::int64_t. Through the memory of the node where all are
// on one, else by MPI. Collective; who waits sleeps. Nothing: MPI failed.
template <class T>
std::optional<std::vector<T>> tell_all(const Team& team, const T& own) {
  constexpr int numbers = sizeof(T) / sizeof(std::int64_t);
  static_assert(sizeof(T) % sizeof(std::int64_t) == 0 && sizeof(T) <= NodeMemory::word_bytes);
  std::vector<T> all(static_cast<std::size_t>(team.ranks));
  if (team.node && team.node->has_all()) {
    team.node->tell_all(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
    return all;
  }
  MPI_Request request = mpi::no_request();
  if (HOCKET_PMPI(Iallgather)(&own, numbers, mpi::int64_type(), all.data(), numbers, mpi::int64_type(), team.comm,
                              &request) != MPI_SUCCESS ||
      !mpi::wait_asleep(request, mpi::Patience::for_data()))
    return std::nullopt;
  return all;
}

// The largest of all ranks' errors (errno). Collective.
inline int agree_on_error(const Team& team, int error) {
  const std::optional<std::vector<std::int64_t>> all = tell_all(team, std::int64_t{error});
  return all ? static_cast<int>(*std::max_element(all->begin(), all->end())) : EIO;
}

}  // namespace hocket::runtime::io
