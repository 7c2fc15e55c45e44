#include "emulator/program/kernels.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <ctime>
#include <vector>

namespace hocket::emulator {
namespace {

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Counts random points of a square that lie in its inscribed circle (Proteo, section 4.1). It works in registers.
class Pi final : public Kernel {
 public:
  void compute(std::int64_t units) override {
    std::uint64_t state = state_;
    std::int64_t inside = 0;
    for (std::int64_t point = 0; point < units; point++) {
      const double x = coordinate(state), y = coordinate(state);
      inside += x * x + y * y <= 1;
    }
    state_ = state;
    inside_ = inside_ + inside;
  }
  std::int64_t chunk() const override { return 2000; }

 private:
  static double coordinate(std::uint64_t& state) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return static_cast<double>(state >> 11) * 0x1p-53;
  }
  std::uint64_t state_ = 1;
  volatile std::int64_t inside_ = 0;  // volatile: the compiler must not leave the computation out
};

// Multiplies a matrix by itself. The second factor is read by columns, which misses the cache (Proteo, section 4.1). A
// unit is one element of the product.
class MatrixProduct final : public Kernel {
 public:
  explicit MatrixProduct(std::int64_t rows)
      : rows_(static_cast<std::size_t>(rows)), elements_(rows_ * rows_, 1.0 / static_cast<double>(rows)) {}
  void compute(std::int64_t units) override {
    for (std::int64_t unit = 0; unit < units; unit++) {
      const double* row = &elements_[row_ * rows_];
      const double* column = &elements_[column_];
      double sum = 0;
      for (std::size_t at = 0; at < rows_; at++) sum += row[at] * column[at * rows_];
      sum_ = sum_ + sum;
      if (++column_ == rows_) {
        column_ = 0;
        row_ = (row_ + 1) % rows_;
      }
    }
  }
  std::int64_t chunk() const override { return std::max<std::int64_t>(1, 4000 / static_cast<std::int64_t>(rows_)); }

 private:
  std::size_t rows_;
  std::vector<double> elements_;
  std::size_t row_ = 0, column_ = 0;  // the next element of the product
  volatile double sum_ = 0;
};

}  // namespace

double now_s() { return seconds_of(CLOCK_MONOTONIC); }
double cpu_s() { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }

std::unique_ptr<Kernel> make_kernel(Kind kind, std::int64_t granularity) {
  if (kind == Kind::compute) return std::make_unique<Pi>();
  return std::make_unique<MatrixProduct>(granularity);
}

double units_of(Kind kind, std::int64_t granularity) {
  const auto size = static_cast<double>(granularity);
  return kind == Kind::compute ? size : size * size;
}

double calibrate(Kind kind, std::int64_t granularity, double limit_s) {
  const std::unique_ptr<Kernel> kernel = make_kernel(kind, granularity);
  const double begin_s = now_s(), sample_s = limit_s / 50;
  std::vector<double> samples;  // CPU seconds of a unit
  while (samples.empty() || now_s() - begin_s < limit_s) {
    const double cpu_before_s = cpu_s(), before_s = now_s();
    std::int64_t units = 0;
    while (units == 0 || now_s() - before_s < sample_s) {
      kernel->compute(kernel->chunk());
      units += kernel->chunk();
    }
    samples.push_back((cpu_s() - cpu_before_s) / static_cast<double>(units));
  }
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle * units_of(kind, granularity);
}

}  // namespace hocket::emulator
