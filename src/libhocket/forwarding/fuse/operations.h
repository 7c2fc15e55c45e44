// The file system of the mount: everything passes through to the directory below it.
#pragma once

#include "forwarding/fuse/handles.h"

struct fuse_lowlevel_ops all_operations(void);
