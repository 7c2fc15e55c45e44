// Cost takes the cheapest of four actions, by what was measured for these applications on this target: go beside the
// holder, begin later, wait, or preempt the holder. No application is to end later than without coordination.
// It applies three rules, in this order:
// 1. Act only on measurements. The application goes beside the holder, as without hocket, and is measured, while one of
//    these is unknown: the time of its access, what the holder has left, or how much the two slow each other down.
//    While few applications run, overlapping accesses are assumed to have shared the target evenly until one was alone.
// 2. Never wait longer than the holder should take. A holder that takes longer is no reason to wait any more.
// 3. Take the plan with the least cost by the operator's metric (CALCioM, sections III-A and IV-D), of those that
//    `dynamic` compares too. Plans in which each application ends no later than uncoordinated, but for a part of
//    `most_slowdown`, come first. If sharing only divides the bandwidth, there is such a plan: serving in the order in
//    which equal sharing would end makes no application late (Friedman and Henderson, SIGMETRICS 2003).
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
// The look-ahead plays at most this many applications, over `periods` of the longest cycle.
constexpr std::size_t most_foreseen = 6;
// Largest number of contenders whose latest ends are computed. With more, only the metric counts.
constexpr std::size_t most_bounded = 64;
constexpr double periods = 3;
constexpr std::size_t longest_cycle = 8;  // I/O phases
constexpr int delays = 8;                 // begins at eighths of what the holder has left
constexpr double least_gain = 1e-6;       // of the cost: rounding errors decide nothing
constexpr double rounding_s = 1e-6;
constexpr double longest_delay_s = 1e9;

// The estimates for one contender.
struct Known {
  model::Remaining remaining;
  std::size_t kind = 0;
  model::Load load = model::Load::write;
};

// All applications in the look-ahead: those that want the target now, and those that will. The vectors correspond.
struct Cast {
  std::vector<Actor> actors;         // the contenders, then the applications that will come
  std::vector<Actor> uncoordinated;  // the same, as they would be without coordination
  std::vector<double> ahead_s;       // seconds that each is behind its uncoordinated progress
  std::vector<double> slack_s;       // seconds that each may lose by coordination
};

// Decides about one target. Used for one call; keeps references to the view.
class Costs {
 public:
  Costs(const View& view, const Contenders& all) : view_(view), all_(all) {}
  Decision decide();

 private:
  Known known_of_holder(const model::Holder& holder) const;
  Known known_of(const Contender& waiting) const;
  bool is_measured(const Known& one, const model::Application& application, const Known& other) const;
  std::vector<const Contender*> at_once() const;
  double interference_of(std::size_t which) const;
  Job job_of(std::size_t which) const;
  std::vector<double> latest() const;
  double virtual_left_s(std::size_t which, double left_s) const;
  bool add_contenders(Cast& cast) const;
  bool add_expected(Cast& cast) const;
  std::optional<Decision> foresee() const;
  double slack_s(const model::Application& application) const;

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

Job Costs::job_of(std::size_t which) const {
  const model::Application& application = *contenders_[which]->application;
  const model::Remaining& remaining = known_[which].remaining;
  const auto processes = static_cast<double>(std::max<std::int64_t>(1, application.computing_processes()));
  const double left_s = std::max(remaining.left_s, least_left * remaining.access_s);
  const bool between = contenders_[which]->request == nullptr && application.granted == 0;
  // An application that was never seen to stop in the middle of an access is expected to finish the access first.
  const double access_left_s = std::max(0.0, remaining.access_s - remaining.served_s);
  const double stop_s = application.io.stops ? std::min(application.io.stop_s, access_left_s) : access_left_s;
  return {processes,
          std::max(left_s, application.demand.served_s + left_s),
          std::max(left_s, 1e-6),
          to_s(view_.now - application.demand.since),
          {interference_of(which), 0},
          1,
          between ? 0 : std::min(stop_s, left_s)};
}

// Returns the seconds that plans may still cost the application: their part of the bound, less its present delay.
double Costs::slack_s(const model::Application& application) const {
  const double spent = view_.cluster.few_run() ? spent_on_purpose : spent_among_many;
  const double allowed_s = spent * view_.settings.most_slowdown * to_s(view_.now - application.arrived);
  return std::max(0.0, allowed_s - std::max(0.0, application.late_s));
}

// Returns what the contender would have left now without coordination, in seconds alone.
double Costs::virtual_left_s(std::size_t which, double left_s) const {
  const auto* access = view_.target.uncoordinated.find(contenders_[which]->application->id);
  if (access == nullptr || !access->goes_on) return left_s;
  return std::max(1e-6, left_s + known_[which].remaining.served_s - access->done_s);
}

// Returns the latest end of each contender, in seconds from now: its uncoordinated end plus its slack.
std::vector<double> Costs::latest() const {
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < contenders_.size(); ++i) {
    Job job = job_of(i);
    job.left_s = virtual_left_s(i, job.left_s);
    jobs.push_back(job);
  }
  // Accesses that have ended in reality would still continue without coordination, and slow the others down there.
  for (const model::Uncoordinated::Access& access : view_.target.uncoordinated.accesses()) {
    const auto same = [&](const Contender* one) { return one->application->id == access.application; };
    if (access.goes_on || std::any_of(contenders_.begin(), contenders_.end(), same)) continue;
    jobs.push_back({1, access.size_s, access.size_s - access.done_s, 0, access.slowness, access.demanded, 0});
  }
  const std::vector<Expected> expected = expect_together(jobs);
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

// Compares the possible actions now (openings) by what the look-ahead says that each leads to.
class Openings {
 public:
  Openings(const View& view, const std::vector<const Contender*>& contenders, Cast cast, std::size_t holders)
      : view_(view), contenders_(contenders), cast_(std::move(cast)), holders_(holders) {
    for (const Actor& actor : cast_.actors) horizon_s_ = std::max(horizon_s_, periods * length_s(actor));
  }

