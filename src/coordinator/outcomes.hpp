// Predictions that decisions rested on, held against what happens: OUTCOME.
//
// An application learns by them how far it can be predicted (model::Reliance).
//
// Of an application at most one start of an I/O phase and one I/O period are expected at a time: those of the last
// decisions about it. A part of Steering; pure and not thread-safe as it is.
#pragma once

#include <map>
#include <string>

#include "coordinator/command.hpp"
#include "model/application.hpp"
#include "policy/core_policy.hpp"

namespace hocket::coordinator {

class Outcomes {
 public:
  // `uncertainty`: plus or minus, what the decision assumed.
  void expect(const Moment& moment, const model::Application& application, std::int64_t decision,
              const policy::CoreChange& change, Duration uncertainty);
  // The size that a change for good asked for is there: I/O periods from the next phase on are its.
  void in_force(const model::Application& application);
  // An I/O phase of the application was reported, and is in its history.
  void phase(const Moment& moment, model::Application& application);
  // The phase whose start was predicted has not come, and is waited for no longer.
  void never_came(const Moment& moment, model::Application& application);
  // No prediction, but the books of the cores that a decision gave away.
  static void cores_back(const Moment& moment, const std::string& application, std::int64_t decision,
                         std::int64_t expected, std::int64_t came, std::string text);
  // What is expected of it will not come as it was predicted.
  void forget(AppId app) { expected_.erase(app); }
  bool expects(AppId app) const { return expected_.contains(app); }

 private:
  struct Start {
    std::int64_t decision = 0;  // 0: none is expected
    Time decided{};
    Time predicted{};
    Duration uncertainty{};
    Duration period{};  // of the application at the decision; 0: not known
  };
  struct Period {
    std::int64_t decision = 0;
    Duration predicted{};
    Duration uncertainty{};
    bool in_force = false;
    Time begun{};            // start of the first phase under it; 0: has not come
    Duration waited{};       // since then
    std::size_t phases = 0;  // since then
  };
  struct Expected {
    Start start;
    Period period;
    std::int64_t phases = 0;  // of the application, seen
    bool nothing() const { return start.decision == 0 && period.decision == 0; }
  };

  static void tell_start(const Moment& moment, model::Application& application, const Start& start, Time came);
  static void tell_period(const Moment& moment, model::Application& application, const Period& period, Duration came);

  std::map<AppId, Expected> expected_;
};

}  // namespace hocket::coordinator
