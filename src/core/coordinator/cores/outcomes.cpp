#include "coordinator/cores/outcomes.hpp"

#include <cmath>
#include <string_view>
#include <utility>

#include "base/saturating.hpp"

namespace hocket::coordinator {
namespace {

// Largest error of a met prediction, as a share of the I/O period. Beyond it, another phase is nearer to the prediction
// than the intended one.
constexpr double most_error = 0.5;

// Completes the outcome from both times. `met` says that the error is within what was assumed, and small enough.
void compare(event::Outcome& outcome, Duration uncertainty, Duration period) {
  const double error_s = std::abs(outcome.actual_s - outcome.predicted_s);
  outcome.uncertainty_s = to_s(uncertainty);
  outcome.period_s = to_s(period);
  outcome.met = error_s <= outcome.uncertainty_s && (period <= Duration{} || error_s <= most_error * outcome.period_s);
}

event::Outcome outcome_of(std::int64_t decision, const std::string& application, std::string_view quantity) {
  event::Outcome outcome;
  outcome.decision = decision;
  outcome.decided_for = application;
  outcome.quantity = quantity;
  return outcome;
}

}  // namespace

void Outcomes::expect(const Moment& moment, const model::Application& application, std::int64_t decision,
                      const policy::CoreChange& change, Duration uncertainty) {
  ExpectedOutcomes expected;
  if (change.start_after > moment.now) {
    expected.start = {decision, moment.now, change.start_after, uncertainty, application.history.period().mean};
  }
  if (change.return_at_iteration == 0 && change.period_after > Duration{}) {
    expected.period = {decision, change.period_after, uncertainty};
  }
  expected.phases = application.history.phases();
  forget(application.id);
  if (!expected.nothing()) expected_.emplace(application.id, expected);
}

void Outcomes::in_force(const model::Application& application) {
  const auto found = expected_.find(application.id);
  if (found != expected_.end()) found->second.period.in_force = true;
}

void Outcomes::phase(const Moment& moment, model::Application& application) {
  const auto found = expected_.find(application.id);
  const model::PhaseRecord* last = application.history.last();
  if (found == expected_.end() || last == nullptr) return;
  ExpectedOutcomes& expected = found->second;
  if (application.history.phases() <= expected.phases) return;  // another member has reported the phase already
  expected.phases = application.history.phases();
  if (expected.start.decision != 0 && last->start >= expected.start.decided) {
    tell_start(moment, application, std::exchange(expected.start, {}), last->start);
  }
  Period& period = expected.period;
  if (period.decision != 0 && period.in_force) {
    if (period.begun == Time{}) {
      period.begun = last->start;
    } else if (++period.phases >= application.history.cycle_length()) {
      // The prediction does not include waits for grants.
      const Duration came = last->start - period.begun - period.waited;
      tell_period(moment, application, std::exchange(period, {}), came);
    }
    period.waited = saturating_sum(period.waited, last->wait);
  }
  if (expected.nothing()) expected_.erase(found);
}

void Outcomes::never_came(const Moment& moment, model::Application& application) {
  const auto found = expected_.find(application.id);
  if (found == expected_.end() || found->second.start.decision == 0) return;
  const ExpectedStart start = std::exchange(found->second.start, {});
  if (found->second.nothing()) expected_.erase(found);
  event::Outcome outcome = outcome_of(start.decision, application.name, event::quantity::phase_start);
  outcome.predicted_s = to_s(start.predicted - start.decided);
  outcome.actual_s = to_s(moment.now - start.decided);
  outcome.how = "missing";
  application.judge(false);
  moment.commands.push_back({{}, std::move(outcome)});
}

void Outcomes::tell_start(const Moment& moment, model::Application& application, const ExpectedStart& start,
                          Time came) {
  event::Outcome outcome = outcome_of(start.decision, application.name, event::quantity::phase_start);
  outcome.predicted_s = to_s(start.predicted - start.decided);
  outcome.actual_s = to_s(came - start.decided);
  compare(outcome, start.uncertainty, start.period);
  application.judge(outcome.met);
  moment.commands.push_back({{}, std::move(outcome)});
}

void Outcomes::tell_period(const Moment& moment, model::Application& application, const Period& period, Duration came) {
  event::Outcome outcome = outcome_of(period.decision, application.name, event::quantity::period);
  outcome.predicted_s = to_s(period.predicted);
  outcome.actual_s = to_s(came);
  compare(outcome, period.uncertainty, period.predicted);
  application.judge(outcome.met);
  moment.commands.push_back({{}, std::move(outcome)});
}

void Outcomes::cores_back(const Moment& moment, const model::Application& application, std::int64_t decision,
                          std::int64_t expected, std::int64_t came) {
  event::Outcome outcome = outcome_of(decision, application.name, event::quantity::cores);
  outcome.predicted_s = static_cast<double>(expected);
  outcome.actual_s = static_cast<double>(came);
  outcome.met = expected == came;
  outcome.how = "returned";
  outcome.processes = application.computing_processes();
  moment.commands.push_back({{}, std::move(outcome)});
}

void Outcomes::ended(const Moment& moment, const std::string& application, std::int64_t decision, std::int64_t cores) {
  event::Outcome outcome = outcome_of(decision, application, event::quantity::cores);
  outcome.predicted_s = outcome.actual_s = static_cast<double>(cores);
  outcome.met = true;
  outcome.how = "ended";
  moment.commands.push_back({{}, std::move(outcome)});
}

}  // namespace hocket::coordinator
