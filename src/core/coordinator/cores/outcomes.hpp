// Outcomes compares the predictions that a decision rested on with what then happens, and publishes the result as
// OUTCOME.
//
// Each comparison also updates how far the application's predictions can be relied on (model::Reliance).
//
// Outcomes expects at most one start of an I/O phase and one I/O period of each application. A new decision replaces
// the expectations of the last one. Outcomes is a part of Steering; pure, not thread-safe.
#pragma once

#include <map>
#include <string>

#include "coordinator/command.hpp"
#include "model/application.hpp"
#include "policy/core_policy.hpp"

namespace hocket::coordinator {

// The expectations of all applications. Each call costs O(log applications).
class Outcomes {
 public:
  // Begins to expect what `change` predicts. `uncertainty` is the error in either direction that the decision assumed.
  void expect(const Moment& moment, const model::Application& application, std::int64_t decision,
              const policy::CoreChange& change, Duration uncertainty);
  // Reports that the size of a permanent change is reached. The I/O periods from the next phase on are measured against
  // the prediction.
  void in_force(const model::Application& application);
  // Handles an I/O phase that was reported and is already in the application's history.
  void phase(const Moment& moment, model::Application& application);
  // Reports that the predicted phase has not begun, and stops expecting it.
  void never_came(const Moment& moment, model::Application& application);
  // Publishes an OUTCOME about cores instead of a prediction. The application has returned to its size; of the cores
  // that a decision gave to it, `expected` in number, `came` are free again.
  static void cores_back(const Moment& moment, const model::Application& application, std::int64_t decision,
                         std::int64_t expected, std::int64_t came);
  // Does the same for an application that ended: all of these cores are free again.
  static void ended(const Moment& moment, const std::string& application, std::int64_t decision, std::int64_t cores);
  // Drops the expectations about an application, because it changed otherwise than predicted.
  void forget(AppId app) { expected_.erase(app); }
  bool expects(AppId app) const { return expected_.contains(app); }

 private:
  // An expected start of the next I/O phase. `uncertainty` and `period` are those at the decision.
  struct ExpectedStart {
    std::int64_t decision = 0;  // number of the DECISION; 0: nothing is expected
    Time decided{};
    Time predicted{};
    Duration uncertainty{};
    Duration period{};  // I/O period of the application at the decision; 0: not known
  };
  // An expected I/O period at the new size. Waits for grants are excluded, since the prediction does not cover them.
  struct Period {
    std::int64_t decision = 0;
    Duration predicted{};
    Duration uncertainty{};
    bool in_force = false;
    Time begun{};            // start of the first phase at the new size; 0: not begun yet
    Duration waited{};       // for grants since `begun`
    std::size_t phases = 0;  // I/O phases since `begun`
  };
  // All that is expected of one application.
  struct ExpectedOutcomes {
    ExpectedStart start;
    Period period;
    std::int64_t phases = 0;  // phases of the application that were compared already
    bool nothing() const { return start.decision == 0 && period.decision == 0; }
  };

  static void tell_start(const Moment& moment, model::Application& application, const ExpectedStart& start, Time came);
  static void tell_period(const Moment& moment, model::Application& application, const Period& period, Duration came);

  std::map<AppId, ExpectedOutcomes> expected_;
};

}  // namespace hocket::coordinator
