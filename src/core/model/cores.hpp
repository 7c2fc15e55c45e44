// Cores is the account of the machine's cores and of the applications that have them. The resource manager decides
// with it (CLARISSE+FlexMPI, section 4.4).
//
// An application may start with more processes than there are free cores, because its mpiexec does not ask. It gets
// them anyway (`taken_beyond`). An expansion takes free cores only. An application that reports on which nodes its
// processes run has its cores there (`settle`), so nobody else is given a core that it has not left.
//
// Nodes may come and go. What applications have on a node that is away counts for nothing until the node is back.
//
// A resource manager such as Slurm gives each job an allocation. An application of a job takes free cores of its
// allocation alone (`hold`, `assign`). All others share the pool: the cores that no allocation holds.
//
// Complexity: `claim` and `allocate` sort the nodes; `free_in` visits those of the allocation; `of`, `shares_of`,
// `settle` and the releases visit only the application's nodes.
//
// Pure, not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/ids.hpp"
#include "base/node_counts.hpp"

namespace hocket::model {

struct Node {
  std::string name;
  std::int64_t cores = 0;
};

// A node, and how many of its cores applications have. More than there are: some were started without free ones.
struct NodeUse {
  std::string name;
  std::int64_t cores = 0;  // 0: the node is away
  std::int64_t taken = 0;
};

class Cores {
 public:
  explicit Cores(const std::vector<Node>& nodes);

  std::int64_t total() const { return total_; }
  // Returns the number of cores that nobody has; 0 if more are taken than exist.
  std::int64_t free() const { return taken_ < total_ ? total_ - taken_ : 0; }
  std::int64_t taken_beyond() const { return taken_ > total_ ? taken_ - total_ : 0; }
  std::int64_t of(AppId app) const;
  // Returns how many of those are on nodes that are away.
  std::int64_t away_of(AppId app) const;
  std::vector<NodeCount> shares_of(AppId app) const;

  // Records that an application runs with that many more processes, free cores or not. They are placed on `node`
  // first, then on the nodes with the most free cores.
  void claim(AppId app, std::int64_t cores, const std::string& node);
  // Takes that many of `free_for`, all or nothing, and returns them by node. Nodes of the application come first, the
  // one with the most of its cores first (locality). The rest goes to one node where it fits, otherwise to the nodes
  // with the most free cores. Returns nothing if too few are free.
  std::optional<std::vector<NodeCount>> allocate(AppId app, std::int64_t cores);
  // Records where the application's processes run, and that it has `cores` in all, or as many as run. It has those of
  // `runs`, free or not. Of the others, it keeps what it had elsewhere as far as `cores` permits, and claims the rest
  // as `claim` does. Nodes that nobody has named before are not believed: their processes count as running anywhere.
  void settle(AppId app, std::int64_t cores, const std::vector<NodeCount>& runs, const std::string& node);
  // Gives back that many cores, at most all, from the nodes where the application has the fewest first.
  void release(AppId app, std::int64_t cores);
  void release_all(AppId app);

  // Records which cores the allocation holds from now on. None: it has ended, and its applications use the pool. If
  // `set_node` names the nodes, one that it has not named has the cores that allocations hold there. Otherwise such
  // nodes do not count; an allocation of those alone changes nothing. If a node is named twice, its last number counts.
  void hold(const std::string& allocation, const std::vector<NodeCount>& nodes);
  // Lets the application take cores of this allocation alone; "": those of the pool.
  void assign(AppId app, const std::string& allocation);
  // Returns the application's allocation, even if that holds nothing; "": it has none.
  const std::string& allocation_of(AppId app) const;
  // Returns the allocation whose cores the application takes; "": it uses the pool.
  std::string allocation_in_use(AppId app) const;
  // Returns the names of all allocations, and "" for the pool.
  std::vector<std::string> allocations() const;
  // Returns what the allocation holds; for the pool, nothing.
  std::vector<NodeCount> held_by(const std::string& allocation) const;
  // Returns the cores that applications of the allocation, or of the pool, may still take.
  std::int64_t free_in(const std::string& allocation) const;
  std::int64_t free_for(AppId app) const { return free_in(allocation_of(app)); }
  // True if no application has a core on that node, of whichever allocation.
  bool is_idle(std::string_view node) const;

  // Sets the cores of a node that has come, or has other ones now. 0: it is away. The first node that is named replaces
  // a single one without a name.
  void set_node(const std::string& name, std::int64_t cores);
  // Returns the nodes that are not away, and those on which applications have cores nevertheless.
  std::vector<NodeUse> nodes() const;
  // True if new processes can be placed on one node or another.
  bool has_several() const { return nodes_.size() > 1; }
  // True if the nodes are those of `set_node`.
  bool is_told() const { return is_told_; }
  // Returns how many cores beyond the existing ones are taken on that node; 0 if it is unknown or away.
  std::int64_t beyond_on(std::string_view node) const;

 private:
  struct NodeState {
    std::string name;
    std::int64_t cores = 0;
    std::int64_t taken = 0;
    std::int64_t held = 0;      // by allocations
    std::int64_t reserved = 0;  // of these, what their applications have not taken
    bool is_away = false;
    bool is_held_only = false;  // known from allocations alone
    std::int64_t free() const { return !is_away && taken < cores ? cores - taken : 0; }
  };
  using Places = std::map<std::size_t, std::int64_t>;  // cores by index in nodes_
  struct HeldCores {
    Places cores;
    Places taken;  // by its applications
    std::int64_t unused(std::size_t place) const;
  };
  static constexpr std::int64_t most_claimed = std::int64_t{1} << 60;  // in all: keeps sums within int64
  static constexpr std::int64_t most_held = std::int64_t{1} << 20;     // of one node, by one allocation
  static constexpr std::size_t most_nodes = std::size_t{1} << 16;      // any user may name nodes of an allocation
  void give(AppId app, std::size_t place, std::int64_t cores);
  // Counts cores that an application of the allocation has taken.
  void count(HeldCores& holding, std::size_t place, std::int64_t cores);
  // Returns the allocation of that name; nullptr: there is none, or it is the pool.
  const HeldCores* find(const std::string& allocation) const;
  HeldCores* find(const std::string& allocation);
  // Returns the free cores of a node that an application of `holding` may take; nullptr: one of the pool.
  std::int64_t free_at(std::size_t place, const HeldCores* holding) const;
  // Sets the cores of a node, and whether it is there.
  void set_cores(NodeState& node, std::int64_t cores);
  // Gives back that many cores, but none of `kept`.
  void release(AppId app, std::int64_t cores, const Places& kept);
  std::vector<std::size_t> places_for(AppId app) const;
  std::size_t add_node(const std::string& name);
  // Returns the places of nodes that were known from allocations alone, and that none holds any more.
  std::vector<std::size_t> unused_places() const;
  // Adds a node that allocations alone name, in one of the places if it is not in `used`. Returns its place, or nothing
  // if there are too many nodes.
  std::optional<std::size_t> add_held_node(const std::string& name, std::vector<std::size_t>& places,
                                           const Places& used);

  std::vector<NodeState> nodes_;
  std::unordered_map<std::string, std::size_t> by_name_;
  std::map<AppId, Places> of_;
  std::map<std::string, HeldCores> holdings_;
  std::map<AppId, std::string> allocation_of_;
  std::int64_t total_ = 0;  // of the nodes that are not away
  std::int64_t taken_ = 0;  // on these
  std::int64_t given_ = 0;  // on all nodes
  bool is_told_ = false;
};

}  // namespace hocket::model
