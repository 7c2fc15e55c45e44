#include "parallel_hdf5.h"

#include <stdio.h>
#include <string.h>

#include "program.h"

// ---- failures ------------------------------------------------------------------------------------------------------

// Takes the description of the innermost error (callback of H5Ewalk2).
static herr_t take_first(unsigned which, const H5E_error2_t* error, void* text) {
  if (which == 0) snprintf(text, 256, "%s", error->desc ? error->desc : "");
  return 0;
}

// Stores "cannot DO NAME in PATH: why" in text if the result means failure. The first failure stays.
static void hdf5_failure(char* text, int64_t result, const char* what, const char* name, const char* path) {
  char why[256] = "";
  if (result >= 0 || text[0]) return;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, why);  // begins with the innermost error
  snprintf(text, TEXT, "cannot %s %s in %s: HDF5 says: %s", what, name, path, why);
}

// ---- the file ------------------------------------------------------------------------------------------------------

int hdf5_open(struct hdf5_file* file, const struct phases* phases, int writes) {
  char text[TEXT] = "";
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);  // failures are reported in one line instead
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  file->transfer = H5Pcreate(H5P_DATASET_XFER);
  file->group = 0;
  hdf5_failure(text, H5Pset_fapl_mpio(access, MPI_COMM_WORLD, phases->info), "use", "MPI-IO", phases->path);
  hdf5_failure(text, H5Pset_dxpl_mpio(file->transfer, H5FD_MPIO_COLLECTIVE), "use", "collective MPI-IO", phases->path);
  file->file = writes ? H5Fcreate(phases->path, H5F_ACC_TRUNC, H5P_DEFAULT, access)
                      : H5Fopen(phases->path, H5F_ACC_RDONLY, access);
  hdf5_failure(text, file->file, writes ? "create" : "open", "the file", phases->path);
  H5Pclose(access);
  if (!any_failed(MPI_COMM_WORLD, text)) return PROGRAM_OK;
  if (file->file >= 0) H5Fclose(file->file);
  H5Pclose(file->transfer);
  return PROGRAM_FAILED;
}

int hdf5_close(struct hdf5_file* file, const struct phases* phases) {
  char text[TEXT] = "";
  H5Pclose(file->transfer);
  hdf5_failure(text, H5Fclose(file->file), "close", "the file", phases->path);
  return any_failed(MPI_COMM_WORLD, text) ? PROGRAM_FAILED : PROGRAM_OK;
}

// ---- one phase -----------------------------------------------------------------------------------------------------

void hdf5_begin_step(struct hdf5_file* file, const struct phases* phases, uint64_t phase, const char* group, int writes,
                     char* text) {
  char name[128];
  snprintf(name, sizeof name, "Step#%llu%s", (unsigned long long)phase, group);
  // A step's group may be nested ("Step#3/Block/E"), so HDF5 creates the groups above it.
  const hid_t links = H5Pcreate(H5P_LINK_CREATE);
  H5Pset_create_intermediate_group(links, 1);
  file->group =
      writes ? H5Gcreate2(file->file, name, links, H5P_DEFAULT, H5P_DEFAULT) : H5Gopen2(file->file, name, H5P_DEFAULT);
  hdf5_failure(text, file->group, writes ? "create" : "open", name, phases->path);
  H5Pclose(links);
}

void hdf5_move(struct hdf5_file* file, const struct phases* phases, const char* name, hid_t type,
               const struct hdf5_part* part, void* data, int writes, char* text) {
  const hid_t in_file = H5Screate_simple(part->dimensions, part->whole, NULL);
  const hid_t in_memory = H5Screate_simple(part->dimensions, part->count, NULL);
  H5Sselect_hyperslab(in_file, H5S_SELECT_SET, part->start, NULL, part->count, NULL);
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_obj_track_times(creation, 0);  // the same run writes the same bytes
  const hid_t set = writes ? H5Dcreate2(file->group, name, type, in_file, H5P_DEFAULT, creation, H5P_DEFAULT)
                           : H5Dopen2(file->group, name, H5P_DEFAULT);
  hdf5_failure(text, set, writes ? "create" : "open", name, phases->path);
  if (set >= 0) {
    const herr_t moved = writes ? H5Dwrite(set, type, in_memory, in_file, file->transfer, data)
                                : H5Dread(set, type, in_memory, in_file, file->transfer, data);
    hdf5_failure(text, moved, writes ? "write" : "read", name, phases->path);
    hdf5_failure(text, H5Dclose(set), "close", name, phases->path);
  }
  H5Pclose(creation);
  H5Sclose(in_memory);
  H5Sclose(in_file);
}

// Closes the group even after a failure, for other ranks may be in the same collective call.
int hdf5_end_step(struct hdf5_file* file, const struct phases* phases, int writes, char* text) {
  if (file->group >= 0) hdf5_failure(text, H5Gclose(file->group), "close", "a group", phases->path);
  if (writes && phases->syncs) hdf5_failure(text, H5Fflush(file->file, H5F_SCOPE_GLOBAL), "sync", "all", phases->path);
  return any_failed(MPI_COMM_WORLD, text) ? PROGRAM_FAILED : PROGRAM_OK;
}
