#include "model/access_history.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "model/measures.hpp"

namespace hocket::model {
namespace {

constexpr std::size_t most_kinds = 32;
constexpr double doublings = 3;  // per order of magnitude
// Less time beside others than this shows nothing of them: a header, for instance, waits for one chunk of a large
// access.
constexpr double least_measured_s = 0.05;
// A fit of two rates is rejected if its determinant is relatively smaller than `least_apart`, because then all
// accesses overlapped alike. `most_residual` bounds the squared relative error of the fit.
constexpr double least_apart = 0.02;
constexpr double most_residual = 0.02;
constexpr double kept = 0.7;  // weight of the earlier measurements, with each new one
// Two occupancies beside others show the time alone if their shared parts differ by `well_apart`, and if others cost
// at most `most_lost` of the shared time.
constexpr double well_apart = 0.15;
constexpr double most_lost = 0.9;
// The requested bytes predict the moved bytes if their ratio deviates by at most this part of its mean.
constexpr double well_told = 0.25;
// The longest gap is the mean plus this many mean deviations, as TCP computes its retransmission timeout.
constexpr double deviations = 4;

// Phases are similar if they deviate from their mean by at most this part.
constexpr double well_alike = 0.6;
// Contention is attributed to one load if at least this part of the others had it.
constexpr double nearly_all = 0.9;

}  // namespace

AccessLoad load_of(std::string_view routine) {
  return routine.find("read") != std::string_view::npos ? AccessLoad::read : AccessLoad::write;
}

void Contention::add(double shared_s, double others_s, double longer_s) {
  shared_s_ = kept * shared_s_ + shared_s;
  others_s_ = kept * others_s_ + others_s;
  longer_s_ = kept * longer_s_ + longer_s;
}

void Rate::add(double bytes, double seconds) {
  bytes_ = kept * bytes_ + bytes;
  seconds_ = kept * seconds_ + seconds;
}

// Dividing by the bytes gives each access the same weight, whatever its size.
void RateFit::add(double alone_s, double beside_s, double bytes) {
  const double a = alone_s / bytes, b = beside_s / bytes;
  aa_ = kept * aa_ + a * a;
  ab_ = kept * ab_ + a * b;
  bb_ = kept * bb_ + b * b;
  a_ = kept * a_ + a;
  b_ = kept * b_ + b;
  count_ = kept * count_ + 1;
}

std::optional<double> RateFit::bytes_per_s() const {
  const double determinant = aa_ * bb_ - ab_ * ab_;
  if (count_ < 1.5 || !(determinant > least_apart * aa_ * bb_)) return std::nullopt;
  const double alone = (a_ * bb_ - b_ * ab_) / determinant;
  const double beside = (b_ * aa_ - a_ * ab_) / determinant;
  const double residual = count_ - alone * a_ - beside * b_;  // deviations from 1, the sum for each access
  if (!(beside > 0 && alone >= beside) || residual > most_residual * count_) return std::nullopt;
  return alone;
}

double Contention::interference() const {
  if (shared_s_ < least_measured_s) return 0;
  const double progress_s = std::max(shared_s_ - std::max(0.0, longer_s_), shared_s_ / most_interference);
  return std::min(1 + (shared_s_ / progress_s - 1) / (others_s_ / shared_s_), most_interference);
}

std::size_t AccessHistory::kind_of(const std::string& routine, const TargetRecord* target, std::int64_t bytes) {
  const int magnitude = bytes > 0 ? static_cast<int>(std::log2(static_cast<double>(bytes)) / doublings) : -1;
  const auto same = [&](const AccessKind& kind) {
    return kind.target == target && kind.magnitude == magnitude && kind.routine == routine;
  };
  auto found = std::find_if(kinds_.begin(), kinds_.end(), same);
  if (found == kinds_.end()) {
    if (kinds_.size() == most_kinds) {
      found = std::prev(found);
    } else {
      found = kinds_.insert(
          found, AccessKind{routine, magnitude, target, load_of(routine), {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}});
    }
  }
  return static_cast<std::size_t>(found - kinds_.begin());
}

std::size_t AccessHistory::asked(const std::string& routine, const TargetRecord* target, std::int64_t bytes,
                                 bool only_one, Time now) {
  const std::size_t kind = kind_of(routine, target, bytes);
  // The previous access was not the last one of its phase: its gap is over.
  if (last_ && only_one) {
    kinds_[*last_].follows.add(1);
    kinds_[*last_].gap.add(to_s(now - last_end_));
    last_.reset();
  }
  if (first_) return kind;
  if (before_) {
    kinds_[*before_].computing.add(to_s(now - last_end_));
    kinds_[*before_].next = kind;
  }
  first_ = kind;
  return kind;
}

AccessHistory::Ended AccessHistory::ended(const Occupancy& occupancy, Time now, const TargetKnowledge& told) {
  AccessKind& kind = kinds_[occupancy.kind];
  last_ = occupancy.kind;
  last_end_ = now - std::clamp(occupancy.idle, Duration{}, now - occupancy.since);
  const double span_s = to_s(last_end_ - occupancy.since);
  if (!occupancy.whole || !(span_s > 0)) {
    phase_known_ = false;
    return {};
  }
  const double shared_s = std::min(occupancy.shared_s, span_s);
  if (shared_s <= least_shared * span_s) {
    const Shared before = kind.shared;
    learn_alone(kind, occupancy, span_s, Ground::measured);
    done_s_ += span_s;
    // Only now is it known how much the previous occupancy, which was beside others, lost to them.
    if (before.span_s > 0) return {span_s, learn_beside_others(kind, before, alone_s(kind, before.bytes))};
    return {span_s, {}};
  }
  const Shared shared{span_s, shared_s, occupancy.others_s, occupancy.bytes};
  // The application has shown nothing of this kind yet, so knowledge about others stands in.
  if (!kind.span.known() && (told.interference > 0 || told.alone_s > 0 || told.even)) {
    const double others =
        std::max(1.0, std::accumulate(occupancy.others_s.begin(), occupancy.others_s.end(), 0.0) / occupancy.shared_s);
    const double apart_s = span_s - shared_s + shared_s / (1 + (told.interference - 1) * others);
    // The estimate assumes no greater loss than an even share of the target would cause.
    const double even_s = span_s - shared_s + shared_s / (1 + others);
    const double alone_s = told.interference > 0 ? apart_s : std::clamp(told.alone_s, even_s, span_s);
    learn_alone(kind, occupancy, alone_s, Ground::supposed);
    kind.shared = shared;
    done_s_ += alone_s;
    if (!(told.interference > 0)) learn_beside_others(kind, shared, alone_s);
    return {alone_s, {}};
  }
  if (kind.ground != Ground::measured) learn_from_two_shared(kind, occupancy, shared);
  const double known_s = kind.span.known() ? alone_s(kind, occupancy.bytes) : 0;
  done_s_ += known_s;
  if (known_s > 0) return {known_s, learn_beside_others(kind, shared, known_s)};
  phase_known_ = false;
  return {};
}

std::optional<AccessHistory::ShownContention> AccessHistory::learn_beside_others(AccessKind& kind, const Shared& shared,
                                                                                 double alone_s) {
  const auto most = std::max_element(shared.others_s.begin(), shared.others_s.end());
  const double all_s = std::accumulate(shared.others_s.begin(), shared.others_s.end(), 0.0);
  if (shared.part_s < well_shared * shared.span_s || !(all_s > 0)) return std::nullopt;
  const auto which = static_cast<std::size_t>(most - shared.others_s.begin());
  Contention shown;
  shown.add(shared.part_s, std::max(all_s, shared.part_s), shared.span_s - alone_s);
  if (*most < nearly_all * all_s) {
    kind.mixed.add(shown);
    return std::nullopt;
  }
  kind.contention[which].add(shown);
  return ShownContention{kind.load, static_cast<AccessLoad>(which), shown};
}

void AccessHistory::learn_alone(AccessKind& kind, const Occupancy& occupancy, double span_s, Ground ground) {
  if (ground > kind.ground) {
    kind.ground = ground;
    kind.span = kind.per_byte = kind.phase = {};
    kind.contention = {};
    kind.mixed = {};
  }
  kind.span.add(span_s);
  kind.shared = {};
  if (occupancy.bytes <= 0) return;
  kind.per_byte.add(span_s / static_cast<double>(occupancy.bytes));
  if (occupancy.asked > 0) kind.moved.add(static_cast<double>(occupancy.bytes) / static_cast<double>(occupancy.asked));
}

// Solves span = alone + loss x shared for two occupancies, per byte where the bytes are known.
void AccessHistory::learn_from_two_shared(AccessKind& kind, const Occupancy& occupancy, const Shared& shared) {
  const Shared before = std::exchange(kind.shared, shared);
  if (!(before.span_s > 0)) return;
  const double apart = shared.part_s / shared.span_s - before.part_s / before.span_s;
  if (std::abs(apart) < well_apart) return;
  const double longer = shared.for_each_byte(shared.span_s) - before.for_each_byte(before.span_s);
  const double loss =
      std::max(0.0, longer / (shared.for_each_byte(shared.part_s) - before.for_each_byte(before.part_s)));
  const double alone_s = shared.span_s - loss * shared.part_s;
  if (!(loss <= most_lost && alone_s > 0)) return;
  learn_alone(kind, occupancy, alone_s, Ground::fitted);
}

double AccessHistory::alone_s(const AccessKind& kind, std::int64_t bytes) {
  if (bytes > 0 && kind.per_byte.known()) return kind.per_byte.mean() * static_cast<double>(bytes);
  return kind.span.mean();
}

double AccessHistory::interference(std::size_t number, AccessLoad other) const {
  const AccessKind& kind = kinds_[number];
  const double beside = kind.contention[static_cast<std::size_t>(other)].interference();
  return beside > 0 ? beside : kind.mixed.interference();
}

void AccessHistory::phase_over() {
  if (last_) kinds_[*last_].follows.add(0);
  if (first_ && phase_known_ && done_s_ > 0) kinds_[*first_].phase.add(done_s_);
  if (first_) before_ = first_;
  first_.reset();
  last_.reset();
  done_s_ = 0;
  phase_known_ = true;
}

std::optional<AccessHistory::ExpectedAccess> AccessHistory::access(std::size_t number, std::int64_t bytes) const {
  const AccessKind& kind = kinds_[number];
  if (!kind.span.known()) return std::nullopt;
  const bool told = bytes > 0 && kind.moved.known() && kind.moved.deviation() <= well_told * kind.moved.mean();
  if (!told) return ExpectedAccess{kind.span.mean(), kind.span.deviation()};
  const double moved = static_cast<double>(bytes) * kind.moved.mean();
  return ExpectedAccess{kind.per_byte.mean() * moved, kind.per_byte.deviation() * moved};
}

std::optional<double> AccessHistory::rest_of_phase_s() const {
  if (!first_ || !kinds_[*first_].phase.known()) return std::nullopt;
  return std::max(0.0, kinds_[*first_].phase.mean() - done_s_);
}

std::optional<AccessHistory::TypicalPhase> AccessHistory::phase(std::size_t number) const {
  const AccessKind& kind = kinds_[number];
  const auto alike = [](const RunningMean& mean) {
    return mean.known() && mean.deviation() <= well_alike * mean.mean();
  };
  if (!kind.next || !alike(kind.phase) || !alike(kind.computing)) return std::nullopt;
  return TypicalPhase{kind.target, kind.phase.mean(), kind.computing.mean(), *kind.next};
}

double AccessHistory::bytes_per_s() const {
  const double per_byte = first_ ? kinds_[*first_].per_byte.mean() : 0;
  return per_byte > 0 ? 1 / per_byte : 0;
}

double AccessHistory::follows() const {
  if (!last_ || !kinds_[*last_].follows.known()) return 1;
  return kinds_[*last_].follows.mean();
}

std::optional<AccessHistory::Gap> AccessHistory::gap() const {
  if (!last_ || !kinds_[*last_].gap.known()) return std::nullopt;
  const RunningMean& gap = kinds_[*last_].gap;
  return Gap{gap.mean(), gap.mean() + deviations * gap.deviation()};
}

}  // namespace hocket::model
