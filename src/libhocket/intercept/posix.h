// Handles a POSIX access of a regular file by the program itself. Each access is counted. If it is large enough
// (volume.hpp), it belongs to an I/O phase, and to a burst that sends a request, like an independent MPI-IO access.
//
// Accesses by MPI or by libhocket are not the program's own, nor are those of the descriptors 0 to 2. The wrappers that
// call these functions are in C, because a thread may be cancelled in the call that they pass on. The program's
// unwinder could not pass frames of C++ there, since these have the unwinder of the libgcc that is linked into
// libhocket.
//
// The program may call the wrappers in a signal handler, which may have interrupted any code. So they allocate nothing,
// and wait for no lock without a bound. What needs more is done by another thread (process/deputy.hpp).
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

// Starts and ends the thread that asks hocketd for accesses, when MPI has been initialised, and before it is finalized.
// The thread also makes I/O servers store what they hold of a file, by `store` (FileService::store_by_key).
void posix_watch_begins(void (*store)(uint64_t key));
void posix_watch_ends(void);

// Returns true if the program's calls are watched now, in this thread.
bool posix_watched(void);

// The beginning of an access that has no given offset.
enum {
  POSIX_AT_POSITION = -1,  // of the descriptor, which the call moves
  POSIX_ANYWHERE = -2      // nobody can tell
};

// Begins an access of all `count` parts together; may block until a grant comes. `at`: offset in the file, or one of
// the values above. Returns false if the access is not watched. Otherwise the thread must call `posix_end` next. Both
// leave errno as it is.
bool posix_begin(bool writes, const char* routine, int fd, const struct iovec* parts, int count, int64_t at);
// Begins a sync: a write of 0 bytes that may take as long as all writes before it. Otherwise as `posix_begin`.
bool posix_begin_sync(const char* routine, int fd);
// Ends the access. `moved` is in bytes; less than 0 means that the call failed.
void posix_end(ssize_t moved);

// Called before a call that accesses a file. Until the file system has what I/O servers hold of it, they wait: for
// servers of this node, whoever wrote it; for others, if this process did, and then as long as an access through these
// servers would. They leave errno as it is. They serve all processes, also without MPI, and calls by the MPI library.
void posix_show(int fd);
void posix_show_path(int directory, const char* path);
// True if servers may hold data of some file.
bool posix_any_held(void);

// Notes that the descriptors from `first` to `last` are closed or refer to other files.
void posix_forget(unsigned first, unsigned last);

// Returns the next function of that name after libhocket's, and ends the process if there is none.
void* posix_next(const char* name);

#ifdef __cplusplus
}
#endif
