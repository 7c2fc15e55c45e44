/* hocket: put and get with MPI datatypes, of files and data sets that file.h opens (CLARISSE, section III-A).
 *
 *   MPI_Type_vector(rows, 100, 1000, MPI_DOUBLE, &columns);      // this process's 100 of 1000 columns, in the file
 *   hocket_file_open("/scratch/field", HOCKET_FILE_WRITE | HOCKET_FILE_CREATE, NULL, &file);
 *   hocket_file_put_typed(file, rank * 100 * sizeof(double), columns, field, 100 * rows, MPI_DOUBLE);
 *   hocket_file_close(file);
 *
 * Two datatypes describe an access. `filetype` says where the data are in the file: it is repeated without end from
 * `offset` on, as in a file view. `count` items of `type` at `data` say where they are in memory, as in MPI_File_write.
 * Only the numbers of bytes must fit: no elementary types are compared, and the last filetype may be used in part.
 *
 * Life cycle, time limits, ownership and coordination are those of file.h. Link with -lhocket-mpich or -lhocket-openmpi
 * (lib/hocket of the installation, `pkg-config hocket-mpich`), named before the MPI library itself.
 *
 * - Who calls: every function is local; those named …_all are called by all participants of hocket_file_open. None
 *   communicates by MPI.
 * - Threads: as in file.h, between MPI_Init and MPI_Finalize.
 * - Ownership: datatypes are used only during the call, and need not be committed.
 * - Errors: functions return HOCKET_OK or a negative HOCKET_ERROR_…; hocket_error_text (error.h) has a line about it.
 */
#ifndef HOCKET_FILE_MPI_H
#define HOCKET_FILE_MPI_H

#include <mpi.h>
#include <stdint.h>

#include "file.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the data. `data` may be MPI_BOTTOM if `type` has absolute addresses. Errors: as hocket_file_put; ORDER (before
 * MPI_Init or after MPI_Finalize); ARGUMENT also: MPI_DATATYPE_NULL, a filetype whose offsets overlap, go back or are
 * below 0, a filetype without data for an access with data, data behind 2^62. */
HOCKET_API int hocket_file_put_typed(hocket_file* file, int64_t offset, MPI_Datatype filetype, const void* data,
                                     int64_t count, MPI_Datatype type);

/* Reads the data. If the file or version ends before, *got is smaller, and the rest of the memory is unchanged, as for
 * hocket_file_get. If `type` overlaps itself, it is undefined which of the data remain there. */
HOCKET_API int hocket_file_get_typed(hocket_file* file, int64_t offset, MPI_Datatype filetype, void* data,
                                     int64_t count, MPI_Datatype type, int64_t* got);

/* Do the same, all participants together, as hocket_file_put_all. A participant without data has the count 0. */
HOCKET_API int hocket_file_put_typed_all(hocket_file* file, uint64_t operation, int64_t offset, MPI_Datatype filetype,
                                         const void* data, int64_t count, MPI_Datatype type);
HOCKET_API int hocket_file_get_typed_all(hocket_file* file, uint64_t operation, int64_t offset, MPI_Datatype filetype,
                                         void* data, int64_t count, MPI_Datatype type, int64_t* got);

#ifdef __cplusplus
}
#endif

#endif
