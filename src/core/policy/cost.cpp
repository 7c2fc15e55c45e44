// Cost takes the cheapest of four actions, by what was measured for these applications on this target: go beside the
// holder, begin later, wait, or preempt the holder. No application is to end later than without coordination.
// It applies four rules, in this order:
// 1. Act only on measurements. The application goes beside the holder, as without hocket, and is measured, while one of
//    these is unknown: the time of its access, what the holder has left, or how much the two slow each other down.
//    While few applications run, overlapping accesses are assumed to have shared the target evenly until one was alone.
// 2. Never wait longer than the holder should take. A holder that takes longer is no reason to wait any more.
// 3. Take the plan with the least cost by the operator's metric (CALCioM, sections III-A and IV-D), of those that
//    `dynamic` compares too. Plans in which each application ends no later than uncoordinated, but for a part of
//    `most_slowdown`, come first. If sharing only divides the bandwidth, there is such a plan: serving in the order in
//    which equal sharing would end makes no application late (Friedman and Henderson, SIGMETRICS 2003).
// 4. Do not wait where the wait would keep two programs of similar periods in step, so that one of them waits for the
//    other again and again. The look-ahead over two periods finds that.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "model/occupancy.hpp"
#include "policy/lookahead.hpp"
#include "policy/search.hpp"

namespace hocket::policy {
namespace {

constexpr double most_slowdown = 0.05;  // of an application's time: the default under this policy
// Part of that bound that plans may use up. The rest covers errors of the estimates: larger ones among many.
constexpr double spent_on_purpose = 0.2;
constexpr double spent_among_many = 0;
// A short access never waits: at most this many seconds, with at most so much left of its I/O phase.
constexpr double short_s = 0.005;
constexpr double short_rest_s = 0.1;
constexpr double least_left = 0.02;  // part of an access that is left at least, even if it should have ended
// The look-ahead plays at most this many applications, over so many of the longest cycle.
constexpr std::size_t most_foreseen = 6;
constexpr double periods = 2;
constexpr std::size_t longest_cycle = 8;  // I/O phases
// An application does not wait if the wait costs it this part of its I/O phase more than going beside the holder.
constexpr double most_lost = 0.7;
// Largest number of contenders whose latest ends are computed. With more, only the metric counts.
constexpr std::size_t most_bounded = 64;
constexpr double longest_delay_s = 1e9;

// The estimates for one contender.
struct Known {
  model::Remaining remaining;
  std::size_t kind = 0;
  model::AccessLoad load = model::AccessLoad::write;
};

// Decides about one target. Used for one call; keeps references to the view.
class Costs {
 public:
  Costs(const View& view, const Contenders& all) : view_(view), all_(all) {}
  AccessDecision decide();

 private:
  Known known_of_holder(const model::Holder& holder) const;
  Known known_of(const Contender& waiting) const;
  bool is_measured(const Known& one, const model::Application& application, const Known& other) const;
  std::vector<const Contender*> at_once() const;
  double interference_of(std::size_t which) const;
  PhaseJob job_of(std::size_t which) const;
  std::vector<double> latest() const;
  double virtual_left_s(std::size_t which, double left_s) const;
  double slack_s(const model::Application& application) const;
  bool add_contenders(std::vector<Actor>& actors) const;
  bool add_expected(std::vector<Actor>& actors) const;
  void part_those_in_step(AccessDecision& decision) const;

