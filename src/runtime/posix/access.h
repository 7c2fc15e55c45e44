// A POSIX access of a regular file by the program itself: counted, and where it is large enough (volume.hpp) part of an
// I/O phase and, as an independent access of MPI-IO is, of a burst that asks hocketd first.
//
// What MPI, and what libhocket itself, reads and writes is not the program's; nor is what goes to the descriptors 0 to
// 2. For the wrappers, which are in C: a thread may be cancelled in the call that they pass on, and the frames of C++
// that the unwinder of the program would meet there have another one (libgcc is linked into libhocket).
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

// Whether the program's calls are watched now, in this thread.
bool posix_watched(void);

// One begins, of all the parts together; may wait for a grant. False: it is not watched; otherwise `posix_end` follows
// in this thread. Both leave errno as it is.
bool posix_begin(bool writes, const char* routine, int fd, const struct iovec* parts, int count);
// fsync and fdatasync: a write of no bytes that may take as long as all those before it.
bool posix_begin_sync(const char* routine, int fd);
// It has moved so many bytes; less than 0: failed.
void posix_end(ssize_t moved);

// These descriptors are closed, or become another file's.
void posix_forget(unsigned first, unsigned last);

// The function of that name after ours; ends the process where there is none.
void* posix_next(const char* name);

#ifdef __cplusplus
}
#endif
