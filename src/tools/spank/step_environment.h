// What the plugin changes in the environment of a step's tasks: the same variables as `hocket run` sets
// (docs/design/environment.md). Pure, but for the memory of the texts, which the caller frees.
#pragma once

#include <stdbool.h>

// The parts of an application's identity that Slurm knows.
struct step_identity {
  const char* cluster;
  unsigned job;
  unsigned step;
  unsigned array_job;   // 0: the job is no part of an array
  unsigned array_task;  // in it
  unsigned restarts;    // how often the job was requeued
};

// HOCKET_JOB, which is unique: "slurm:CLUSTER:1234.0", "slurm:CLUSTER:1234.0:1" after one requeue. No host has a colon
// in its name, so no `hocket run` makes such a text. Returns NULL without memory.
char* job_of_step(const struct step_identity* step);

// True if a plugin made the text, here or in a step around this one.
bool is_job_of_step(const char* job);

// HOCKET_NAME: the program, or the script without ".py", with the ids that squeue shows: "solver-1234.0",
// "solver-1234_7.0". Returns NULL without
// memory.
char* name_of_step(const char* program, const struct step_identity* step);

// LD_PRELOAD without each libhocket-*.so. Returns NULL without memory.
char* without_libhocket(const char* preload);

// LD_PRELOAD with the library in front. Returns NULL without memory.
char* with_libhocket(const char* library, const char* preload);

// The first libhocket-*.so in LD_PRELOAD; NULL if there is none, or no memory.
char* libhocket_in(const char* preload);
