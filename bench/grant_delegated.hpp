// Measures accesses to a target that is delegated to the application, and the recall for another one.
#pragma once

namespace bench {

// Runs hocketd on the core `peer`. Returns true if all bounds hold.
bool measure_delegated(int peer);

}  // namespace bench
