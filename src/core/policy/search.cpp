#include "policy/search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "model/prediction.hpp"

namespace hocket::policy {
namespace {

constexpr std::size_t most_orders_of = 6;  // applications
constexpr std::size_t most_at_once = 16;
constexpr int delays = 8;            // begins at eighths of what the first job has left
constexpr double least_gain = 1e-6;  // of the cost: rounding errors decide nothing
constexpr double rounding_s = 1e-6;
constexpr double longest_delay_s = 1e9;

// Returns the FLOP/s of the application while it computes; nothing if they are unknown.
std::optional<double> flops_of(const model::Application& application) {
  if (!(application.flop_per_iteration > 0)) return std::nullopt;
  const auto pace = model::pace(application, application.computing_processes());
  if (!pace || !(pace->iterations > 0) || !(pace->compute.value > 0)) return std::nullopt;
  return application.flop_per_iteration * pace->iterations / pace->compute.value;
}

// Completes the jobs by what the metric may use. FLOP/s count only if those of all contenders are known. Else the
// numbers of processes stand for them, because numbers of different kinds cannot be compared.
std::vector<PhaseJob> jobs_for_metric(const View& view, const Contest& contest) {
  std::vector<PhaseJob> jobs = contest.jobs;
  bool known = view.settings.metric.uses_flops();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const model::Application& application = *contest.contenders[i]->application;
    jobs[i].ran_s = to_s(view.now - application.arrived);
    const auto flops = known ? flops_of(application) : std::nullopt;
    known &= flops.has_value();
    jobs[i].flops = flops.value_or(0);
  }
  for (PhaseJob& job : jobs) {
    if (!known) job.flops = job.processes;
  }
  return jobs;
}

}  // namespace

Search::Search(const View& view, const Contest& contest)
    : view_(view), contest_(contest), jobs_(jobs_for_metric(view, contest)), expected_(contest.jobs.size()) {}

bool Search::is_better(const Candidate& one, const Candidate& other) const {
  if (one.excess_s < other.excess_s - rounding_s) return true;
  if (one.excess_s > other.excess_s + rounding_s) return false;
  return one.cost < other.cost - least_gain * std::abs(other.cost);
}

void Search::look_at(Candidate& best, Plan plan) {
  expect(jobs_, plan, expected_);
  Candidate candidate{0, view_.settings.metric.of(expected_), {}};
  if (!std::isfinite(candidate.cost)) return;
  for (std::size_t job = 0; job < contest_.latest_s.size(); ++job) {
    candidate.excess_s += std::max(0.0, expected_[job].end_s - contest_.latest_s[job]);
  }
  if (!is_better(candidate, best)) return;
  candidate.plan = std::move(plan);
  best = std::move(candidate);
}

// True if the order preempts only an interruptible holder, and overtakes no request that has waited for too long.
bool Search::is_allowed(const std::vector<std::size_t>& order) const {
  if (contest_.holders > 0 && !contest_.interruptible && order.front() >= contest_.holders) return false;
  bool overtaken = false;
  for (const std::size_t job : order) {
    if (job < contest_.holders) continue;
    if (contest_.contenders[job]->overdue && overtaken) return false;
    overtaken |= !contest_.contenders[job]->overdue;
  }
  return true;
}

void Search::look_at_order(std::vector<std::size_t> order) {
  const std::size_t at_once = std::max<std::size_t>(1, contest_.holders);
  const bool interrupts = contest_.holders > 0 && order.front() >= contest_.holders;
  if (is_allowed(order)) look_at(interrupts ? interrupt_ : wait_, {std::move(order), at_once, 0, interrupts});
}

void Search::look_at_orders() {
  std::vector<std::size_t> order(contest_.jobs.size());
  std::iota(order.begin(), order.end(), 0);
  look_at_order(order);  // first come, first served: wins among equals
  if (contest_.jobs.size() > most_orders_of) return look_at_sorted_orders();
  // Several holders continue together, so their order does not matter.
  const auto first = order.begin() + static_cast<std::ptrdiff_t>(contest_.holders > 1 ? contest_.holders : 0);
  while (std::next_permutation(first, order.end())) look_at_order(order);
}