  Decision decide(bool interruptible) {
    Opening together;
    together.together = true;
    base_s_ = lost_s(cast_.uncoordinated, together, horizon_s_);
    if (holders_ > 0) look_at("wait", {});
    const std::size_t first = holders_;
    for (std::size_t i = first; i < contenders_.size(); ++i) look_at(holders_ > 0 ? "interfere" : "wait", {{i}});
    if (contenders_.size() > first + 1) {
      Opening all;
      for (std::size_t i = first; i < contenders_.size(); ++i) all.go.push_back(i);
      look_at("interfere", all);
    }
    for (std::size_t i = first; interruptible && i < contenders_.size(); ++i) look_at("interrupt", {{i}, 0});
    if (holders_ == 1) look_at_delays();
    return serve();
  }

 private:
  struct Candidate {
    std::string_view action;
    Opening opening;
    double excess_s = 0;  // beyond the bounds, summed over all applications
    double cost = 0;
  };

  // The next application begins after an eighth, two eighths, … of what the holder has left. Where its phase is
  // shorter, it also begins so late that, undisturbed, both would end together.
  void look_at_delays() {
    const double left_s = cast_.actors[0].left_s;
    for (int i = 1; i < delays; ++i) look_at("delay", {{1}, std::nullopt, left_s * i / delays});
    if (cast_.actors[1].left_s < left_s) look_at("delay", {{1}, std::nullopt, left_s - cast_.actors[1].left_s});
  }

  void look_at(std::string_view action, const Opening& opening) {
    const std::vector<double> lost = lost_s(cast_.actors, opening, horizon_s_);
    Candidate one{action, opening};
    std::vector<Expected> expected;
    for (std::size_t i = 0; i < cast_.actors.size(); ++i) {
      const Actor& actor = cast_.actors[i];
      const double cycle_s = length_s(actor);
      double io_s = actor.left_s;
      for (const Actor::Phase& phase : actor.phases) io_s += phase.size_s * (cycle_s > 0 ? horizon_s_ / cycle_s : 0);
      expected.push_back({actor.processes, io_s + lost[i], std::max(io_s, 1e-9), horizon_s_ + lost[i]});
      one.excess_s += std::max(0.0, lost[i] + cast_.ahead_s[i] - base_s_[i] - cast_.slack_s[i]);
    }
    one.cost = view_.settings.metric.of(expected);
    if (!std::isfinite(one.cost)) return;
    candidates_.push_back(std::move(one));
  }

  // The bounds come first (rule 3), then the metric.
  static bool is_better(const Candidate& one, const Candidate& other) {
    if (std::abs(one.excess_s - other.excess_s) > rounding_s) return one.excess_s < other.excess_s;
    return one.cost < other.cost - least_gain * std::abs(other.cost);
  }

  // Turns the best candidate into grants and preemptions. Among equals the action listed first wins.
  Decision serve() const {
    Decision decision;
    if (candidates_.empty()) return decision;
    const Candidate* best = &candidates_.front();
    for (const std::string_view action : {"wait", "delay", "interfere", "interrupt"}) {
      const Candidate* least = nullptr;
      for (const Candidate& one : candidates_) {
        if (one.action == action && (least == nullptr || is_better(one, *least))) least = &one;
      }
      if (least == nullptr) continue;
      decision.costs.push_back({action, least->cost});
      if (is_better(*least, *best)) best = least;
    }
    const Opening& opening = best->opening;
    if (opening.delay_s > 0) decision.again = view_.now + from_s(std::min(opening.delay_s, longest_delay_s));
    if (opening.interrupted) {
      const AppId holder = contenders_[*opening.interrupted]->application->id;
      decision.interruptions = {holder};
      decision.choices = {{contenders_[opening.go.front()]->application->id, holder, best->action}};
      return decision;
    }
    const std::size_t beside = holders_ > 0 ? 0 : opening.go.front();
    for (std::size_t i = holders_; i < contenders_.size(); ++i) {
      const bool goes = std::find(opening.go.begin(), opening.go.end(), i) != opening.go.end();
      if (goes && opening.delay_s <= 0) decision.grants.push_back(grant_of(*contenders_[i]));
      if (i == beside) continue;
      decision.choices.push_back({contenders_[i]->application->id, contenders_[beside]->application->id,
                                  goes ? best->action : std::string_view{"wait"}});
    }
    return decision;
  }

