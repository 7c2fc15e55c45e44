// The cores of the machine and who has them: what the resource manager decides with (CLARISSE+FlexMPI, section 4.4).
//
// Who was started with more processes than there are free cores has them all the same (`taken_beyond`): its mpiexec did
// not ask. An expansion never takes what is not free.
//
// Costs: the number of nodes; of `release`, those that the application is on.
//
// Pure, not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"

namespace hocket::model {

struct Node {
  std::string name;
  std::int64_t cores = 0;
};

// So many cores of a node.
struct Share {
  std::string node;
  std::int64_t cores = 0;
};

class Cores {
 public:
  explicit Cores(std::vector<Node> nodes);

  std::int64_t total() const { return total_; }
  // Not taken by anybody; 0 where more is taken than there is.
  std::int64_t free() const { return taken_ < total_ ? total_ - taken_ : 0; }
  std::int64_t taken_beyond() const { return taken_ > total_ ? taken_ - total_ : 0; }
  std::int64_t of(AppId app) const;
  std::vector<Share> shares_of(AppId app) const;

  // The application runs with so many more processes, whether they were free or not: of its node first, then of the
  // emptiest.
  void claim(AppId app, std::int64_t cores, const std::string& node);
  // So many more, all or nothing: nodes that it has cores on first, the one with the most of its cores first
  // (locality), then nodes where all fit, then those with the most free cores. Where each one goes.
  std::optional<std::vector<Share>> allocate(AppId app, std::int64_t cores);
  // So many fewer: from the nodes where it has the fewest first. At most what it has.
  void release(AppId app, std::int64_t cores);
  void release_all(AppId app);

 private:
  struct NodeState {
    std::string name;
    std::int64_t cores = 0;
    std::int64_t taken = 0;
    std::int64_t free() const { return taken < cores ? cores - taken : 0; }
  };
  static constexpr std::int64_t most_claimed = std::int64_t{1} << 60;  // of all: keeps sums within int64
  void give(AppId app, std::size_t place, std::int64_t cores);
  std::vector<std::size_t> places_for(AppId app) const;

  std::vector<NodeState> nodes_;
  std::map<AppId, std::map<std::size_t, std::int64_t>> of_;  // cores by place in nodes_
  std::int64_t total_ = 0;
  std::int64_t taken_ = 0;
};

}  // namespace hocket::model
