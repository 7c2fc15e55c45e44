#define _GNU_SOURCE
#include "forwarding/fuse/caller.h"

#include <errno.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { most_groups = 1024 };

// The rights that this thread has taken. libc's functions would change those of all threads.
static _Thread_local uid_t user;
static _Thread_local gid_t group;
static _Thread_local bool has_taken;

bool is_other(fuse_req_t request) { return geteuid() == 0 && fuse_req_ctx(request)->uid != 0; }

bool act_for(fuse_req_t request) {
  if (geteuid() != 0) return true;
  const struct fuse_ctx* const caller = fuse_req_ctx(request);
  if (has_taken ? user == caller->uid && group == caller->gid && user == 0 : caller->uid == 0 && caller->gid == 0)
    return true;
  gid_t groups[most_groups];
  int count = fuse_req_getgroups(request, most_groups, groups);
  if (count < 0 || count > most_groups) count = 0;  // fewer rights than it may have
  setfsuid(0);
  if (syscall(SYS_setgroups, (long)count, groups) != 0) return false;
  setfsgid(caller->gid);
  setfsuid(caller->uid);
  has_taken = true;
  user = caller->uid;
  group = caller->gid;
  if ((uid_t)setfsuid((uid_t)-1) == caller->uid) return true;
  errno = EPERM;
  return false;
}
