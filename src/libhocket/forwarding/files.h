// Which descriptors of this process are forwarded: those of regular files below the prefix.
//
// A descriptor is looked at by one system call when the process opens it, which nearly always tells if it is elsewhere,
// and else when it is first used, so it does not matter how the process got it. What is known about it is a hint, which
// may be out of date after a close that the library has not seen: the server looks at each descriptor again. Safe in
// signal handlers; errno is kept.
#pragma once

#include <stdbool.h>

enum { file_most_descriptors = 1 << 16 };  // larger ones are not forwarded

enum file_hint {
  file_unknown,
  file_direct,  // is no regular file below the prefix
  file_forwarded,
  file_own,  // the same, and no other process has its open file description
};

// Returns what the descriptor refers to, as far as is known.
enum file_hint file_look(int fd);
// True if the descriptor is known to refer to no regular file below the prefix. It is not looked at.
bool file_is_elsewhere(int fd);
// Notes that a server has not accepted the descriptor: it has become another one, or is of another file system.
void file_refused(int fd);
// Notes that the descriptors from `first` to `last` refer to something else now.
void file_forget(unsigned first, unsigned last);
// Notes that this process has opened the descriptor itself.
void file_opened(int fd);
// Notes that a new descriptor refers to no file, as that of a socket. -1: there is none.
void file_is_none(int fd);
// Notes that `fd` refers to the same open file description as `old` now.
void file_duplicated(int old, int fd);
// True if this process alone has the open file description, and no other descriptor of it.
bool file_is_single(int fd);
// Notes that the descriptor has been written to at its offset, or not since something happened; and tells it.
void file_wrote(int fd);
void file_not_written(int fd);
bool file_has_written(int fd);
// Notes that it is told by this descriptor that nobody can sync the file. Returns false if it has been told before.
bool file_tell_loss(int fd);
// Notes that another process may have the open file descriptions of all descriptors.
void files_shared(void);
// Notes that the next code of this thread may be that of a child which has this process's memory, but descriptors of
// its own, as vfork's has. What the child opens changes no hint of the parent's.
void files_lent(void);
// Notes that such a child may run at the same time as this process.
void files_lent_beside(void);
// Notes that this process has its memory for itself, as a child of fork has.
void files_are_own(void);
// True in a child that does not.
bool files_are_lent(void);