  const View& view_;
  const Contenders& all_;
  std::vector<const Contender*> contenders_;  // holders that are not overdue, then waiting applications
  std::vector<Known> known_;                  // of the contenders
  std::size_t holders_ = 0;
};

Known Costs::known_of_holder(const model::Holder& holder) const {
  const std::size_t kind = holder.occupancy.kind;
  return {model::remaining_of(holder, view_.now), kind, holder.application->accesses.load(kind)};
}

Known Costs::known_of(const Contender& waiting) const {
  const model::Application& application = *waiting.application;
  const std::size_t kind = waiting.request->kind;
  return {model::remaining_of(application, *waiting.request), kind, application.accesses.load(kind)};
}

// True for an access such as a header or an index. It slows others down by less than it would lose by waiting.
bool is_short(const model::Remaining& remaining) {
  return remaining.known && remaining.access_s + remaining.spread_s <= short_s && remaining.left_s <= short_rest_s;
}

// True if the remaining times of both are known, and the application's slowdown beside the other.
bool Costs::is_measured(const Known& one, const model::Application& application, const Known& other) const {
  return one.remaining.known && other.remaining.known &&
         model::interference_of(application, view_.target, one.kind, other.load) > 0;
}

// Returns the waiting applications to grant beside the holders without a comparison: rule 1 has no measurement that
// would justify a wait, or the access is short.
std::vector<const Contender*> Costs::at_once() const {
  std::vector<const Contender*> found;
  if (holders_ == 0) return found;
  for (std::size_t i = holders_; i < contenders_.size(); ++i) {
    bool measured = true;
    for (std::size_t holder = 0; holder < holders_; ++holder) {
      measured &= is_measured(known_[i], *contenders_[i]->application, known_[holder]);
    }
    if (!measured || is_short(known_[i].remaining)) found.push_back(contenders_[i]);
  }
  return found;
}

// Returns the mean slowdown beside one of the other contenders. Pairs that never overlapped count with the setting.
double Costs::interference_of(std::size_t which) const {
  double sum = 0;
  double count = 0;
  for (std::size_t other = 0; other < contenders_.size(); ++other) {
    if (other == which) continue;
    const double beside =
        model::interference_of(*contenders_[which]->application, view_.target, known_[which].kind, known_[other].load);
    sum += beside > 0 ? beside : view_.settings.interference;
    ++count;
  }
  return count > 0 ? sum / count : view_.settings.interference;
}

PhaseJob Costs::job_of(std::size_t which) const {
  const model::Application& application = *contenders_[which]->application;
  const model::Remaining& remaining = known_[which].remaining;
  const auto processes = static_cast<double>(std::max<std::int64_t>(1, application.computing_processes()));
  const double left_s = std::max(remaining.left_s, least_left * remaining.access_s);
  const bool between = contenders_[which]->request == nullptr && application.granted == 0;
  // An application that was never seen to stop in the middle of an access is expected to finish the access first, or
  // the part that it announced.
  const double access_left_s = std::max(0.0, remaining.access_s - remaining.served_s);
  const double seen_s = application.io.stops ? application.io.stop_s : access_left_s;
  const double stop_s = std::min(model::announced_stop_s(application, view_.target).value_or(seen_s), access_left_s);
  return {processes,
          std::max(left_s, application.demand.served_s + left_s),
          std::max(left_s, 1e-6),
          to_s(view_.now - application.demand.since),
          {interference_of(which), 0},
          1,
          between ? 0 : std::min(stop_s, left_s)};
}

// Returns the seconds that plans may still cost the application: their part of the bound, less its present delay. What
// coordination has saved it so far may be spent again: it is then no later than uncoordinated.
double Costs::slack_s(const model::Application& application) const {
  const double spent = view_.cluster.few_run() ? spent_on_purpose : spent_among_many;
  const double allowed_s = spent * view_.settings.most_slowdown * to_s(view_.now - application.arrived);
  return std::max(0.0, allowed_s - application.late_s);
}

// Returns what the contender would have left now without coordination, in seconds alone.
double Costs::virtual_left_s(std::size_t which, double left_s) const {
  const auto* access = view_.target.uncoordinated.find(contenders_[which]->application->id);
  if (access == nullptr || !access->goes_on) return left_s;
  return std::max(1e-6, left_s + known_[which].remaining.served_s - access->done_s);
}

// Returns the latest end of each contender, in seconds from now: its uncoordinated end plus its slack.
std::vector<double> Costs::latest() const {
  std::vector<PhaseJob> jobs;
  for (std::size_t i = 0; i < contenders_.size(); ++i) {
    PhaseJob job = job_of(i);
    job.left_s = virtual_left_s(i, job.left_s);
    jobs.push_back(job);
  }
  // Accesses that have ended in reality would still continue without coordination, and slow the others down there.
  for (const model::Uncoordinated::SimulatedAccess& access : view_.target.uncoordinated.accesses()) {
    const auto same = [&](const Contender* one) { return one->application->id == access.application; };
    if (!access.parts.meets(view_.parts)) continue;
    if (access.goes_on || std::any_of(contenders_.begin(), contenders_.end(), same)) continue;
    jobs.push_back({1, access.size_s, access.size_s - access.done_s, 0, access.slowness, access.demanded, 0});
  }
  const std::vector<ExpectedPhase> expected = expect_together(jobs);
  std::vector<double> latest_s;
  for (std::size_t i = 0; i < contenders_.size(); ++i) {
    latest_s.push_back(expected[i].end_s + slack_s(*contenders_[i]->application));
  }
  return latest_s;
}

// Returns the I/O phases of one cycle, from the phase after the one under way on. The I/O of phases on other targets
// counts as computing. Empty if the application is not regular, or its cycle has more than `longest_cycle` phases.
std::vector<Actor::Phase> cycle_of(const model::AccessHistory& accesses, const model::TargetRecord* target) {
  std::vector<Actor::Phase> phases;
  const auto first = accesses.present_phase();
  if (!first) return phases;
  std::size_t kind = *first;
  for (std::size_t i = 0; i < longest_cycle; ++i) {
    const auto phase = accesses.phase(kind);
    const auto next = phase ? accesses.phase(phase->next) : std::nullopt;
    if (!next) return {};
    phases.push_back({phase->computing_s, next->target == target ? next->size_s : 0});
    if (next->target != target) phases.back().computing_s += next->size_s;
    kind = phase->next;
    if (kind == *first) return phases;
  }
  return {};
}

double length_s(const Actor& actor) {
  double sum = 0;
  for (const Actor::Phase& phase : actor.phases) sum += phase.computing_s + phase.size_s;
  return sum;
}

// Adds the contenders. Returns false if one of them is not regular, so that the look-ahead is impossible.
bool Costs::add_contenders(std::vector<Actor>& actors) const {
  for (std::size_t i = 0; i < contenders_.size(); ++i) {
    auto phases = cycle_of(contenders_[i]->application->accesses, view_.target.record);
    if (phases.empty()) return false;
    const PhaseJob job = job_of(i);
    actors.push_back({job.left_s, i < holders_, 0, std::move(phases), job.slowness.interference});
  }
  return true;
}

// Adds the applications that compute now and will use the target. Returns false if that makes more than most_foreseen.
bool Costs::add_expected(std::vector<Actor>& actors) const {
  for (const auto& [id, other] : view_.cluster.applications()) {
    const model::Application& application = other;
    const auto same = [&](const Contender* one) { return one->application == &application; };
    if (std::any_of(contenders_.begin(), contenders_.end(), same) || application.accesses.in_phase()) continue;
    auto phases = cycle_of(application.accesses, view_.target.record);
    const bool comes = std::any_of(phases.begin(), phases.end(), [](const auto& one) { return one.size_s > 0; });
    if (!comes) continue;
    if (actors.size() == most_foreseen) return false;
    const double elapsed_s = to_s(view_.now - application.accesses.last_end());
    const double starts_in_s = std::max(1e-3, phases.front().computing_s - elapsed_s);
    actors.push_back({0, false, starts_in_s, std::move(phases), view_.settings.interference});
  }
  return true;
}

// Rule 4: grants an application that would wait, if its wait kept it in step with the holder.
void Costs::part_those_in_step(AccessDecision& decision) const {
  if (holders_ == 0 || contenders_.size() > most_foreseen || !decision.interruptions.empty()) return;
  std::vector<Actor> actors;
  if (!add_contenders(actors) || !add_expected(actors)) return;
  double horizon_s = 0;
  for (const Actor& actor : actors) horizon_s = std::max(horizon_s, periods * length_s(actor));
  const std::vector<double> waits = lost_s(actors, std::nullopt, horizon_s);
  for (std::size_t i = holders_; i < contenders_.size(); ++i) {
    const Grant grant = grant_of(*contenders_[i]);
    const auto same = [&](const Grant& one) { return one.member == grant.member && one.request == grant.request; };
    if (std::any_of(decision.grants.begin(), decision.grants.end(), same)) continue;
    if (waits[i] - lost_s(actors, i, horizon_s)[i] <= most_lost * actors[i].left_s) continue;
    decision.grants.push_back(grant);
    for (Choice& choice : decision.choices) {
      if (choice.application == contenders_[i]->application->id) choice.action = "interfere";
    }
  }
}

AccessDecision Costs::decide() {
  // contenders() lists the holders in the order of the target, so both lists advance together.
  auto contender = all_.holders.begin();
  double first_end_s = longest_delay_s;
  for (const model::Holder& holder : view_.holders()) {
    const Contender* one = &*contender++;
    const Known known = known_of_holder(holder);
    // Rule 2: an overdue holder counts as absent, so nothing waits for it.
    if (known.remaining.known && known.remaining.overdue()) continue;
    contenders_.push_back(one);
    known_.push_back(known);
    const double more_s = known.remaining.left_s + known.remaining.spread_s;
    first_end_s = std::min(first_end_s, std::max(more_s, 1e-3));
  }
  holders_ = contenders_.size();
  for (const Contender& waiting : all_.waiting) {
    contenders_.push_back(&waiting);
    known_.push_back(known_of(waiting));
  }
  // A single contender needs no comparison, whatever else runs.
  if (holders_ == 0 && contenders_.size() == 1) return {.grants = {grant_of(*contenders_.front())}};
  AccessDecision decision;
  for (const Contender* one : at_once()) {
    decision.grants.push_back(grant_of(*one));
    decision.choices.push_back({one->application->id, contenders_.front()->application->id, "interfere"});
  }
  if (decision.grants.empty()) {
    Contest contest;
    contest.contenders = contenders_;
    for (std::size_t i = 0; i < contenders_.size(); ++i) contest.jobs.push_back(job_of(i));
    contest.holders = holders_;
    contest.interruptible =
        holders_ == 1 && !all_.pausing && may_be_interrupted(view_, *contenders_.front()->application);
    if (contenders_.size() <= most_bounded) contest.latest_s = latest();
    decision = Search{view_, contest}.decide();
    part_those_in_step(decision);
  }
  // Ask again when the first holder becomes overdue, for then rule 2 ends the wait.
  const Time again = view_.now + from_s(first_end_s);
  if (holders_ > 0 && (decision.again <= view_.now || again < decision.again)) decision.again = again;
  return decision;
}

AccessDecision decide(const View& view, const event::Event&) {
  const Contenders all = contenders(view);
  if (all.waiting.empty()) return {};
  return Costs{view, all}.decide();
}

}  // namespace

constexpr Policy cost{
    .name = "cost",
    .summary = "the cheapest plan by what was measured; no application ends later than uncoordinated (default)",
    .decide = decide,
    .most_slowdown = most_slowdown,
    .learnt_hold = true};

}  // namespace hocket::policy
