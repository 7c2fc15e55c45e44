// The turns of a process that no other library watches: a program without MPI. Before a put or get it requests a grant
// from hocketd, and waits for it within the time limits of HOCKET_ANSWER_S and HOCKET_MAX_WAIT_S. If hocketd is missing
// or does not answer, the access goes on without a grant.
//
// Each thread that accesses files is a member of the application, with a connection of its own. No thread is started,
// so nothing renews a lease: the grant of an access that takes longer than `lease_s` may go to others.
#pragma once

#include "api/access_turn.hpp"

namespace hocket::api {

// Returns them. Returns nullptr for a call of a group whose processes hocketd cannot know as one application, because
// they lack HOCKET_JOB: one would wait for the grant that another has, and that one for the first's data. Thread-safe.
const AccessTurns* own_turns(AccessPath path) noexcept;

}  // namespace hocket::api
