// Gives each of several jobs a number of I/O servers, by the policies of GekkoFWD, section 3.
//
//   jobs (nodes, processes, bandwidth by number of servers) + a pool of servers ── policy ──► servers of each job
//
// Pure. Bandwidths are in bytes per second, as integers, so that equal sums are equal in any order of addition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace hocket::allocation {

// A number of servers that a job may have, and the bandwidth that it has then. 0 servers: it accesses the file system
// directly. The bandwidths of all jobs, and the servers of all, must each add up to what their type holds.
struct Choice {
  int servers = 0;
  std::int64_t bandwidth = 0;
};

struct Job {
  std::string name;
  int nodes = 1;
  int processes = 1;
  std::vector<Choice> choices;  // at least one; `servers` rises
};

// The servers that are given out, and the whole machine, by whose ratio `static` goes.
struct Pool {
  int servers = 0;
  int system_nodes = 0;
  int system_servers = 0;
};

struct AllocationRules {
  bool direct = true;           // a job may have no server, where its choices have that
  bool divides_evenly = false;  // a job's servers divide its nodes (section 3.1)
  // `mckp` gives no job less than this part of its bandwidth under `static`: 0.8 means a loss of 20 % at most.
  std::optional<double> least_of_static{};
  // `mckp` may set one server aside that jobs share (section 3.1): a job there is taken to have its bandwidth with one
  // server, divided by the number of jobs.
  bool shared_server = false;
};

struct JobAllocation {
  int servers = 0;
  bool shared = false;         // it uses the server that jobs share
  std::int64_t bandwidth = 0;  // expected
};

struct Allocation {
  std::vector<JobAllocation> jobs;  // in the order of the jobs
  int servers = 0;                  // given out in all; more than the pool has if a rule does so
  std::int64_t bandwidth = 0;       // expected in all (Equation 2)
};

// The policies, as `allocate` knows them:
//   zero, one        no server, or one, for each job
//   static           ceil(nodes / R) with R = nodes of the machine / servers of the machine
//   size, process    round(F · s / sum of s), with s the nodes or the processes of the job, and F the pool's servers
//   mckp             the largest bandwidth in all that the pool allows, with the fewest servers that give it
//   oracle           the largest bandwidth of each job, whatever the pool has: an upper bound
// Where a job does not have the number that a rule gives, it gets the next lower one that it has, or else its lowest.
// If a rule gives out more servers than the pool has, jobs share them: bandwidths are multiplied by pool / given out.
inline constexpr std::string_view policies[] = {"zero", "one", "static", "size", "process", "mckp", "oracle"};

// Fails if the policy is unknown, if a job has no choice that the rules allow, and, for `mckp`, if no allocation
// satisfies them. Preconditions: the numbers of jobs and pool are positive; a pool may have no server.
Result<Allocation> allocate(std::string_view policy, std::span<const Job> jobs, const Pool& pool,
                            const AllocationRules& rules = {});

// An allocation that a job is not to have.
struct OtherThan {
  std::size_t job = 0;  // its number
  JobAllocation given;
};

// Returns the best allocation by `mckp` in which that job has something else; nothing if there is none.
// Preconditions: those of `allocate`, which has found an allocation.
std::optional<Allocation> next_best(std::span<const Job> jobs, const Pool& pool, const AllocationRules& rules,
                                    const OtherThan& other);

// Returns the job with the choices that the rules allow; perhaps none.
Job restricted(const Job& job, const AllocationRules& rules);

}  // namespace hocket::allocation
