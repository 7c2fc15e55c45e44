// A file of parallel HDF5 for the phases of an I/O program (phases.h). Each phase has one group, whose data sets all
// ranks write or read together.
#pragma once

#include <hdf5.h>

#include "phases.h"

// An open file. The ids belong to HDF5, and hdf5_close releases them.
struct hdf5_file {
  hid_t file, transfer;  // transfer: property list of collective accesses
  hid_t group;           // group of the phase; 0: none
};

// A rank's part of a data set: a box of up to three dimensions.
struct hdf5_part {
  int dimensions;
  hsize_t whole[3], start[3], count[3];
};

// Open and close the file with the hints. Both are collective and return an exit code. If opening fails, nothing is
// open.
int hdf5_open(struct hdf5_file* file, const struct phases* phases, int writes);
int hdf5_close(struct hdf5_file* file, const struct phases* phases);

// Do the accesses of one phase. The first failure stores its reason in `text`, of TEXT bytes. The later calls are
// made all the same, because other ranks may not have failed and would wait.
void hdf5_begin_step(struct hdf5_file* file, const struct phases* phases, uint64_t phase, const char* group, int writes,
                     char* text);
void hdf5_move(struct hdf5_file* file, const struct phases* phases, const char* name, hid_t type,
               const struct hdf5_part* part, void* data, int writes, char* text);
int hdf5_end_step(struct hdf5_file* file, const struct phases* phases, int writes, char* text);
