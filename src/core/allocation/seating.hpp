// Which servers jobs get, once their numbers are known. A job keeps servers that it has where that is possible, and
// loads are even. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace hocket::allocation {

// A job before its servers are chosen.
struct Unseated {
  int servers = 0;                      // how many it is to have; no more than the pool has are chosen
  bool shares_one = false;              // it uses the one server that jobs share (AllocationRules::shared_server)
  bool stays = false;                   // it keeps all servers that it has and that are in the pool
  std::vector<std::string_view> has{};  // names, perhaps of servers that have gone
};

// Returns the servers of each job, in the order of the pool. While all jobs together have no more servers than the
// pool, no server has two jobs. Else the servers have equally many jobs, as far as what jobs keep allows that.
std::vector<std::vector<std::string_view>> seats_of(std::span<const Unseated> jobs,
                                                    std::span<const std::string_view> pool);

}  // namespace hocket::allocation
