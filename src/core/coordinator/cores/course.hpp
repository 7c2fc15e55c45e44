// A course records how a core policy has changed one application's size, and how far that change has progressed
// (course_states.hpp). Plain data of Steering, pure.
//
// A permanent change (`lasting`) stays in force. A temporary one (`passing`) may be stacked on it: a phase shift after
// period coupling, or a measurement.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/node_counts.hpp"
#include "base/time.hpp"
#include "coordinator/cores/course_states.hpp"

namespace hocket::coordinator {

// One change of size: the decision that made it, the policy, and the sizes before and after in processes.
struct SizeChange {
  std::int64_t decision = 0;  // number of its DECISION; 0: no change
  std::string_view policy;
  std::int64_t original = 0;  // processes before the change
  std::int64_t processes = 0;
  std::int64_t return_at = 0;      // iteration of the planned return; 0: it returns on request only
  AppId because_of{};              // the other application of the conflict behind it; none: there was no conflict
  double original_period_s = 0;    // I/O period at `original`, waits excluded; 0: unknown
  std::vector<NodeCount> nodes{};  // on which it ran at `original`; empty: it had not reported them
};

// The changes of one application's size that are in force, and the resize request under way.
struct Course {
  CourseState state = CourseState::none;
  SizeChange lasting;
  SizeChange passing;
  RequestId request;          // RECONFIGURE without an answer so far; none: no request is pending
  std::int64_t goal = 0;      // processes that the application is to have next
  Time answer_by{};           // time limit of the return's answer; then the size that an I/O phase reports counts
  std::int64_t before = 0;    // processes when the top layer was decided
  std::int64_t kept = 0;      // processes whose cores are kept: it may have begun the first request; 0: none
  bool unwanted = false;      // the policy of `lasting` is no longer in force: undone once no other change is on top
  std::int64_t refusals = 0;  // refused attempts to return
  Time decided{};             // time of the top layer's decision
  Time start_after{};         // predicted start of the next I/O phase; 0: no prediction
  std::int64_t phases = 0;    // I/O phases of the application at the decision, or at the last phase that was handled
  Time until{};               // deadline registered in Steering::due_; 0: none

  const SizeChange& top() const { return passing.decision != 0 ? passing : lasting; }
  bool is_passing() const { return passing.decision != 0; }
};

// A refused or failed resize. Policies leave the application alone until its next I/O phase, or until a time limit.
struct Refusal {
  std::int64_t phases = 0;  // I/O phases done at the refusal; the next one ends the pause,
  Time until{};             // or this time does
};

// A conflict that a policy left alone. Steering remembers it so that it is reported once for each I/O period, not with
// every event.
struct ReportedConflict {
  std::string_view policy;
  AppId because_of;
  std::int64_t phases = 0;
};

}  // namespace hocket::coordinator
