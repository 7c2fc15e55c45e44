// Policies that change the number of processes of applications. Two kinds, as CLARISSE+FlexMPI has two controllers:
//
//   interference  avoids that I/O phases meet (section 4.2): phase-shift, period-coupling
//   sharing       shares out the cores that nobody uses (section 4.3): fair, speedup, io-aware, predictive
//
// As with access policies, a policy is a function without a state of its own: everything it may look at is in the view,
// everything it may do is in what it returns. The coordinator carries it out (coordinator/steering.hpp): it asks the
// resource manager for the cores, sends the commands, takes cores back, and holds the predictions against what happens.
//
// To add one: a file with a `decide` function and one `CorePolicy` record, and its name here and in combination.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "event/event.hpp"
#include "model/cluster.hpp"
#include "model/cores.hpp"

namespace hocket::policy {

enum class Objective { flops, iterations };  // what the operator wants most of, in all: FLOP/s, or the sum of progress

// All to be given by hocket.toml in the end.
struct CoreSettings {
  // A predicted phase is widened by so much (CLARISSE+FlexMPI: 2 s); negative: two standard deviations of what was
  // observed.
  Duration uncertainty{-1};
  // What one resize stops an application for, until it has made one: then what its resizes took
  // (model/resize_costs.hpp).
  Duration reconfiguration{std::chrono::seconds{1}};
  Objective objective = Objective::flops;
  // A sharing policy leaves the allocation as it is where the change is predicted to gain less than this share of the
  // objective.
  double least_gain = 0.01;
};

// The state, read-only, at the moment of decision. Valid during the call.
struct CoreView {
  const model::Cluster& cluster;
  const model::Cores& cores;
  const CoreSettings& settings;
  Time now;
  // How many times slower applications become beside each other on a target, where nothing was measured and the access
  // policy lets them; 0: it grants a target to one at a time.
  double together = 0;
  // No application is to become slower than uncoordinated by more than this share. 0: no bound.
  double most_slowdown = 0;
};

// An application is to become `processes` processes.
struct CoreChange {
  AppId application;
  std::int64_t processes = 0;
  std::int64_t at_iteration = 0;         // 0: at the next control point
  std::int64_t return_at_iteration = 0;  // the original size again at that control point; 0: for good
  // What it rests on: for `hocket explain`, and to be held against what happens.
  AppId because_of;  // the other application of a conflict; none: there is none
  Time conflict{};   // start of the overlap
  Duration overlap{};
  Time start_before{};       // of its next I/O phase, without the change
  Time start_after{};        // and with it
  Duration period_after{};   // its I/O period with the change, where it is for good
  Duration resize_spread{};  // plus or minus: how far the stand-still of its resizes is known
  std::string text;          // one sentence with the numbers: what was predicted, what was chosen, what it costs
};

// A conflict that was seen and left alone, or an application whose conflicts cannot be seen, and why: one sentence.
struct LeftAlone {
  AppId application;
  AppId because_of;
  Time conflict{};
  Duration overlap{};
  std::string text;
  bool once = false;  // said once of the application, not once in each of its I/O periods
};

struct CoreDecision {
  std::vector<CoreChange> changes;
  std::vector<LeftAlone> left_alone;
};

// Asked after each event that changed what is known: HELLO, MALLEABLE, PROFILE, IO_PHASE, RECONFIGURATION, an
// application that has gone (BYE, LOST), SET_POLICY. `subject` is the application that the event is about; none: it has
// gone, or it is about none. Applications that are changed already (`Application::malleability.resizing_to`,
// `Application::expansion`) are not to be changed again; changes that cannot be carried out are dropped with a DECISION
// that says why.
using DecideCores = CoreDecision (*)(const CoreView& view, const event::Event& event, AppId subject);

enum class CoreKind { interference, sharing };

struct CorePolicy {
  std::string_view name;
  std::string_view summary;  // one line
  CoreKind kind;
  DecideCores decide;
};

// The policies there are: each in the file of its name.
extern const CorePolicy phase_shift;
extern const CorePolicy period_coupling;
extern const CorePolicy fair;
extern const CorePolicy speedup;
extern const CorePolicy io_aware;
extern const CorePolicy predictive;

// All of them, in the order in which people are shown them.
std::span<const CorePolicy* const> core_policies();

}  // namespace hocket::policy
