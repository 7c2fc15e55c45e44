// Logs what `hocket capture` must know of a malleable program, in the log of calls (process/call_log.hpp):
//
// - each control point, kind control_point: `offset` is the iteration that follows, `bytes` the number of resizes so
//   far, `processes` and `peer` are those of the computing processes, and this process's rank of them (-1: it leaves);
// - after the first control point and after each resize, for each registered array, kind data: `bytes` of it in this
//   process, `peer` 0 (constant) or 1 (variable), and `processes` over which it is distributed, 0 if each has all;
// - after each resize, for each of its methods, kind method: `routine` is the name.
#pragma once

#include <cstdint>
#include <string_view>

#include "malleable/job.hpp"
#include "process/call_log.hpp"

namespace hocket::runtime {

class JobLog {
 public:
  // Logs a control point that ends now. `began` is its call_log::moment(). It does nothing if the log is off.
  void control_point(std::string_view routine, const call_log::CallStart& began, const MalleableJob& job);

 private:
  std::int64_t resizes_ = -1;  // of which data and methods are logged; -1: no control point has been logged
};

}  // namespace hocket::runtime
