// Passes the sentences of src/core/explain to other programs: `hocketd --explain`.
#pragma once

#include <istream>
#include <ostream>

#include "base/result.hpp"

namespace hocket::daemon {

// Reads events, each one line as in a trace of any version, and writes a line of JSON for each:
//   DECISION  {"heading": "a expands …", "sentence": "…", "lines": [["predicted", "…"], …]}
//   OUTCOME   {"subject": "start of the next I/O phase", "brief": "0.25 s later than predicted", "sentence": "…"}
// A DECISION may have further keys, which a reader of the whole trace knows: "zero_ns", from which the seconds in the
// lines count; "stopped_ns", a list with the time of each resize that carried it out; and "until_ns", when the size was
// left again. The error names the line that is neither event.
Status explain_lines(std::istream& in, std::ostream& out);

}  // namespace hocket::daemon
