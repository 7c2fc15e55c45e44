// Core policies change the number of processes of applications. CLARISSE+FlexMPI has two kinds:
//
//   interference  keeps I/O phases of two applications from overlapping (section 4.2): phase-shift, period-coupling
//   sharing       distributes the idle cores among applications (section 4.3): fair, speedup, io-aware, predictive
//
// A core policy is, like an access policy, a function without state of its own: it reads the view, and everything that
// it can do is in the CoreDecision that it returns. The coordinator carries that out (coordinator/cores/steering.hpp):
// it obtains the cores from the resource manager, sends the commands, takes cores back, and compares the predictions
// with what happens. Pure: no I/O, clock or randomness. To add a policy, write a file with a `decide` function and one
// `CorePolicy` record. Then declare the record below and add it to the list in combination.cpp.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "event/event.hpp"
#include "model/cluster.hpp"
#include "model/cores.hpp"

namespace hocket::policy {

// The operator's objective, summed over all applications: FLOP/s, or progress.
enum class Objective { flops, iterations };

// Settings of the core policies, from hocket.toml.
struct CoreSettings {
  // Time by which a predicted phase is widened (CLARISSE+FlexMPI: 2 s). Negative: two observed standard deviations.
  Duration uncertainty{-1};
  // Time for which one resize stops an application, until the application has made one. From then on its own resizes
  // count (model/resize_costs.hpp).
  Duration reconfiguration{std::chrono::seconds{1}};
  Objective objective = Objective::flops;
  // `predictive` leaves the core allocation as it is if the change is predicted to gain less than this share of the
  // objective. No sharing policy resizes an application by less than this share of its processes.
  double least_gain = 0.01;
  // Largest number of processes that policies give an application, by its name; the others have no such limit.
  std::map<std::string, std::int64_t, std::less<>> size_limits;

  // Returns the limit of an application. It may keep the processes that it has.
  std::int64_t limit_of(const model::Application& application) const {
    const auto limit = size_limits.find(application.name);
    if (limit == size_limits.end()) return model::most_processes;
    return std::max(limit->second, application.computing_processes());
  }
};

// The read-only state from which a core policy decides. Its references are valid during the call only.
struct CoreView {
  const model::Cluster& cluster;
  const model::Cores& cores;
  const CoreSettings& settings;
  Time now;
  // Assumed slowdown of applications that use a target together, if nothing was measured and the access policy lets
  // them overlap; 0: the access policy grants a target to one application at a time.
  double together = 0;
  // Share of its time by which an application may become slower than without coordination; 0: no bound.
  double most_slowdown = 0;
  // Sharing policies share out the cores of this allocation of the resource manager among its applications; "": those
  // of the pool, among the others. All are applications of the pool unless a resource manager gives them cores.
  std::string_view allocation{};

  // True if the application is one of those.
  bool has(const model::Application& application) const {
    return cores.allocation_in_use(application.id) == allocation;
  }
  // Returns the cores that are free for these applications.
  std::int64_t free() const { return cores.free_in(std::string{allocation}); }
};

// Asks the coordinator to resize one application to `processes` processes.
struct CoreChange {
  AppId application;
  std::int64_t processes = 0;
  std::int64_t at_iteration = 0;         // 0: at the next control point
  std::int64_t return_at_iteration = 0;  // control point of the return to the original size; 0: it stays
  // The predictions behind the change. `hocket explain` shows them, and they are compared with what happens.
  AppId because_of;  // the other application of the conflict; none: there is no conflict
  Time conflict{};   // predicted start of the overlap
  Duration overlap{};
  Time start_before{};       // of its next I/O phase without the change
  Time start_after{};        // the same with the change
  Duration period_after{};   // its I/O period with the change, if the change stays
  Duration resize_spread{};  // plus or minus: uncertainty of the time that its resizes stop it
  event::Reason reason;      // the numbers: what was predicted, what was chosen, what it costs
  std::string text;          // in place of `reason`: a policy in Python says it in its own words
};

// A predicted conflict that the policy does not act on, or an application whose conflicts cannot be predicted.
struct LeftAlone {
  AppId application;
  AppId because_of{};
  Time conflict{};
  Duration overlap{};
  event::Reason reason{};    // what was predicted
  event::Reason obstacle{};  // why it is left alone
  bool once = false;         // reported once for the application, not once in each of its I/O periods
  std::int64_t wanted = 0;   // processes of a change that cannot be carried out; 0: there is none
  std::string text{};        // as that of CoreChange
};

// Everything that a core policy wants done after one event.
struct CoreDecision {
  std::vector<CoreChange> changes;
  std::vector<LeftAlone> left_alone;
};

// The coordinator calls this after each event that changed what is known: HELLO, MALLEABLE, PROFILE, IO_PHASE,
// ITERATIONS, RECONFIGURATION, the end of an application (BYE, LOST), SET_POLICY. `subject` is the application that the
// event is about; it is none if that application has left, or if the event is about none. A policy must not change an
// application that is being changed already (`Application::malleability.resizing_to`, `Application::expansion`). The
// coordinator drops a change that cannot be carried out, with a DECISION that says why.
using DecideCores = CoreDecision (*)(const CoreView& view, const event::Event& event, AppId subject);

enum class CoreKind { interference, sharing };

struct CorePolicy {
  std::string_view name;
  std::string_view summary;  // one line, for people
  CoreKind kind;
  DecideCores decide;
};

// The built-in policies. Each is defined in the file of its name.
extern const CorePolicy phase_shift;
extern const CorePolicy period_coupling;
extern const CorePolicy fair;
extern const CorePolicy speedup;
extern const CorePolicy io_aware;
extern const CorePolicy predictive;

// Returns all built-in core policies, in the order in which tools list them.
std::span<const CorePolicy* const> core_policies();

}  // namespace hocket::policy
