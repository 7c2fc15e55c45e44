// Steering carries out the decisions of core policies (CLARISSE+FlexMPI, Fig. 3: the resource manager and the library
// controllers).
//
//  an event → policy → CoreChange → cores from the resource manager → RECONFIGURE at Iter_reconf1 … RECONFIGURATION
//           → RECONFIGURE back at Iter_reconf2 … RECONFIGURATION → the cores are free again
//
// Steering publishes every decision (DECISION) and compares every prediction behind it with what happens (OUTCOME). An
// application gives its cores back if it refuses or fails a resize, dies, ends early, or if its next phase comes
// otherwise than predicted. A new application that finds no free cores gets them from expanded ones. Temporary
// expansions are reclaimed first, then those whose cores help least by their speedup curve, the latest first among
// equals.
//
// Applications without a speedup curve are measured on line where a policy needs one (section 4.1, the on-line
// predictor). They are resized at their start to a few sizes, for some I/O periods each, and back. Policies' own
// resizes measure further sizes. When the application leaves, PROFILE hands the measurements on to be stored.
//
// Cores become free only when the application reports that it is back. Until then Steering keeps them for the request
// that the application has not answered. A size that an operator sets by hand stays until the next SET_POLICY.
//
// Steering is a part of the coordinator; pure, not thread-safe. Without a core policy an event costs only the
// accounting of cores, which does not depend on the number of applications.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coordinator/command.hpp"
#include "coordinator/cores/allocations.hpp"
#include "coordinator/cores/course.hpp"
#include "coordinator/cores/measuring.hpp"
#include "coordinator/cores/outcomes.hpp"
#include "coordinator/cores/resizing.hpp"
#include "coordinator/cores/starts.hpp"
#include "model/cluster.hpp"
#include "model/cores.hpp"
#include "policy/core_policy.hpp"

namespace hocket::coordinator {

// The courses of all applications (course.hpp), and what else is remembered to carry out core decisions.
class Steering {
 public:
  // All arguments must outlive this object. `decisions` counts the published decisions; AccessController shares the
  // counter.
  Steering(const CoordinatorSettings& settings, model::Cluster& cluster, model::Cores& cores, Resizing& resizing,
           std::int64_t& decisions);

  // Event handlers. Each must be called after the cluster and Resizing have handled the event; `application` is its
  // subject.
  void joined(const Moment& moment, model::Application& application);
  void profile(const Moment& moment, const event::Profile& profile);
  void malleable(const Moment& moment, model::Application& application, const event::Malleable& said);
  void phase(const Moment& moment, model::Application& application, const event::IoPhase& phase);
  void iterations(const Moment& moment, model::Application& application);
  void ended(const Moment& moment, model::Application& application, const event::Reconfiguration& record);
  void resized_by_tool(const Moment& moment, model::Application& application);
  // Handles the departure of a member whose application continues.
  void member_left(const Moment& moment, model::Application& application);
  // Hands the application's measurements on to be stored (PROFILE), before its last member is removed.
  static void leaves(const Moment& moment, const model::Application& application);
  // Handles the end of an application, after its removal: its cores are free.
  void gone(const Moment& moment, AppId app, const std::string& name, const std::string& job);
  // Handles a request for cores for an application that is about to start, and the departure of a member or tool, which
  // withdraws it.
  void ask_cores(const Moment& moment, const event::AskCores& asked);
  void asker_left(const Moment& moment);
  // Handles a node that has come, with its cores, or gone.
  void node_cores(const Moment& moment, const event::NodeCores& told);
  // Handles what the resource manager has given to the job of an application. `shared_out` must follow, after the
  // resizes that have waited for it.
  void held_nodes(const Moment& moment, const event::HeldNodes& held) { allocations_.held(moment, held); }
  void shared_out(const Moment& moment) { after(moment, {}); }
  // The resizes that wait for cores of the resource manager.
  Allocations& allocations() { return allocations_; }
  // Sets the places of a resize within the application's allocation, and takes the cores. The resize must follow.
  void place(const model::Application& application, event::Resize& resize);
  // True if the resize has no places after that, and would end the job: its launcher cannot choose nodes itself.
  bool lacks_places(const model::Application& application, const event::Resize& resize) const;
  // Handles a resize that was refused.
  void refused(const model::Application& application) { follow(application); }
  // Replaces the core policies. Permanent changes by a policy that is no longer in force are undone.
  void set_policies(const Moment& moment, const policy::Combination& policies);
  void tick(const Moment& moment);

  std::optional<Time> deadline() const;

 private:
  using Courses = std::map<AppId, Course>;

