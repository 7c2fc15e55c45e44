// A file for each process, accessed by POSIX calls (IOR's -F -a POSIX).
#pragma once

#include <stdint.h>

// Each function stores what is wrong in `text`, of TEXT bytes, and does not change `text` on success.

// Opens FILE.RANK and stores this name in `path`, of TEXT bytes. Returns the descriptor, or -1 on failure.
int open_own_file(const char* file, int rank, int writes, char* path, char* text);

// Writes or reads all `bytes` at the offset `at`.
void move_in_own_file(int descriptor, const char* path, char* data, uint64_t bytes, uint64_t at, int writes,
                      char* text);

void sync_own_file(int descriptor, const char* path, char* text);
void close_own_file(int descriptor, const char* path, char* text);
