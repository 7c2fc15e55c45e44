// The computations of stages, and the clocks by which they are measured.
#pragma once

#include <cstdint>
#include <memory>

#include "emulator/plan.hpp"

namespace hocket::emulator {

double now_s();  // of the node
double cpu_s();  // CPU time of this thread

// A computation in small units, so that a stage ends near its time: points of the π estimator, or elements of a matrix
// product. One operation of the plan has units_of(kind, granularity) of them.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void compute(std::int64_t units) = 0;
  // Returns how many units take some microseconds: the interval at which a stage that ends by time looks at the clock.
  virtual std::int64_t chunk() const = 0;
};

// Makes the kernel of a stage that computes. `granularity`: rows of the matrix.
std::unique_ptr<Kernel> make_kernel(Kind kind, std::int64_t granularity);
double units_of(Kind kind, std::int64_t granularity);

// Returns the CPU time of one operation in seconds, the median of measurements that take about `limit_s` together.
double calibrate(Kind kind, std::int64_t granularity, double limit_s);

}  // namespace hocket::emulator
