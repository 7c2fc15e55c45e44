// Estimates how long an application would wait for a target if it asked now, so that it can compute first and come back
// (CALCioM, section III-B: applications "decide to schedule their operations differently").
//
// The estimate plays the queue forward on a copy of the target: the access policy says which applications are served
// next, and the model how long each of them still needs. Policies in Python are not called, because their own state
// could notice; for them, applications are served in order of arrival. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "policy/policy.hpp"

namespace hocket::policy {

struct WaitEstimate {
  double wait_s = 0;
  // Plus or minus, a standard deviation; nothing if an application ahead neither announced nor showed its I/O before.
  std::optional<double> uncertainty_s = 0;
  std::int64_t ahead = 0;  // applications that are served before
};

// Returns the expected wait of `asker` for `view.target`, if it asked now for I/O of that many bytes (0: not known). An
// asker that waits there already keeps its place. nullptr: an application about which nothing is known. The progress on
// the target must have been counted up to `view.now`. The policy is called at most once for each application that
// waits, and once more.
WaitEstimate expected_wait(const View& view, const Policy& policy, const model::Application* asker, std::int64_t bytes);

}  // namespace hocket::policy
