// Period coupling makes the I/O period of one application a multiple of another's (CLARISSE+FlexMPI, section 4.2.2,
// Algorithm 4). If I/O phases of the two are predicted to meet, the application with the longer period gets more
// processes permanently. If the period that it then shows is longer or shorter than was wanted, it is resized again.
// Once the periods fit, or if they cannot, phases are shifted.
//
// Sizes do not grow without end. Of two applications one follows the other, and only the follower is resized. After an
// overshoot it is the follower that gives processes back, although its partner then has the longer period.
#include <algorithm>
#include <array>
#include <cmath>

#include "policy/phase_shift.hpp"

namespace hocket::policy {
namespace {

using model::Application;
using model::Conflict;

// Part of the longer period by which it may miss the multiple. A phase shift then lasts for a hundred periods.
constexpr double fits_within = 0.01;
// Number of periods that a size must have shown before it is corrected. One period has no spread.
constexpr std::size_t least_periods = 2;
// Largest multiple that is considered. Far beyond it, two multiples differ by less than the periods are known.
constexpr double most_times = 1e6;

// The I/O period of an application at its present size, in seconds.
struct PresentPeriod {
  double mean_s = 0;   // 0: not known
  double doubt_s = 0;  // plus or minus: two standard errors of the mean
};
PresentPeriod present_period(const Application& application) {
  const auto pace = model::pace(application, application.computing_processes());
  if (!pace) return {};
  const auto periods = static_cast<double>(std::max<std::size_t>(1, application.history.present().periods));
  return {pace->period_s(), std::hypot(pace->compute.uncertainty, pace->io.uncertainty) / std::sqrt(periods)};
}

// True if period coupling has resized the application permanently, and nothing is stacked on that.
bool is_coupled(const Application& application) {
  const model::Expansion& expansion = application.expansion;
  return expansion.decision != 0 && !expansion.is_temporary() && expansion.policy == period_coupling.name;
}

bool follows(const Application& application, const Application& other) {
  return is_coupled(application) && application.expansion.because_of == other.id;
}

bool follows_third(const CoreView& view, const Application& application, const Application& other) {
  return is_coupled(application) && application.expansion.because_of != other.id &&
         view.cluster.find(application.expansion.because_of) != nullptr;
}

// Returns the fewest processes that the policy may leave to the application. It takes back only what it gave.
std::int64_t least_processes(const Application& application) {
  const std::int64_t present = application.computing_processes();
  return is_coupled(application) ? std::min(application.expansion.original, present) : present;
}

// Returns the predicted I/O period in seconds at that size; 0: not known. Between the original size of a coupled
// application and its present one, it is interpolated between the periods that both have shown: the speedup curve was
// wrong there, or there would be no overshoot.
double period_at(const Application& k, std::int64_t processes) {
  const auto pace = model::pace(k, processes);
  const std::int64_t present = k.computing_processes();
  const std::int64_t original = least_processes(k);
  const double original_s = k.expansion.original_period_s;
  const bool between = original <= processes && processes < present && original_s > 0;
  if (!pace || !between || k.history.at_size(processes).periods > 0) return pace ? pace->period_s() : 0;
  const double present_s = model::pace(k, present)->period_s();
  if (present_s >= original_s) return pace->period_s();  // its periods have become longer since
  const auto ratio = [](double a, double b) { return std::log(a / b); };
  const auto size = [](std::int64_t n) { return static_cast<double>(n); };
  const double part = ratio(size(processes), size(original)) / ratio(size(present), size(original));
  return original_s * std::exp(part * ratio(present_s, original_s));
}

double longest_period_s(const Application& application) { return period_at(application, least_processes(application)); }

// Chooses the application to resize (select_largest_period() in the paper): the one that follows the other. If none
// does, or if its partner became slower than it ever was, it is the one with the longer period before any coupling.
const Application& select_application(const Conflict& conflict) {
  const Application& a = *conflict.subject;
  const Application& b = *conflict.other;
  const auto stays = [](const Application& one, const Application& partner) {
    return follows(one, partner) &&
           longest_period_s(one) >= (1 - fits_within) * period_at(partner, partner.computing_processes());
  };
  const bool a_stays = stays(a, b);
  if (a_stays != stays(b, a)) return a_stays ? a : b;
  return longest_period_s(a) > longest_period_s(b) ? a : b;
}

// A size of application k, and the multiple of the other's period that it leads to.
struct CoupledSize {
  std::int64_t processes = 0;  // 0: there is none
  double multiple = 0;
};

// Returns the fewest processes from `least` to `most` with at most that period; nothing if all have a longer one.
std::optional<std::int64_t> fewest_within(const Application& k, double wanted_s, std::int64_t least,
                                          std::int64_t most) {
  if (period_at(k, most) > wanted_s) return std::nullopt;
  while (least < most) {
    const std::int64_t middle = least + (most - least) / 2;
    if (period_at(k, middle) > wanted_s) {
      least = middle + 1;
    } else {
      most = middle;
    }
  }
  return most;
}

// Returns the fewest processes, more than present, with at most that period; nothing if no number has one.
std::optional<std::int64_t> fewest_above(const Application& k, double wanted_s) {
  const std::int64_t present = k.computing_processes();
  const auto pace = model::pace(k, present);
  // The I/O time hardly depends on the size, so the computing has to save all of the difference.
  if (!pace || k.curve.empty() || pace->io.value >= wanted_s) return std::nullopt;
  return k.curve.processes_for(pace->compute.value / (wanted_s - pace->io.value), present, model::most_processes);
}

// Returns the size whose period is nearest to `wanted_s`. It has at least what k had before it was coupled, and no more
// than the free cores allow. Returns 0 if such sizes do not reach that period, or if no size comes nearer to it by more
// than `tolerance_s`, or within that.
std::int64_t obtain_processes(const CoreView& view, const Application& k, double wanted_s, double tolerance_s) {
  const std::int64_t present = k.computing_processes();
  const bool grows = wanted_s < period_at(k, present);
  const std::int64_t least = grows ? present : least_processes(k);
  const std::int64_t most = grows ? std::min(present + view.cores.free_for(k.id), view.settings.limit_of(k)) : present;
  const auto reaching = grows ? fewest_above(k, wanted_s) : fewest_within(k, wanted_s, least, most);
  if (!reaching || *reaching - 1 > most || period_at(k, least) < wanted_s - tolerance_s) return 0;
  const auto miss = [&](std::int64_t processes) { return std::abs(period_at(k, processes) - wanted_s); };
  const std::int64_t below = std::max(least, *reaching - 1);
  const std::int64_t nearest = *reaching <= most && miss(*reaching) <= miss(below) ? *reaching : below;
  const bool is_nearer = miss(nearest) <= tolerance_s || miss(nearest) + tolerance_s < miss(present);
  return nearest != present && is_nearer ? nearest : 0;
}

// Returns the size that leads to the nearest multiple that k can reach. More processes lead to the multiples below its
// present period only, and fewer to those above. So only the next one on either side has to be tried.
CoupledSize find_size(const CoreView& view, const Application& k, double period_s, double other_s, double tolerance_s) {
  const double below = std::floor(period_s / other_s);
  std::array multiples{below, below + 1};
  if (period_s > (below + 0.5) * other_s) std::swap(multiples[0], multiples[1]);
  for (const double multiple : multiples) {
    if (multiple < 1) continue;
    const std::int64_t processes = obtain_processes(view, k, multiple * other_s, tolerance_s);
    if (processes != 0) return {processes, multiple};
  }
  return {};
}

// True if two periods fit already, within the tolerance: the longer is a multiple of the shorter.
bool fit(const PresentPeriod& a, const PresentPeriod& b, double& tolerance_s) {
  const PresentPeriod& longer = a.mean_s > b.mean_s ? a : b;
  const PresentPeriod& shorter = a.mean_s > b.mean_s ? b : a;
  const double multiple = std::round(longer.mean_s / shorter.mean_s);
  tolerance_s = std::max(fits_within * longer.mean_s, std::hypot(longer.doubt_s, multiple * shorter.doubt_s));
  return std::abs(longer.mean_s - multiple * shorter.mean_s) <= tolerance_s;
}

// Returns the change of application k to that size, and weighs it; nothing if it costs more than it saves.
std::optional<CoreChange> plan(const CoreView& view, const Conflict& conflict, const Application& k,
                               const CoupledSize& size) {
  const std::int64_t present = k.computing_processes();
  const Application& other = other_than(conflict, k);
  const double period_s = period_at(k, present);
  const double period_after_s = period_at(k, size.processes);
  const auto stretch = stretch_ahead(k, view.now);
  const model::Estimate cost = resize_cost(k, present, size.processes, view.settings);
  const auto pace = model::pace(k, present);
  const double faster = (period_s - period_after_s) / pace->compute.value;  // part of the computing that is saved
  const double saved_s = (stretch ? stretch->time_s : 0) * faster - cost.value;
  CoreChange change;
  change.application = k.id;
  change.processes = size.processes;
  change.because_of = other.id;
  change.conflict = conflict.start;
  change.overlap = conflict.overlap;
  change.start_before = phase_of(conflict, k).start;
  change.start_after = change.start_before - duration_of(saved_s);
  change.period_after = duration_of(period_after_s);
  change.resize_spread = duration_of(cost.uncertainty);
  const ConflictLoss worth = worth_of(view, conflict, k, change.start_after, change.period_after);
  // An application that grows keeps the cores and stays faster. Unlike with a shift, that gain is not given back. One
  // that gives back an overshoot becomes slower, but no slower than it was meant to be, and its cores are free.
  const double faster_s = std::max(0.0, period_s - period_after_s) * worth.periods;
  if (!worth.pays(cost.value - faster_s)) return std::nullopt;
  change.reason =
      event::PeriodCoupling{facts_of(conflict, k, view.now), period_s, period_after_s,
                            period_at(other, other.computing_processes()), static_cast<std::int64_t>(size.multiple)};
  return change;
}

// Returns the change that makes the periods fit; nothing if they fit already, or if no worthwhile size does that.
std::optional<CoreChange> couple(const CoreView& view, const Conflict& conflict) {
  const Application& k = select_application(conflict);
  const Application& other = other_than(conflict, k);
  const bool changes = other.malleability.resizing_to != 0 || other.expansion.is_temporary();
  if (!can_resize(k) || changes || follows_third(view, k, other)) return std::nullopt;
  if (is_coupled(k) && k.history.present().periods < least_periods) return std::nullopt;
  const PresentPeriod of_k = present_period(k);
  const PresentPeriod of_other = present_period(other);
  if (!(of_k.mean_s > 0 && of_other.mean_s > 0) || of_k.mean_s > most_times * of_other.mean_s) return std::nullopt;
  double tolerance_s = 0;
  if (fit(of_k, of_other, tolerance_s)) return std::nullopt;
  const CoupledSize size = find_size(view, k, of_k.mean_s, of_other.mean_s, tolerance_s);
  return size.processes == 0 ? std::nullopt : plan(view, conflict, k, size);
}

CoreDecision decide(const CoreView& view, const event::Event& event, AppId subject) {
  const auto conflicts = conflicts_ahead(view, event, subject);
  CoreDecision decision;
  if (!conflicts.empty()) {
    auto change = couple(view, conflicts.front());
    if (change) return {{std::move(*change)}, {}};
    decision = shift_phases(view, conflicts);  // the periods fit, or coupling them is not worth it
  }
  leave_irregular(view, event, subject, decision);
  return decision;
}

}  // namespace

constexpr CorePolicy period_coupling{"period-coupling",
                                     "brings I/O periods to multiples of each other, then shifts phases",
                                     CoreKind::interference, decide};

}  // namespace hocket::policy
