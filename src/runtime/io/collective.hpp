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

// After MPI_File_open: whether hocket does collective accesses of the file. `file`: nullptr where opening failed in
// this rank. Collective over `comm`; nothing happens but under HOCKET_IO=hocket.
void file_opened(MPI_Comm comm, const char* name, int mode, MPI_Info info, const MPI_File* file) noexcept;
// Before MPI_File_close. Collective.
void file_closes(MPI_File file) noexcept;
// After MPI_File_set_info or MPI_File_set_view, for its hints. Local: all agree on them with the next access.
void hints_set(MPI_File file, MPI_Info info) noexcept;
// After MPI_File_set_view, `ok` or not. Local: the view travels with the first access that needs it.
void view_set(MPI_File file, MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
              const char* representation, bool ok) noexcept;

// Does the access; the status may be MPI_STATUS_IGNORE. No value: the MPI library is to do it, in all ranks.
// Collective. An error of one rank is the result in all: its class, passed to the file's error handler.
std::optional<int> access(const Access& access, MPI_Status* status) noexcept;

// Before MPI_File_sync: what hocket wrote is on the storage, or is not (the error). Collective.
int sync(MPI_File file) noexcept;

}  // namespace hocket::runtime::io