  // steering.cpp: the life of a course. `follow` allocates to the application the cores that it uses or may still use:
  // for the request under way and for the size to return to. It releases the others. Those in use are where the
  // application says that it runs.
  void follow(const model::Application& application);
  // Feeds an input into the course's state machine (course_states.hpp) and carries out the actions. `why` explains a
  // decision that is given up. The course may be forgotten afterwards.
  void apply(const Moment& moment, model::Application& application, Course& course, CourseInput input,
             const event::Reason& why = {});
  // Ends every handler: reclaims cores that are missing, then asks the policies.
  void after(const Moment& moment, AppId subject);
  // Handles the answer to the request under way. `done`: the application made the change.
  void answered(const Moment& moment, model::Application& application, Course& course, bool done);
  // Handles an I/O phase while a course is in force.
  void fresh_phase(const Moment& moment, model::Application& application, Course& course);
  void overdue(const Moment& moment, model::Application& application, Course& course);
  // Requests `course.goal` instead of what was requested before.
  void go_back(const Moment& moment, model::Application& application, Course& course);
  // True if the application has reached the size it was to return to. May adjust `course.goal` to it.
  static bool is_back(const model::Application& application, Course& course);
  void retry_return(const Moment& moment, model::Application& application, Course& course);
  // Handles the return to the earlier size, which the application has reported.
  void arrive(const Moment& moment, model::Application& application, Course& course);
  // Ends the temporary change; the permanent one below it is in force again.
  void drop_passing(const Moment& moment, model::Application& application, Course& course);
  // Cancels the top layer's decision for the reason `why`. The application is to return to its earlier size; a size
  // that it chose by itself remains.
  void give_up(const Moment& moment, model::Application& application, Course& course, event::Reason why);
  // Handles a size that nobody requested: the application has changed it by itself.
  void check_size(const Moment& moment, model::Application& application, Course& course);
  void end_unwanted(const Moment& moment, model::Application& application, Course& course);
  void forget(AppId app);
  void show_expansion(model::Application& application, const Course& course) const;
  // Sets the time by which the course must progress, else `overdue` is called; 0: no time limit.
  void bound(AppId app, Course& course, Time until);

  // deciding.cpp: from a policy's decision to the request
  void ask_policies(const Moment& moment, AppId subject);
  // Returns the allocations for which the policy is asked: that of the subject; if there is none, all for a sharing
  // one.
  std::vector<std::string> allocations_for(const policy::CorePolicy& policy, AppId subject) const;
  void carry_out(const Moment& moment, const policy::CorePolicy& policy, const policy::CoreChange& change);
  // Returns why a change cannot be carried out; NoReason if nothing prevents it.
  event::Reason what_prevents(const Moment& moment, const model::Application& application,
                              const policy::CoreChange& change) const;
  // Returns the numbers if resizes would stop the application for too large a share of its time.
  std::optional<event::StopsTooLong> stops_too_long(const Moment& moment, const model::Application& application,
                                                    std::int64_t processes, bool returns) const;
  // Allocates the cores that are missing and sends RECONFIGURE. On failure nothing has changed.
  SizeRequest request_size(const Moment& moment, model::Application& application, std::int64_t processes,
                           std::int64_t at_iteration);
  // Returns the nodes for the processes to be started, as RECONFIGURE carries them; "" if the launcher may choose.
  std::string places_for(const model::Application& application, std::int64_t processes,
                         const std::vector<NodeCount>& fresh) const;
  // True if each new process of the application needs a place.
  bool must_be_placed(const model::Application& application) const;
  // Publishes that a policy left a conflict alone.
  void leave(const Moment& moment, std::string_view policy, const policy::LeftAlone& left);
  // Publishes one of Steering's own decisions. Returns its number.
  std::int64_t tell(const Moment& moment, const model::Application& application, std::string_view policy,
                    const char* action, std::int64_t to, event::Reason reason, event::Reason obstacle = {});

  // reclaiming.cpp: cores for applications that started without free ones
  void reclaim(const Moment& moment);
  std::int64_t coming_back() const;
  Courses::iterator choose_victim();

  // measuring.cpp: the resizes that measurements need
  void start_measuring(const Moment& moment, model::Application& application);
  void take_iterations(const Moment& moment, model::Application& application, Course& course);
  void go_on_measuring(const Moment& moment, model::Application& application, Course& course);
  bool ask_to_measure(const Moment& moment, model::Application& application, Course& course, std::int64_t processes);

  const CoordinatorSettings& settings_;
  model::Cluster& cluster_;
  model::Cores& cores_;
  Resizing& resizing_;
  const policy::CorePolicy* interference_;
  const policy::CorePolicy* sharing_;
  double together_;  // policy::CoreView::together
  double most_slowdown_;
  Courses courses_;
  Outcomes outcomes_;
  Measuring measuring_;
  Starts starts_;
  Allocations allocations_;
  std::set<std::pair<Time, AppId>> due_;                 // time limits of the courses
  std::set<AppId> set_by_tool_;                          // resized by hand: left alone until the next SET_POLICY
  std::map<AppId, std::int64_t> begun_;                  // policies' sizes that may be under way beside a tool's resize
  std::map<AppId, Refusal> refused_;                     // applications that refused their last resize
  std::map<AppId, std::vector<ReportedConflict>> told_;  // conflicts reported in the present I/O period
  std::set<AppId> told_once_;                            // applications with a report that is made only once
  std::int64_t& decisions_made_;                         // published decisions, of AccessController too
};

}  // namespace hocket::coordinator
