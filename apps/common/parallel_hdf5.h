// A file of parallel HDF5 in the phases of an I/O program (phases.h): one group a phase, data sets in it that all ranks
// write or read together.
#pragma once

#include <hdf5.h>

#include "phases.h"

struct hdf5_file {
  hid_t file, transfer;  // transfer: collective
  hid_t group;           // of the phase; 0: none
};

// A rank's part of a data set: a box in it.
struct hdf5_part {
  int dimensions;
  hsize_t whole[3], start[3], count[3];
};

// All are collective and return an exit code; after a failure of opening nothing is open.
int hdf5_open(struct hdf5_file* file, const struct phases* phases, int writes);
int hdf5_close(struct hdf5_file* file, const struct phases* phases);

// The accesses of one phase. The first that fails leaves its reason in `text`, of TEXT bytes, and the others are made
// all the same, for other ranks may not have failed and wait.
void hdf5_begin_step(struct hdf5_file* file, const struct phases* phases, uint64_t phase, const char* group, int writes,
                     char* text);
void hdf5_move(struct hdf5_file* file, const struct phases* phases, const char* name, hid_t type,
               const struct hdf5_part* part, void* data, int writes, char* text);
int hdf5_end_step(struct hdf5_file* file, const struct phases* phases, int writes, char* text);
