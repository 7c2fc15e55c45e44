// Stages that compute, and those that sleep.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <ctime>

#include "emulator/program/stage_run.hpp"
#include "emulator/shares.hpp"

namespace hocket::emulator {
namespace {

// The length of a stage on this rank, as the plan has it.
struct Length {
  const Stage& stage;
  std::size_t number;
  std::uint64_t seed;
  int rank;
  double mean_s;  // without jitter

  Length(const Stage& of, std::size_t number_in_plan, const Shop& shop)
      : stage(of), number(number_in_plan), seed(shop.plan.seed), rank(shop.ranks.rank) {
    const int size = shop.ranks.size;
    const double share = shares_of(stage, size, seed, number)[static_cast<std::size_t>(rank)];
    mean_s = stage.time_s * factor_of(stage, shop.plan, shop.iteration, size) * share * size;
  }
  // `time`: how often the stage has taken place, so that each repetition has a jitter of its own.
  double at(std::int64_t time) const { return mean_s * jitter_of(stage.jitter, seed, number, time, rank); }
};

class Computing final : public StageRun {
 public:
  Computing(const Stage& stage, std::size_t number, Shop& shop) : length_(stage, number, shop), shop_(shop) {
    auto& kernel = shop.kernels[{stage.kind, stage.kind == Kind::compute ? 0 : stage.granularity}];
    if (!kernel) kernel = make_kernel(stage.kind, stage.granularity);
    kernel_ = kernel.get();
    if (!stage.ends_by_time && !stage.ends_by_cpu_time)
      units_per_s_ = units_of(stage.kind, stage.granularity) / stage.operation_s;
  }

  void run(std::int64_t /*iteration*/, std::int64_t before) override {
    const double length_s = length_.at(before);
    if (length_.stage.ends_by_cpu_time) {
      const double begin_s = shop_.ended_cpu_s < 0 ? cpu_s() : shop_.ended_cpu_s;
      const double end_s = begin_s + length_s - late_s_;
      while (cpu_s() < end_s) kernel_->compute(kernel_->chunk());
      shop_.ended_cpu_s = cpu_s();  // the stage may be repeated
      late_s_ = std::min(shop_.ended_cpu_s - end_s, length_s);
    } else if (length_.stage.ends_by_time) {
      const double end_s = now_s() + length_s;
      while (now_s() < end_s) kernel_->compute(kernel_->chunk());
    } else {
      kernel_->compute(std::llround(length_s * units_per_s_));
    }
  }

 private:
  Length length_;
  Shop& shop_;
  Kernel* kernel_ = nullptr;
  double units_per_s_ = 0;  // of CPU time
  double late_s_ = 0;       // by which the last time took too long: the end lies between two looks at the clock
};

class Sleep final : public StageRun {
 public:
  Sleep(const Stage& stage, std::size_t number, const Shop& shop) : length_(stage, number, shop) {}

  void run(std::int64_t /*iteration*/, std::int64_t before) override {
    const double end_s = now_s() + length_.at(before);
    const timespec end{static_cast<time_t>(end_s), static_cast<long>((end_s - std::floor(end_s)) * 1e9)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr) == EINTR) continue;
  }

 private:
  Length length_;
};

}  // namespace

std::unique_ptr<StageRun> make_computing(const Stage& stage, std::size_t number, Shop& shop) {
  if (stage.kind == Kind::sleep) return std::make_unique<Sleep>(stage, number, shop);
  return std::make_unique<Computing>(stage, number, shop);
}

}  // namespace hocket::emulator
