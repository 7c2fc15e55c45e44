// What a policy made of an application's size, and how far that is.
//
//            RECONFIGURATION        RECONFIGURE back      RECONFIGURATION       the I/O phase that it was for
//   going ──────────────────> there ────────────────> returning ────────> awaited ────────> (gone)
//     └─────────── refused, late, its phase came, cores wanted ──^
//
// A change for good (`lasting`) stays `there`. On top of one, a temporary one (`passing`) may come and go: phase
// shifting after period coupling, a measurement.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/ids.hpp"
#include "base/time.hpp"

namespace hocket::coordinator {

enum class Stage { going, there, returning, awaited };

struct Layer {
  std::int64_t decision = 0;  // 0: there is none
  std::string_view policy;
  std::int64_t original = 0;  // processes
  std::int64_t processes = 0;
  std::int64_t return_at = 0;  // iteration; 0: when it is asked to
};

struct Course {
  Layer lasting;
  Layer passing;
  Stage stage = Stage::going;  // of the top layer
  RequestId request;           // RECONFIGURE that is not answered yet; none: nothing is asked for
  std::int64_t goal = 0;       // its processes
  Time answer_by{};            // of the return: after that its size is believed where an I/O phase shows it
  std::int64_t before = 0;     // processes, when the top layer was decided
  bool reserved = false;       // it may have begun what it was asked for before it was told to go back
  bool hurried = false;        // goes back as soon as it can, whatever its iteration
  bool unwanted = false;       // `lasting` is to go back when nothing is on top of it
  bool phase_came = false;     // the one that `passing` was for
  std::int64_t refusals = 0;   // of the return
  Time decided{};              // of the top layer
  Time start_after{};          // predicted by it; 0: not
  std::int64_t phases = 0;     // of the application, when the top layer was decided
  Time until{};                // in Steering's list of what is due; 0: not

  const Layer& top() const { return passing.decision != 0 ? passing : lasting; }
  bool is_passing() const { return passing.decision != 0; }
};

// When an application refused or failed a resize.
struct Refusal {
  std::int64_t phases = 0;  // that it had done: not asked again before its next one,
  Time until{};             // or before then
};

// A conflict that was left alone, so that it is not told again with each event of the same I/O period.
struct Told {
  std::string_view policy;
  AppId because_of;
  std::int64_t phases = 0;
};

}  // namespace hocket::coordinator
