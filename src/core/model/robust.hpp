// Samples computes the mean of a quantity that varies, and that is sometimes far from its usual value.
//
// A few values far from the rest do not count: a phase may have been left out, or the application stopped. If three
// in a row are far from the present usual value, the application has changed, and they and all older values do not
// count.
//
// Pure, not thread-safe.
#pragma once

#include <array>
#include <cstddef>

#include "model/phase_record.hpp"

namespace hocket::model {

struct Moments {
  double mean = 0;
  double spread = 0;  // standard deviation; 0 if there is only one value
};

// A fixed buffer of values, one for each kept phase at most.
class Samples {
 public:
  // Adds a value, the newest first. Precondition: fewer values than kept phases (32) so far.
  void add(double value) { values_[count_++] = value; }
  std::size_t count() const { return count_; }
  // Returns mean and standard deviation of the values that count; 0 if there is none.
  Moments moments() const;

 private:
  EachPhase<double> values_{};
  std::size_t count_ = 0;
};

}  // namespace hocket::model
