// A file for each process, by POSIX calls (IOR's -F -a POSIX).
#pragma once

#include <stdint.h>

// Each function puts what is wrong into `text`, of TEXT bytes, and leaves it alone where nothing is.

// Opens FILE.RANK, whose name goes into `path`, of TEXT bytes. Returns the descriptor.
int open_own_file(const char* file, int rank, int writes, char* path, char* text);

// Writes or reads all `bytes` at an offset.
void move_in_own_file(int descriptor, const char* path, char* data, uint64_t bytes, uint64_t at, int writes,
                      char* text);

void sync_own_file(int descriptor, const char* path, char* text);
void close_own_file(int descriptor, const char* path, char* text);
