// Whose rights a request has. A user's own requests have those of this process. If this process is root's, it takes
// the caller's file system user, groups, and so their rights, in this thread.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse3/fuse_lowlevel.h>
#include <stdbool.h>

// Takes the rights of the request's caller. Returns false if they cannot be known or taken; errno is set.
bool act_for(fuse_req_t request);
// True if the caller has other rights than this process, so that it is not to be forwarded to its servers.
bool is_other(fuse_req_t request);
