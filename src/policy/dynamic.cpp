// Interfere, wait, interrupt or delay, whichever makes the operator's metric the least (CALCioM, sections III-A, 4, and
// IV-D), with any number of applications: each change of who wants the target is decided anew, from what is left to do
// for each of them.
//
// Of up to six applications all orders are compared, of more those that are the best for the usual metrics; then how
// many have the target at once, and by how much the second one is delayed.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "policy/contenders.hpp"
#include "policy/plan.hpp"

namespace hocket::policy {
namespace {

constexpr std::size_t most_orders_of = 6;  // applications
constexpr std::size_t most_at_once = 16;
constexpr int delays = 8;            // that are tried, beside the moments at which somebody ends
constexpr double least_gain = 1e-6;  // of the cost: rounding decides nothing

constexpr double longest_delay_s = 1e9;

constexpr double none = std::numeric_limits<double>::infinity();

struct Candidate {
  double cost = none;
  Plan plan;
};

class Search {
 public:
  Search(const View& view, const Contenders& contenders);
  Decision decide();

 private:
  void add(const Contender& contender);
  double cost_of(const Plan& plan);
  void look_at(Candidate& best, Plan plan);
  bool is_allowed(const std::vector<std::size_t>& order) const;
  void look_at_orders();
  void look_at_order(std::vector<std::size_t> order);
  void look_at_sorted_orders();
  void look_at_overlaps(const std::vector<std::size_t>& order);
  void look_at_delays(const std::vector<std::size_t>& order);
  Decision as_they_come() const;
  Decision serve(const Candidate& best, std::string_view action) const;

