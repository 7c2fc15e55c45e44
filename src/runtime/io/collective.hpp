// Collective accesses that hocket does itself, of the files for which all ranks have agreed on it (HOCKET_IO=hocket).
//
// The MPI library has the file open too: it keeps the individual file pointer, and does everything that is not done
// here, access by access: both write with pwrite and keep no data back, so they may be mixed. All ranks of a file come
// to the same answer to whether hocket does an access, for each tells the others whether it can.
#pragma once

#include <mpi.h>

#include <optional>

#include "runtime/mpi/files.hpp"

namespace hocket::runtime::io {

// The arguments of a collective access.
struct Access {
  Direction direction;
  MPI_File file;
  std::optional<MPI_Offset> offset;  // in etypes; none: by the individual file pointer
  const void* buffer;
  MPI_Count count;
  MPI_Datatype type;
};

// What the MPI library is to open: the file itself, or something in the place of a data set (hocket:/NAME).
struct Opened {
  const char* name;
  int mode;
};
Opened to_be_opened(const char* name, int mode) noexcept;
// After that, which returned `rc`: whether hocket does collective accesses of the file (under HOCKET_IO=hocket alone);
// and the data set is opened, which may wait for it. Collective over `comm`. `rc`, or the error of the data set: the
// file has been closed then.
int file_opened(MPI_Comm comm, const char* name, int mode, MPI_Info info, MPI_File* file, int rc) noexcept;
// Before MPI_File_close. Collective. The error of a data set that readers will not see.
int file_closes(MPI_File file) noexcept;
// After MPI_File_set_info or MPI_File_set_view, for its hints. Local: all agree on them with the next access.
void hints_set(MPI_File file, MPI_Info info) noexcept;
// After MPI_File_set_view, `ok` or not. Local: the view travels with the first access that needs it.
void view_set(MPI_File file, MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
              const char* representation, bool ok) noexcept;

// Does the access; the status may be MPI_STATUS_IGNORE. `granted`: all ranks know that hocketd granted it, so that it
// may be stopped between two rounds where hocketd says so (not in atomic mode). No value: the MPI library is to do it,
// in all ranks. Collective. An error of one rank is the result in all: its class, passed to the file's error handler.
std::optional<int> access(const Access& access, bool granted, MPI_Status* status) noexcept;

// Data sets, of which the MPI library has nothing. Whether the file is one.
bool is_data_set(MPI_File file) noexcept;
// An independent access of one.
int access_own(const Access& access, MPI_Status* status) noexcept;
// A routine that there is not for data sets: an error, passed to the file's error handler. `writes`: what it would have
// written is missing, so the version is never seen.
int refuse(MPI_File file, bool writes) noexcept;
// Its length in bytes, and in elementary types of the view.
std::int64_t size_of_data_set(MPI_File file) noexcept;
std::int64_t end_of_data_set(MPI_File file) noexcept;

// Before MPI_File_sync: what hocket wrote is on the storage, or is not (the error). Collective.
int sync(MPI_File file) noexcept;

}  // namespace hocket::runtime::io
