#include "redistribute/balance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hocket::redistribute {
namespace {

// A smaller part of the computing time is not worth a move: ranks of equal work differ by some 6 % on shared cores.
constexpr double smallest_part = 0.1;
// A disturbance that has cost less may be over soon: the kernel moves processes to free cores within a second or two.
constexpr double least_price_s = 1;
constexpr double most_patience = 1024;    // largest factor on the price of a move
constexpr std::int64_t fewest_times = 4;  // fewer iterations say nothing about noise

double slowest_s(std::span<const ProcessTime> times) {
  double slowest = 0;
  for (const ProcessTime& time : times) slowest = std::max(slowest, time.busy_s);
  return slowest;
}

// Returns the difference of means that noise alone hardly reaches. The largest of n errors grows with the root of
// 2 ln n.
double noise_s(std::span<const ProcessTime> times) {
  double error = 0;
  for (const ProcessTime& time : times) error = std::max(error, time.error_s);
  return error * (2 + std::sqrt(2 * std::log(static_cast<double>(times.size()))));
}

}  // namespace

// Welford's method: a sum of squares would lose the digits of small deviations.
void BusyWindow::add(double busy_s) {
  ++count_;
  const double away = busy_s - mean_s_;
  mean_s_ += away / static_cast<double>(count_);
  squares_s2_ += away * (busy_s - mean_s_);
}

void BusyWindow::add(const BusyWindow& other) {
  if (other.count_ == 0) return;
  const auto own = static_cast<double>(count_);
  const auto added = static_cast<double>(other.count_);
  const double away = other.mean_s_ - mean_s_;
  squares_s2_ += other.squares_s2_ + away * away * own * added / (own + added);
  mean_s_ += away * added / (own + added);
  count_ += other.count_;
}

double BusyWindow::mean_s() const { return mean_s_; }

double BusyWindow::error_s() const {
  if (count_ < fewest_times) return std::numeric_limits<double>::infinity();
  const auto count = static_cast<double>(count_);
  return std::sqrt(squares_s2_ / (count - 1) / count);
}

std::vector<double> speeds(std::span<const ProcessTime> times) {
  std::vector<double> speeds;
  speeds.reserve(times.size());
  double sum = 0;
  int known = 0;
  for (const ProcessTime& time : times) {
    const double speed = time.busy_s > 0 ? static_cast<double>(time.elements) / time.busy_s : 0;
    speeds.push_back(speed);
    sum += speed;
    known += speed > 0;
  }
  for (double& speed : speeds)
    if (speed <= 0) speed = known ? sum / known : 1;
  return speeds;
}

// The times with shares by speed follow from whole elements: a few large ones may not allow a better balance.
double avoidable_s(std::span<const ProcessTime> times) {
  std::int64_t length = 0;
  for (const ProcessTime& time : times) length += time.elements;
  if (times.size() < 2 || length == 0) return 0;
  const std::vector<double> speed = speeds(times);
  const Partition shares = Partition::weighted(length, speed);
  double then_s = 0;
  for (int k = 0; k < shares.parts(); ++k)
    then_s = std::max(then_s, static_cast<double>(shares.part(k).count()) / speed[static_cast<std::size_t>(k)]);
  const double now_s = slowest_s(times);
  const double gain_s = now_s - then_s;
  return gain_s > std::max(noise_s(times), smallest_part * now_s) ? gain_s : 0;
}

std::int64_t elements_moved(const Partition& before, const Partition& after) {
  std::int64_t kept = 0;
  for (int k = 0; k < before.parts(); ++k) {
    const std::int64_t first = std::max(before.part(k).first, after.part(k).first);
    kept += std::max<std::int64_t>(0, std::min(before.part(k).end, after.part(k).end) - first);
  }
  return before.length() - kept;
}

// Few bytes say nothing about the rate: their time counts as fixed. New costs count half, older ones the other half.
void MoveCost::learn(double bytes, double moving_s, double fixed_s) {
  constexpr double enough_bytes = 1 << 20;
  if (bytes >= enough_bytes)
    s_per_byte_ = (s_per_byte_ + moving_s / bytes) / 2;
  else
    fixed_s += moving_s;
  fixed_s_ = (fixed_s_ + fixed_s) / 2;
}

// An imbalance that a move did not mend may not depend on the elements at all.
void Rebalancing::judge_last_move(double slowest_s) {
  if (promised_s_ <= 0) return;
  const bool helped = slowest_s_ - slowest_s >= promised_s_ / 2;
  patience_ = helped ? 1 : std::min(2 * patience_, most_patience);
  promised_s_ = 0;
}

void Rebalancing::count_from_here(std::int64_t distance) {
  distance_ = distance;
  iterations_ = 1;  // unlike after a move, the next iteration is measured
}

bool Rebalancing::look(std::span<const ProcessTime> times, std::int64_t iterations, std::int64_t remaining,
                       double move_s) {
  const double slowest = slowest_s(times);
  judge_last_move(slowest);
  const double gain_s = avoidable_s(times);
  if (gain_s <= 0) {
    seen_ = 0;
    lost_s_ = 0;
    count_from_here(std::min(2 * distance_, longest));
    return false;
  }
  ++seen_;
  lost_s_ += gain_s * static_cast<double>(iterations);
  const double price_s = patience_ * std::max(move_s, least_price_s);
  // A single look may have met a disturbance that has passed.
  if (seen_ > 1 && lost_s_ >= price_s && gain_s * static_cast<double>(remaining) >= price_s) {
    promised_s_ = gain_s;
    slowest_s_ = slowest;
    count_from_here(shortest);
    return true;
  }
  const double until_paid = std::ceil((price_s - lost_s_) / gain_s);
  count_from_here(
      static_cast<std::int64_t>(std::clamp(until_paid, static_cast<double>(shortest), static_cast<double>(longest))));
  return false;
}

void Rebalancing::moved() {
  distance_ = shortest;
  iterations_ = 0;
  seen_ = 0;
  lost_s_ = 0;
}

}  // namespace hocket::redistribute
