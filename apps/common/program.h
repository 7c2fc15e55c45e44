// What the programs of apps/ share: options, failures, time.
#pragma once

#include <mpi.h>
#include <stdint.h>

enum { PROGRAM_OK = 0, PROGRAM_FAILED = 1, PROGRAM_BAD_INPUT = 2 };  // exit codes
enum { TEXT = 4600 };                                                // of a failure: two paths and some words

extern const char kProgram[];  // defined by each program: its name in messages

// If any process of `comm` gives a text that is not empty, the lowest such rank prints it as one line on stderr, and
// all of them get 1. Collective.
int any_failed(MPI_Comm comm, const char* text);

// Puts "cannot DO PATH: why" into `text`, of TEXT bytes, if `code` is an error of MPI.
void mpi_failure(char* text, int code, const char* what, const char* path);

// Puts "cannot DO: why" into `text`, of TEXT bytes, if `status` is an error of hocket_malleable_…. Programs that are
// malleable link with libhocket; it is in a file of its own for the others.
void malleable_failure(char* text, int status, const char* what);

// The value of option --name, given as `text`; what is wrong with it goes into `bad`, of TEXT bytes.
uint64_t whole_number(char* bad, const char* name, const char* text, uint64_t low, uint64_t high);
double real_number(char* bad, const char* name, const char* text, double low, double high);

// Sleeps until `seconds` after `start`, a time of MPI_Wtime; returns how long, in seconds.
double sleep_until(double start, double seconds);

// Seconds since 1970: unlike MPI_Wtime, it compares between processes.
double wall_clock_s(void);
