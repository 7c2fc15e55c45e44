// Counts the static programs that processes of the run execute: they cannot load this library, so their calls are not
// forwarded.
//
// Safe in signal handlers and in children of vfork; errno is kept.
#pragma once

#include <stdbool.h>

// Counts the program that this process is about to become, if it is static or a script of a static interpreter. `at`
// and `path` are those of execveat; an empty path stands for the file of the descriptor `at`. Returns true if it was
// counted; page_uncount_static takes that back.
bool static_count(int at, const char* path);