  const View& view_;
  std::vector<const Contender*> contenders_;  // as jobs_: holders first
  std::vector<Job> jobs_;
  std::vector<Expected> expected_;
  std::size_t holders_;
  bool interruptible_;
  Candidate wait_, interrupt_, interfere_, delay_;
};

Search::Search(const View& view, const Contenders& contenders) : view_(view), holders_(contenders.holders.size()) {
  for (const Contender& holder : contenders.holders) add(holder);
  for (const Contender& waiting : contenders.waiting) add(waiting);
  expected_.resize(jobs_.size());
  interruptible_ = holders_ == 1 && may_be_interrupted(view, *contenders.holders.front().application);
}

void Search::add(const Contender& contender) {
  const model::Application& application = *contender.application;
  const model::Work work = model::work_of(application, view_.target);
  contenders_.push_back(&contender);
  const model::Slowness slowness = model::slowness_of(application, view_.target, view_.settings.interference);
  const auto processes = static_cast<double>(std::max<std::int64_t>(1, application.computing_processes()));
  jobs_.push_back({processes, work.alone_s, work.left_s, to_s(view_.now - application.demand.since), slowness,
                   model::demanded_by(application, view_.target), application.io.stop_s});
}

double Search::cost_of(const Plan& plan) {
  expect(jobs_, plan, expected_);
  const double cost = view_.settings.metric.of(expected_);
  return std::isfinite(cost) ? cost : none;
}

void Search::look_at(Candidate& best, Plan plan) {
  const double cost = cost_of(plan);
  if (cost < best.cost - least_gain * std::abs(cost)) best = {cost, std::move(plan)};
}

// Nobody overtakes one who has waited for too long, and who may not be interrupted goes on.
bool Search::is_allowed(const std::vector<std::size_t>& order) const {
  if (holders_ > 0 && !interruptible_ && order.front() >= holders_) return false;
  bool overtaken = false;
  for (const std::size_t job : order) {
    if (job < holders_) continue;
    if (contenders_[job]->overdue && overtaken) return false;
    overtaken |= !contenders_[job]->overdue;
  }
  return true;
}

void Search::look_at_order(std::vector<std::size_t> order) {
  // Several that have the target already go on together.
  const std::size_t at_once = std::max<std::size_t>(1, holders_);
  const bool interrupts = holders_ > 0 && order.front() >= holders_;
  if (is_allowed(order)) look_at(interrupts ? interrupt_ : wait_, {std::move(order), at_once, 0, interrupts});
}

void Search::look_at_orders() {
  std::vector<std::size_t> order(jobs_.size());
  std::iota(order.begin(), order.end(), 0);
  look_at_order(order);  // first come, first served: the best of equals
  if (jobs_.size() > most_orders_of) return look_at_sorted_orders();
  // With several holders, their order is no question.
  const auto first = order.begin() + static_cast<std::ptrdiff_t>(holders_ > 1 ? holders_ : 0);
  while (std::next_permutation(first, order.end())) look_at_order(order);
}

// The orders that are optimal for a sum of w x end: by what is left, divided by w (Smith's rule), for the w of the
// usual metrics; and each of the waiting ones before all others.
void Search::look_at_sorted_orders() {
  using Weight = double (*)(const Job&);
  constexpr std::array<Weight, 3> weights{[](const Job& job) { return job.processes; }, [](const Job&) { return 1.0; },
                                          [](const Job& job) { return 1 / job.alone_s; }};
  const std::size_t fixed = holders_ > 1 ? holders_ : 0;
  for (const Weight weight : weights) {
    for (const bool holder_first : {true, false}) {
      std::vector<std::size_t> order(jobs_.size());
      std::iota(order.begin(), order.end(), 0);
      const std::size_t first = holder_first ? holders_ : fixed;
      std::sort(order.begin() + static_cast<std::ptrdiff_t>(first), order.end(), [&](std::size_t a, std::size_t b) {
        const bool late_a = a >= holders_ && contenders_[a]->overdue;
        const bool late_b = b >= holders_ && contenders_[b]->overdue;
        if (late_a != late_b) return late_a;
        const double left_a = jobs_[a].left_s / weight(jobs_[a]);
        const double left_b = jobs_[b].left_s / weight(jobs_[b]);
        return left_a < left_b || (left_a == left_b && a < b);
      });
      look_at_order(std::move(order));
    }
  }
  const std::vector<std::size_t> best = (interrupt_.cost < wait_.cost ? interrupt_ : wait_).plan.order;
  if (best.empty()) return;  // the metric says nothing of any of them
  for (std::size_t job = fixed; job < jobs_.size(); ++job) {
    std::vector<std::size_t> order = best;
    const auto place = std::find(order.begin(), order.end(), job);
    std::rotate(order.begin() + static_cast<std::ptrdiff_t>(fixed), place, place + 1);
    look_at_order(std::move(order));
  }
}

void Search::look_at_overlaps(const std::vector<std::size_t>& order) {
  const std::size_t least = std::max<std::size_t>(1, holders_) + 1;
  for (std::size_t at_once = least; at_once <= std::min(jobs_.size(), most_at_once); ++at_once) {
    look_at(interfere_, {order, at_once, 0});
  }
}

// The one that has the target goes on alone for a while, then the next one begins beside it.
void Search::look_at_delays(const std::vector<std::size_t>& order) {
  const double left_s = jobs_[order.front()].left_s;
  const double next_s = jobs_[order[1]].left_s;
  for (int i = 1; i < delays; ++i) look_at(delay_, {order, 2, left_s * i / delays});
  if (next_s < left_s) look_at(delay_, {order, 2, left_s - next_s});
}

Decision Search::decide() {
  look_at_orders();
  if (wait_.cost == none && interrupt_.cost == none) return as_they_come();
  // Together only with the one that has the target: to stop one for others who then share it gains nothing.
  if (jobs_.size() > 1 && wait_.cost < none) {
    look_at_overlaps(wait_.plan.order);
    if (holders_ == 1) look_at_delays(wait_.plan.order);
  }
  const Candidate* best = &wait_;
  std::string_view action = "wait";
  Decision costs;
  const auto compare = [&](const Candidate& candidate, std::string_view name) {
    if (candidate.cost == none) return;
    costs.costs.push_back({name, candidate.cost});
    if (candidate.cost >= best->cost - least_gain * std::abs(best->cost)) return;
    best = &candidate;
    action = name;
  };
  compare(wait_, "wait");
  compare(delay_, "delay");
  compare(interfere_, "interfere");
  compare(interrupt_, "interrupt");
  Decision decision = serve(*best, action);
  decision.costs = std::move(costs.costs);
  return decision;
}

// The metric says nothing of these.
Decision Search::as_they_come() const {
  if (holders_ > 0) return {};
  return {.grants = {grant_of(*contenders_.front())}};
}

Decision Search::serve(const Candidate& best, std::string_view action) const {
  Decision decision;
  const std::vector<std::size_t>& order = best.plan.order;
  const std::size_t first = order.empty() ? 0 : order.front();
  if (holders_ > 0 && first >= holders_) {
    const AppId holder = contenders_.front()->application->id;
    decision.interruptions = {holder};
    decision.choices = {{contenders_[first]->application->id, holder, action}};
    return decision;
  }
  if (best.plan.delay_s > 0) decision.again = view_.now + from_s(std::min(best.plan.delay_s, longest_delay_s));
  const std::size_t now = best.plan.delay_s > 0 ? 1 : best.plan.at_once;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Contender& one = *contenders_[order[i]];
    if (one.request == nullptr) continue;
    if (i < now) decision.grants.push_back(grant_of(one));
    if (i == 0) continue;
    const bool told = i < best.plan.at_once;  // the others wait, whatever these do
    decision.choices.push_back({one.application->id, contenders_[first]->application->id, told ? action : "wait"});
  }
  return decision;
}

Decision decide(const View& view, const event::Event&) {
  const Contenders all = contenders(view);
  if (all.waiting.empty() || all.pausing) return {};
  return Search{view, all}.decide();
}

}  // namespace

constexpr Policy dynamic{"dynamic", "interfere, wait, interrupt or delay, as the metric wants it", decide};

}  // namespace hocket::policy