  const View& view_;
  const std::vector<const Contender*>& contenders_;
  Cast cast_;
  std::size_t holders_;
  double horizon_s_ = 0;
  std::vector<double> base_s_;
  std::vector<Candidate> candidates_;
};

// Adds the contenders to the cast. Returns false if one of them is not regular, so that the look-ahead is impossible.
bool Costs::add_contenders(Cast& cast) const {
  for (std::size_t i = 0; i < contenders_.size(); ++i) {
    const model::Application& application = *contenders_[i]->application;
    const Job job = job_of(i);
    auto phases = cycle_of(application.accesses, view_.target.record);
    if (phases.empty()) return false;
    Actor actor{job.processes, job.left_s, job.stop_s, i < holders_, 0, std::move(phases), job.slowness.interference};
    cast.actors.push_back(actor);
    actor.left_s = virtual_left_s(i, job.left_s);
    cast.ahead_s.push_back(job.left_s - actor.left_s);
    cast.slack_s.push_back(slack_s(application));
    cast.uncoordinated.push_back(std::move(actor));
  }
  return true;
}

// Adds the applications that compute now and will use the target. Returns false if that makes more than most_foreseen.
bool Costs::add_expected(Cast& cast) const {
  for (const auto& [id, other] : view_.cluster.applications()) {
    const model::Application& application = other;
    const auto same = [&](const Contender* one) { return one->application == &application; };
    if (std::any_of(contenders_.begin(), contenders_.end(), same) || application.accesses.in_phase()) continue;
    auto phases = cycle_of(application.accesses, view_.target.record);
    const bool comes = std::any_of(phases.begin(), phases.end(), [](const auto& one) { return one.size_s > 0; });
    if (!comes) continue;
    if (cast.actors.size() == most_foreseen) return false;
    const double elapsed_s = to_s(view_.now - application.accesses.last_end());
    const double starts_in_s = std::max(1e-3, phases.front().computing_s - elapsed_s);
    const auto processes = static_cast<double>(std::max<std::int64_t>(1, application.computing_processes()));
    cast.actors.push_back({processes, 0, 0, false, starts_in_s, std::move(phases), view_.settings.interference});
    cast.uncoordinated.push_back(cast.actors.back());
    cast.ahead_s.push_back(0);
    cast.slack_s.push_back(slack_s(application));
  }
  return true;
}

// Decides by the look-ahead. Returns nothing if an application is not regular, or there are too many.
std::optional<Decision> Costs::foresee() const {
  if (contenders_.size() > most_foreseen) return std::nullopt;
  Cast cast;
  if (!add_contenders(cast) || !add_expected(cast)) return std::nullopt;
  const bool interruptible =
      holders_ == 1 && !all_.pausing && may_be_interrupted(view_, *contenders_.front()->application);
  return Openings{view_, contenders_, std::move(cast), holders_}.decide(interruptible);
}

Decision Costs::decide() {
  // contenders() lists the holders in the order of the target, so both lists advance together.
  auto contender = all_.holders.begin();
  double first_end_s = longest_delay_s;
  for (const model::Holder& holder : view_.target.holders) {
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
  Decision decision;
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
    const auto foreseen = foresee();
    decision = foreseen ? *foreseen : Search{view_, contest}.decide();
  }
  // Ask again when the first holder becomes overdue, for then rule 2 ends the wait.
  const Time again = view_.now + from_s(first_end_s);
  if (holders_ > 0 && (decision.again <= view_.now || again < decision.again)) decision.again = again;
  return decision;
}

Decision decide(const View& view, const event::Event&) {
  const Contenders all = contenders(view);
  if (all.waiting.empty()) return {};
  return Costs{view, all}.decide();
}

}  // namespace

constexpr Policy cost{.name = "cost",
                      .summary = "the cheapest by what was measured, and nobody later than uncoordinated (default)",
                      .decide = decide,
                      .most_slowdown = most_slowdown,
                      .learnt_hold = true};

}  // namespace hocket::policy