// Tries the orders that minimise a sum of w x end, for the weights w of the usual metrics. They are sorted by what is
// left divided by w (Smith's rule). Then it moves each job to the front of the best order, one at a time.
void Search::look_at_sorted_orders() {
  using Weight = double (*)(const PhaseJob&);
  constexpr std::array<Weight, 3> weights{[](const PhaseJob& job) { return job.processes; },
                                          [](const PhaseJob&) { return 1.0; },
                                          [](const PhaseJob& job) { return 1 / job.alone_s; }};
  const std::size_t fixed = contest_.holders > 1 ? contest_.holders : 0;
  for (const Weight weight : weights) {
    for (const bool holder_first : {true, false}) {
      std::vector<std::size_t> order(contest_.jobs.size());
      std::iota(order.begin(), order.end(), 0);
      const std::size_t first = holder_first ? contest_.holders : fixed;
      std::sort(order.begin() + static_cast<std::ptrdiff_t>(first), order.end(), [&](std::size_t a, std::size_t b) {
        const bool late_a = a >= contest_.holders && contest_.contenders[a]->overdue;
        const bool late_b = b >= contest_.holders && contest_.contenders[b]->overdue;
        if (late_a != late_b) return late_a;
        const double left_a = contest_.jobs[a].left_s / weight(contest_.jobs[a]);
        const double left_b = contest_.jobs[b].left_s / weight(contest_.jobs[b]);
        return left_a < left_b || (left_a == left_b && a < b);
      });
      look_at_order(std::move(order));
    }
  }
  const std::vector<std::size_t> best = (interrupt_.cost < wait_.cost ? interrupt_ : wait_).plan.order;
  if (best.empty()) return;  // the metric has no finite value for any order
  for (std::size_t job = fixed; job < contest_.jobs.size(); ++job) {
    std::vector<std::size_t> order = best;
    const auto place = std::find(order.begin(), order.end(), job);
    std::rotate(order.begin() + static_cast<std::ptrdiff_t>(fixed), place, place + 1);
    look_at_order(std::move(order));
  }
}

// Tries larger numbers of jobs at once, in the order that is best one at a time.
void Search::look_at_overlaps(const std::vector<std::size_t>& order) {
  const std::size_t least = std::max<std::size_t>(1, contest_.holders) + 1;
  for (std::size_t at_once = least; at_once <= std::min(contest_.jobs.size(), most_at_once); ++at_once) {
    look_at(interfere_, {order, at_once, 0});
  }
}

// Tries delays: the first job continues alone for a while, then the next one begins beside it.
void Search::look_at_delays(const std::vector<std::size_t>& order) {
  const double left_s = contest_.jobs[order.front()].left_s;
  const double next_s = contest_.jobs[order[1]].left_s;
  for (int i = 1; i < delays; ++i) look_at(delay_, {order, 2, left_s * i / delays});
  if (next_s < left_s) look_at(delay_, {order, 2, left_s - next_s});
}

AccessDecision Search::decide() {
  look_at_orders();
  if (wait_.cost == none && interrupt_.cost == none) return as_they_come();
  // Overlaps are tried with the holder only: preempting it for others that then share the target gains nothing.
  if (contest_.jobs.size() > 1 && wait_.cost < none) {
    look_at_overlaps(wait_.plan.order);
    if (contest_.holders == 1) look_at_delays(wait_.plan.order);
  }
  const Candidate* best = &wait_;
  std::string_view action = "wait";
  AccessDecision costs;
  const auto compare = [&](const Candidate& candidate, std::string_view name) {
    if (candidate.cost == none) return;
    costs.costs.push_back({name, candidate.cost});
    if (!is_better(candidate, *best)) return;
    best = &candidate;
    action = name;
  };
  compare(wait_, "wait");
  compare(delay_, "delay");
  compare(interfere_, "interfere");
  compare(interrupt_, "interrupt");
  AccessDecision decision = serve(*best, action);
  decision.costs = std::move(costs.costs);
  return decision;
}

// Serves in order of arrival, if the metric has no finite value for any plan.
AccessDecision Search::as_they_come() const {
  if (contest_.holders > 0) return {};
  return {.grants = {grant_of(*contest_.contenders.front())}};
}

// Turns the plan into grants, preemptions and explanations.
AccessDecision Search::serve(const Candidate& best, std::string_view action) const {
  AccessDecision decision;
  const std::vector<std::size_t>& order = best.plan.order;
  const std::size_t first = order.empty() ? 0 : order.front();
  if (contest_.holders > 0 && first >= contest_.holders) {
    const AppId holder = contest_.contenders.front()->application->id;
    decision.interruptions = {holder};
    decision.choices = {{contest_.contenders[first]->application->id, holder, action}};
    return decision;
  }
  if (best.plan.delay_s > 0) decision.again = view_.now + from_s(std::min(best.plan.delay_s, longest_delay_s));
  const std::size_t now = best.plan.delay_s > 0 ? 1 : best.plan.at_once;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Contender& one = *contest_.contenders[order[i]];
    if (one.request == nullptr) continue;
    if (i < now) decision.grants.push_back(grant_of(one));
    if (i == 0) continue;
    const bool told = i < best.plan.at_once;  // the others wait, whatever the first ones do
    decision.choices.push_back(
        {one.application->id, contest_.contenders[first]->application->id, told ? action : "wait"});
  }
  return decision;
}

}  // namespace hocket::policy
