// The capabilities of a server, which root's processes have and others do not.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "base/result.hpp"

namespace hocket::forward {

// Gives up all capabilities but these in the calling thread, and in threads that it starts later. Those of the
// process's other threads stay.
Status keep_only(std::initializer_list<int> capabilities);

// Gives up for ever what a new program could be given: the bounding set, and rights by setuid files. Call it while
// there is one thread.
Status give_up_new_rights();

}  // namespace hocket::forward
