// Cores is the account of the machine's cores and of the applications that have them. The resource manager decides
// with it (CLARISSE+FlexMPI, section 4.4).
//
// An application may start with more processes than there are free cores, because its mpiexec does not ask. It gets
// them anyway (`taken_beyond`). An expansion takes free cores only.
//
// Complexity: `claim` and `allocate` sort the nodes; `of`, `shares_of` and the releases visit only the application's
// nodes.
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

// A number of cores on one node.
struct Share {
  std::string node;
  std::int64_t cores = 0;
};

class Cores {
 public:
  explicit Cores(std::vector<Node> nodes);

  std::int64_t total() const { return total_; }
  // Returns the number of cores that nobody has; 0 if more are taken than exist.
  std::int64_t free() const { return taken_ < total_ ? total_ - taken_ : 0; }
  std::int64_t taken_beyond() const { return taken_ > total_ ? taken_ - total_ : 0; }
  std::int64_t of(AppId app) const;
  std::vector<Share> shares_of(AppId app) const;

  // Records that an application runs with that many more processes, free cores or not. They are placed on `node`
  // first, then on the nodes with the most free cores.
  void claim(AppId app, std::int64_t cores, const std::string& node);
  // Takes that many free cores, all or nothing, and returns them by node. Nodes of the application come first, the
  // one with the most of its cores first (locality). The rest goes to one node where it fits, otherwise to the nodes
  // with the most free cores. Returns nothing if too few are free.
  std::optional<std::vector<Share>> allocate(AppId app, std::int64_t cores);
  // Gives back that many cores, at most all, from the nodes where the application has the fewest first.
  void release(AppId app, std::int64_t cores);
  void release_all(AppId app);

 private:
  struct NodeState {
    std::string name;
    std::int64_t cores = 0;
    std::int64_t taken = 0;
    std::int64_t free() const { return taken < cores ? cores - taken : 0; }
  };
  static constexpr std::int64_t most_claimed = std::int64_t{1} << 60;  // in all: keeps sums within int64
  void give(AppId app, std::size_t place, std::int64_t cores);
  std::vector<std::size_t> places_for(AppId app) const;

  std::vector<NodeState> nodes_;
  std::map<AppId, std::map<std::size_t, std::int64_t>> of_;  // by application and index in nodes_
  std::int64_t total_ = 0;
  std::int64_t taken_ = 0;
};

}  // namespace hocket::model
