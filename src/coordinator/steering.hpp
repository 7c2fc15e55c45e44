// Carries out what policies for cores decide (CLARISSE+FlexMPI, Fig. 3: the resource manager and the library
// controllers).
//
//   an event → policy → CoreChange → cores from the resource manager → RECONFIGURE at Iter_reconf1 … RECONFIGURATION
//            → RECONFIGURE back at Iter_reconf2 … RECONFIGURATION → the cores are free again
//
// Every decision is told (DECISION), and every prediction it rested on is held against what happens (OUTCOME). An
// application that refuses or fails a resize, dies, ends early, or whose next phase comes otherwise than predicted,
// gives its cores back. A new application that finds no free cores gets them from expanded ones: temporary expansions
// first, then those whose cores help least by their speedup curve, the latest first among equals.
//
// Applications without a speedup curve are measured on line where a policy needs one: resized at their start to a few
// sizes, for some I/O periods each, and back (section 4.1, the on-line predictor). Further sizes are measured while
// policies give them. What was measured is remembered: PROFILE goes out when the application leaves.
//
// Cores are free again when the application has told that it is back, never before: what it was asked for and did not
// answer is kept for it. What an operator resizes by hand stays as it is until the next SET_POLICY.
//
// A part of the coordinator; pure and not thread-safe as it is. Without a policy for cores an event costs what the
// cores' book-keeping costs, which does not depend on the number of applications.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coordinator/command.hpp"
#include "coordinator/course.hpp"
#include "coordinator/measuring.hpp"
#include "coordinator/outcomes.hpp"
#include "coordinator/resizing.hpp"
#include "model/cluster.hpp"
#include "model/cores.hpp"
#include "policy/core_policy.hpp"

namespace hocket::coordinator {

class Steering {
 public:
  // All must outlive it. `decisions`: how many were told.
  Steering(const Settings& settings, model::Cluster& cluster, model::Cores& cores, Resizing& resizing,
           std::int64_t& decisions);

  // Each after the cluster and Resizing have taken in the event; the application is the one that it is about.
  void joined(const Moment& moment, model::Application& application);
  void profile(const Moment& moment, const event::Profile& profile);
  void malleable(const Moment& moment, model::Application& application, const event::Malleable& said);
  void phase(const Moment& moment, model::Application& application, const event::IoPhase& phase);
  void iterations(const Moment& moment, model::Application& application);
  void ended(const Moment& moment, model::Application& application, const event::Reconfiguration& record);
  void resized_by_tool(const Moment& moment, model::Application& application);
  // A member has left, others remain.
  void member_left(const Moment& moment, model::Application& application);
  // Its last member is about to leave: what was measured of it is handed on (PROFILE), to be remembered.
  static void leaves(const Moment& moment, const model::Application& application);
  void gone(const Moment& moment, AppId app, const std::string& name);
  void set_policies(const Moment& moment, const policy::Combination& policies);
  void tick(const Moment& moment);

  std::optional<Time> deadline() const;

 private:
  using Courses = std::map<AppId, Course>;

  // steering.cpp: what happens
  void follow(const model::Application& application);
  void after(const Moment& moment, AppId subject);
  void advance(const Moment& moment, model::Application& application, Course& course, bool done);
  void fresh_phase(const Moment& moment, model::Application& application, Course& course);
  void phase_came(const Moment& moment, model::Application& application, Course& course);
  void overdue(const Moment& moment, model::Application& application, Course& course);
  void go_back(const Moment& moment, model::Application& application, Course& course, std::int64_t at_iteration);
  static bool is_back(const model::Application& application, Course& course);
  void retry_return(const Moment& moment, model::Application& application, Course& course);
  void back(const Moment& moment, model::Application& application, Course& course);
  void drop_passing(const Moment& moment, model::Application& application, Course& course);
  void give_up(const Moment& moment, model::Application& application, Course& course, const std::string& why);
  void check_size(const Moment& moment, model::Application& application, Course& course);
  void end_unwanted(const Moment& moment, model::Application& application, Course& course);
  void forget(AppId app);
  void show_expansion(model::Application& application, const Course& course) const;
  void bound(AppId app, Course& course, Time until);

  // deciding.cpp: what is decided
  void ask_policies(const Moment& moment, AppId subject);
  void carry_out(const Moment& moment, const policy::CorePolicy& policy, const policy::CoreChange& change);
  std::string what_prevents(const Moment& moment, const model::Application& application,
                            const policy::CoreChange& change) const;
  std::string why_too_often(const Moment& moment, const model::Application& application, std::int64_t processes,
                            bool returns) const;
  Result<RequestId> request_size(const Moment& moment, model::Application& application, std::int64_t processes,
                                 std::int64_t at_iteration);
  std::string places_for(const model::Application& application, std::int64_t processes,
                         const std::vector<model::Share>& fresh) const;
  void leave(const Moment& moment, std::string_view policy, const policy::LeftAlone& left);
  std::int64_t tell(const Moment& moment, const model::Application& application, std::string_view policy,
                    const char* action, std::int64_t to, std::string text);

  // reclaiming.cpp
  void reclaim(const Moment& moment);
  std::int64_t coming_back() const;
  Courses::iterator choose_victim();

  // measuring.cpp has what is measured; these resize for it
  void start_measuring(const Moment& moment, model::Application& application);
  void take_iterations(const Moment& moment, model::Application& application, Course& course);
  void go_on_measuring(const Moment& moment, model::Application& application, Course& course);
  bool ask_to_measure(const Moment& moment, model::Application& application, Course& course, std::int64_t processes);

  const Settings& settings_;
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
  std::set<std::pair<Time, AppId>> due_;  // courses that something must have come of by then
  std::set<AppId> set_by_tool_;           // left alone until the next SET_POLICY
  std::map<AppId, std::int64_t> begun_;   // processes that they may be becoming while a tool's resize is under way
  std::map<AppId, Refusal> refused_;      // not asked again at once
  std::map<AppId, std::vector<Told>> told_;
  std::set<AppId> told_once_;
  std::int64_t& decisions_made_;  // shared with others who decide
};

}  // namespace hocket::coordinator
