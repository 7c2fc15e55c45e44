// Allocations follows what a resource manager such as Slurm has given to the jobs of applications (HELD_NODES). An
// application gets cores of its allocation alone (model/cores.hpp). If its user wants that, the allocation shrinks and
// grows with it:
//
//   it has left nodes for good → the books forget them → CHANGE_ALLOCATION → HELD_NODES without them, or with them
//   RESIZE beyond what is held → CHANGE_ALLOCATION → HELD_NODES with more, or the reason for none → the RESIZE again
//
// The tool that has started the application reports the allocation, asks the resource manager, and stays connected. A
// RESIZE waits only for such a tool. Policies ask for nothing: a queue takes longer than what they decide about.
//
// Pure, not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/command.hpp"
#include "model/cluster.hpp"
#include "model/cores.hpp"

namespace hocket::coordinator {

class Allocations {
 public:
  // Both arguments must outlive this object.
  Allocations(const model::Cluster& cluster, model::Cores& cores) : cluster_(cluster), cores_(cores) {}

  // A RESIZE that waits for cores, with the event that brought it.
  struct WaitingResize {
    event::Event event;
    event::Resize resize;
    std::vector<NodeCount> fresh{};  // nodes that have come for it
  };

  // Handles HELD_NODES. Returns false if it is refused.
  bool held(const Moment& moment, const event::HeldNodes& held);
  // Asks for the cores that the application lacks for a resize, if its user permits that. Returns true if the resize
  // must wait for `answered`.
  bool ask(const Moment& moment, const model::Application& application, const event::Resize& resize);
  // Returns the resizes whose wait is over, and forgets them: by this HELD_NODES, or because their tool has left.
  std::vector<WaitingResize> answered();
  // Forgets the resize that this member or tool has sent. Returns false if none waits.
  bool withdraw(MemberId asking);
  // Gives back the nodes that came for a resize which has not begun.
  void unused(const Moment& moment, const model::Application& application, const std::vector<NodeCount>& fresh);
  // Lets an application use the allocation of its job, unless it is known to run elsewhere: its launcher may have
  // started it on nodes that are not the job's. Call it when it has arrived, and when it says where it runs.
  void joined(const model::Application& application);
  // Handles the end of an application. Its allocation ends if no tool reports it any more.
  void gone(AppId app, const std::string& job);
  // Handles the departure of a tool. Its application keeps the allocation.
  void tool_left(MemberId tool);
  // Gives back the nodes that the application has left for good. `had`: its cores before.
  void left(const Moment& moment, const model::Application& application, const std::vector<NodeCount>& had);
  // True if the allocation has other nodes than at the start. Then MPICH's mpiexec cannot choose nodes itself.
  bool has_changed(const model::Application& application) const;

 private:
  struct AllocatedJob {
    MemberId tool;  // none: it has left
    std::string allocation;
    std::vector<NodeCount> nodes{};  // as its tool says
    std::int64_t least_nodes = 0;
    std::int64_t most_nodes = 0;
    bool has_changed = false;
    bool is_asking = false;  // for cores: the answer has not come
    std::optional<WaitingResize> waiting{};
  };
  using Jobs = std::map<std::string, AllocatedJob>;

  const model::Application* application_of(const std::string& job) const;
  // Tells the books what the jobs of an allocation hold together: each tool knows of the nodes that it has asked for.
  void hold(const std::string& allocation);
  void assign(const model::Application& application, const std::string& allocation);
  // Forgets a job, and its allocation unless another job has the same one.
  Jobs::iterator forget(Jobs::iterator job);
  // Takes idle nodes among `nodes` out of the books, and asks to give them back.
  void give_back(const Moment& moment, AllocatedJob& job, const std::vector<NodeCount>& nodes);
  // True if it alone uses its allocation, no tool has another program for that, and each of its processes is known to
  // run there.
  bool runs_within(const model::Application& application, const std::string& allocation) const;

  const model::Cluster& cluster_;
  model::Cores& cores_;
  Jobs jobs_;  // by the job of HELLO
};

}  // namespace hocket::coordinator
