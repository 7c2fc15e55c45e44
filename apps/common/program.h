// Functions that the programs of apps/ share: options, failures, and time. They need MPI.
#pragma once

#include <mpi.h>
#include <stdint.h>

enum { PROGRAM_OK = 0, PROGRAM_FAILED = 1, PROGRAM_BAD_INPUT = 2 };  // exit codes
enum { TEXT = 4600 };                                                // bytes of a message: two paths and some words

extern const char kProgram[];  // name of the program in messages; each program defines it

// Returns 1 in all processes of `comm` if any of them gives a text that is not empty. The lowest such rank prints its
// text as one line on stderr. Collective. Use it before a collective call that a failed process would not reach.
int any_failed(MPI_Comm comm, const char* text);

// Stores "cannot DO PATH: why" in `text`, of TEXT bytes, if `code` is an error of MPI.
void mpi_failure(char* text, int code, const char* what, const char* path);

// Stores "cannot DO: why" in `text`, of TEXT bytes, if `status` is an error of hocket_malleable_…. It has a file of
// its own, because only malleable programs link with libhocket.
void malleable_failure(char* text, int status, const char* what);

// Return the value of option --name, whose text is `text`. What is wrong goes into `bad`, of TEXT bytes.
uint64_t whole_number(char* bad, const char* name, const char* text, uint64_t low, uint64_t high);
double real_number(char* bad, const char* name, const char* text, double low, double high);

// Sleeps until `seconds` after `start`, a time of MPI_Wtime. Returns the seconds slept.
double sleep_until(double start, double seconds);

// Returns seconds since 1970. Unlike MPI_Wtime, processes can compare this time.
double wall_clock_s(void);
