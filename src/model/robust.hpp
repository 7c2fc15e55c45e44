// The mean of a quantity that varies, and that is sometimes far from what it usually is.
//
// A few values far from the rest (a phase that was left out, an application that was stopped) do not count; once three
// in a row are far from what was before, the application has changed and the older ones do not count.
//
// Pure, not thread-safe.
#pragma once

#include <array>
#include <cstddef>

#include "model/phase_record.hpp"

namespace hocket::model {

struct Moments {
  double mean = 0;
  double spread = 0;  // standard deviation; 0 where there is only one value
};

class Samples {
 public:
  // The newest first; at most one for each kept phase.
  void add(double value) { values_[count_++] = value; }
  std::size_t count() const { return count_; }
  // 0 where there is no value.
  Moments moments() const;

 private:
  EachPhase<double> values_{};
  std::size_t count_ = 0;
};

}  // namespace hocket::model
