// The services of libhocket: what other rooms do around MPI calls of the program, or in their place.
//
// A service is a room of libhocket and one exported record, which is declared here and defined in that room. The room
// includes interception; interception includes no room of a service. The functions are thread-safe and throw nothing.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>

#include "intercept/held_files.hpp"

namespace hocket::runtime {

enum class AccessDirection { read, write };

// Arguments of one access, as the program passed them.
struct AccessCall {
  AccessDirection direction;
  MPI_File file;
  std::optional<MPI_Offset> offset;  // in etypes; no value: at the individual file pointer
  const void* buffer;
  MPI_Count count;
  MPI_Datatype type;
};

// Name and mode with which the MPI library shall open the file: the file itself, or a stand-in for a data set
// (hocket:/NAME). The name lives as long as the argument.
struct OpenedAs {
  const char* name;
  int mode;
};

// Collective I/O (collective/collective.cpp). It performs collective accesses of the files for which all ranks have
// agreed on it (HOCKET_IO=hocket), and all accesses of data sets (hocket:/NAME).
//
// The MPI library has the file open too. It keeps the individual file pointer and performs every access that hocket
// does not. Both write with pwrite, so their accesses may be mixed; what I/O servers hold back is stored before. All
// ranks of a file reach the same decision on who performs an access, because each rank first sends the others whether
// it can.
struct FileService {
  OpenedAs (*to_be_opened)(const char* name, int mode) noexcept;
  // Registers the file after MPI_File_open, which returned `rc`: the ranks agree whether hocket performs its collective
  // accesses (only under HOCKET_IO=hocket). Opens the data set, which may wait for a version. Collective over `comm`.
  // Returns `rc`, or the error of the data set; in that case the handle has been closed, unless MPI_File_open failed in
  // another rank.
  int (*opened)(MPI_Comm comm, const char* name, int mode, MPI_Info info, MPI_File* file, int rc) noexcept;
  // Forgets the file before MPI_File_close. Collective. Returns an error if readers will not see the data set, else
  // MPI_SUCCESS.
  int (*closes)(MPI_File file) noexcept;
  // Takes over the hints after MPI_File_set_info or MPI_File_set_view. Local: the ranks agree with the next access.
  void (*hints_set)(MPI_File file, MPI_Info info) noexcept;
  // Takes over the view after MPI_File_set_view; `ok` says if that succeeded. Local: the view is sent with the first
  // access that needs it.
  void (*view_set)(MPI_File file, MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
                   const char* representation, bool ok) noexcept;
  // Performs a collective access; `status` may be MPI_STATUS_IGNORE. `granted`: all ranks know that hocketd granted it,
  // so hocketd may suspend it between two rounds (but not in atomic mode). No value: the MPI library must perform it,
  // in all ranks. Collective. An error of one rank becomes the result in all: its class, passed to the file's error
  // handler.
  std::optional<int> (*access)(const AccessCall& access, bool granted, MPI_Status* status) noexcept;
  // Flushes what hocket wrote to the storage, before MPI_File_sync. Collective. Returns MPI_SUCCESS or the error.
  int (*sync)(MPI_File file) noexcept;
  // True if MPI_File_close has to wait until I/O servers have stored what was written. Collective; the same in all
  // ranks.
  bool (*stores_at_close)(MPI_File file) noexcept;
  // Makes I/O servers store what they hold of the file, through whichever opening of this process it was written,
  // before the MPI library accesses it. If hocket does not know the file, they store all that this process wrote.
  // Local. Called only if hot.holds is true.
  void (*store)(MPI_File file) noexcept;
  // The same by key, before a POSIX access. Waits with a heartbeat (session/heartbeat.hpp).
  void (*store_by_key)(FileKey key) noexcept;
  // Notes that servers begin or cease to hold puts of a file (api/held_puts.hpp).
  void (*puts_changed)();

  // True if the file is a data set. The MPI library has only a stand-in for it, so the functions below replace its own.
  // Their precondition: is_data_set(file).
  bool (*is_data_set)(MPI_File file) noexcept;
  // Performs an independent access of a data set. Local. Errors go to the file's error handler and are returned.
  int (*access_own)(const AccessCall& access, MPI_Status* status) noexcept;
  // Refuses a routine that data sets do not support: passes an error to the file's error handler and returns it.
  // `writes`: the routine would have written, so the version is incomplete and readers must never see it.
  int (*refuse)(MPI_File file, bool writes) noexcept;
  // Return the length of the data set, in bytes and in elementary types of the view.
  std::int64_t (*size)(MPI_File file) noexcept;
  std::int64_t (*end)(MPI_File file) noexcept;
};
extern const FileService file_service;

// Malleability (malleable/watch.cpp). It limits the time of MPI_Init in a process that a resize started.
struct InitService {
  void (*begins)() noexcept;
  void (*has_ended)() noexcept;
};
extern const InitService init_service;

}  // namespace hocket::runtime
