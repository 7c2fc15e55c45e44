#include "coordinator/outcomes.hpp"

#include <cmath>
#include <utility>

#include "coordinator/words.hpp"

namespace hocket::coordinator {
namespace {

std::string compared(double off_s, double uncertainty_s, bool met) {
  const std::string way = off_s > 0 ? " later" : " earlier";
  return seconds_text(std::abs(off_s)) + way + " than predicted" +
         (met ? ", within the " + seconds_text(uncertainty_s) + " that were assumed"
              : ", and only " + seconds_text(uncertainty_s) + " were assumed: the prediction was off");
}

event::Outcome outcome_of(std::int64_t decision, const std::string& application, const char* quantity) {
  event::Outcome outcome;
  outcome.decision = decision;
  outcome.decided_for = application;
  outcome.quantity = quantity;
  return outcome;
}

}  // namespace

void Outcomes::expect(const Moment& moment, const model::Application& application, std::int64_t decision,
                      const policy::CoreChange& change, Duration uncertainty) {
  Expected expected;
  if (change.start_after > moment.now) {
    expected.start = {decision, moment.now, change.start_after, uncertainty};
  }
  if (change.return_at_iteration == 0 && change.period_after > Duration{}) {
    expected.period = {decision, change.period_after, uncertainty, false, {}, {}};
  }
  expected.phases = application.history.phases();
  forget(application.id);
  if (!expected.nothing()) expected_.emplace(application.id, expected);
}

void Outcomes::in_force(const model::Application& application) {
  const auto found = expected_.find(application.id);
  if (found != expected_.end()) found->second.period.in_force = true;
}

void Outcomes::phase(const Moment& moment, const model::Application& application) {
  const auto found = expected_.find(application.id);
  const model::PhaseRecord* last = application.history.last();
  if (found == expected_.end() || last == nullptr) return;
  Expected& expected = found->second;
  if (application.history.phases() <= expected.phases) return;  // another member's report of the same phase
  expected.phases = application.history.phases();
  if (expected.start.decision != 0 && last->start >= expected.start.decided) {
    tell_start(moment, application, std::exchange(expected.start, {}), last->start);
  }
  Period& period = expected.period;
  if (period.decision != 0 && period.in_force) {
    if (period.last_start != Time{}) {
      // Waits for grants are not what was predicted.
      const Duration came = last->start - period.last_start - period.last_wait;
      tell_period(moment, application, std::exchange(period, {}), came);
    } else {
      period.last_start = last->start;
      period.last_wait = last->wait;
    }
  }
  if (expected.nothing()) expected_.erase(found);
}

void Outcomes::never_came(const Moment& moment, const model::Application& application) {
  const auto found = expected_.find(application.id);
  if (found == expected_.end() || found->second.start.decision == 0) return;
  const Start start = std::exchange(found->second.start, {});
  if (found->second.nothing()) expected_.erase(found);
  event::Outcome outcome = outcome_of(start.decision, application.name, "start of the next I/O phase");
  outcome.predicted_s = to_s(start.predicted - start.decided);
  outcome.actual_s = to_s(moment.now - start.decided);
  outcome.text = "the next I/O phase of " + quoted(application.name) + " was predicted " +
                 seconds_text(outcome.predicted_s) + " after the decision, and has not come after " +
                 seconds_text(outcome.actual_s) + ": the prediction was off";
  moment.commands.push_back({{}, std::move(outcome)});
}

void Outcomes::tell_start(const Moment& moment, const model::Application& application, const Start& start, Time came) {
  event::Outcome outcome = outcome_of(start.decision, application.name, "start of the next I/O phase");
  outcome.predicted_s = to_s(start.predicted - start.decided);
  outcome.actual_s = to_s(came - start.decided);
  const double off = outcome.actual_s - outcome.predicted_s;
  outcome.met = std::abs(off) <= to_s(start.uncertainty);
  outcome.text = "the next I/O phase of " + quoted(application.name) + " began " + seconds_text(outcome.actual_s) +
                 " after the decision: " + compared(off, to_s(start.uncertainty), outcome.met);
  moment.commands.push_back({{}, std::move(outcome)});
}

void Outcomes::tell_period(const Moment& moment, const model::Application& application, const Period& period,
                           Duration came) {
  event::Outcome outcome = outcome_of(period.decision, application.name, "I/O period");
  outcome.predicted_s = to_s(period.predicted);
  outcome.actual_s = to_s(came);
  const double off = outcome.actual_s - outcome.predicted_s;
  outcome.met = std::abs(off) <= to_s(period.uncertainty);
  outcome.text = "the I/O period of " + quoted(application.name) + " is " + seconds_text(outcome.actual_s) + ", " +
                 seconds_text(outcome.predicted_s) + " were predicted" +
                 (outcome.met ? "" : ": the prediction was off");
  moment.commands.push_back({{}, std::move(outcome)});
}

void Outcomes::cores_back(const Moment& moment, const std::string& application, std::int64_t decision,
                          std::int64_t expected, std::int64_t came, std::string text) {
  event::Outcome outcome = outcome_of(decision, application, "cores");
  outcome.predicted_s = static_cast<double>(expected);
  outcome.actual_s = static_cast<double>(came);
  outcome.met = expected == came;
  outcome.text = std::move(text);
  moment.commands.push_back({{}, std::move(outcome)});
}

}  // namespace hocket::coordinator
