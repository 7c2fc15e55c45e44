/* hocket: put and get, the data plane for programs without MPI-IO (CLARISSE, section III-A). C99 and C++.
 *
 * A path names a file or a data set. A data set, "hocket:/NAME", has no file: its bytes are in the memory of the I/O
 * servers, and applications exchange it by its name. Link with -lhocket. In a job started with `hocket run`, the same
 * functions are in the library that watches the program.
 *
 *   hocket_file* file;
 *   int status = hocket_file_open("/scratch/field", HOCKET_FILE_WRITE | HOCKET_FILE_CREATE, NULL, &file);
 *   if (status == HOCKET_OK) {
 *     status = hocket_file_put(file, 0, field, sizeof field);
 *     const int closed = hocket_file_close(file);
 *     if (status == HOCKET_OK) status = closed;
 *   }
 *   if (status < 0) fprintf(stderr, "%s\n", hocket_error_text(status));
 *
 * Life cycle; a bracket joins a pair:
 *
 *   +- hocket_file_open                   data set: all participants; waits for a version to read, or for room
 *   |    hocket_file_put, _put_strided, _put_list
 *   |                                     each process alone; opened to write
 *   |    hocket_file_get, _get_strided, _get_list
 *   |                                     each process alone; opened to read
 *   |    _put_typed, _get_typed           the same for MPI datatypes (file_mpi.h)
 *   |    the same with _all               all participants, with the number of the operation
 *   |    hocket_file_size, _version       each process alone, at any time
 *   |    hocket_file_flush                file: what was put is on the storage afterwards
 *   +- hocket_file_close                  data set: publishes the version that was written, or marks it as read
 *
 * Life of one version of a data set:
 *
 *   writers:   open -- put -- close
 *                               |
 *                           published --------------------------> removed
 *                               |                                    ^
 *   readers:   open . (waits) . + -- get -- close -------------------+  when enough applications have read it
 *
 * Files lie in the one file system that all nodes share. If a file lies below the directory of I/O servers (`hocket
 * servers`), it is accessed through them, and its bytes are divided over them in stripes of 1 MiB; else the process
 * accesses it itself. A put is complete when the file system has the bytes or, with servers that write behind, when the
 * servers have them.
 *
 * If a server has ended, the access is repeated without it, at last by the process itself. While a server that does not
 * answer may still write, accesses fail (IO), so that it cannot overwrite newer bytes later. Processes that use
 * hocketd's servers see what others have put, also while servers come and go, and whether they put and get or access
 * the file by collective MPI-IO of `hocket run --io hocket`. If processes name servers that write behind, or have lost
 * one that lives, they see what others put through other servers only after the others' hocket_file_flush.
 *
 * A data set has versions. A process, or a group of processes, that opens it to write makes the next version. Readers
 * see the version when all of the group have closed it; if one of them dies, or a put failed, they never do. A process
 * or group that opens the data set to read receives the oldest version that its application has not read, and waits for
 * it. A version is removed when as many applications as its writer asked for have read it, that is, opened it and
 * closed it in all processes of the group. A writer that is ahead of its readers waits for them. If a server dies,
 * the versions are lost of which it had a part; each application that was to read one is told so once, by NO_SERVER.
 *
 * - Who calls: every function is local to the process, except that processes of a group open a data set together, and
 *   call the functions named …_all together. None needs MPI.
 * - Threads: a hocket_file may be used by one thread at a time; different ones are independent. No function starts a
 *   thread or raises a signal. A forked process must open its own files: it can only free its parent's, with
 *   hocket_file_close.
 * - Ownership: the caller owns the hocket_file from hocket_file_open to hocket_file_close, and all memory that it
 *   passes. hocket uses that memory only during the call.
 * - Units: offsets and lengths are in bytes, below 2^62.
 * - Time limits: every wait is bounded; a server from which nothing comes for 30 s is lost.
 * - Coordination: in an MPI program of `hocket run`, put, get, and flush of a file wait for the application's turn at
 * the storage, and so does the close of one whose servers write behind. HOCKET_POSIX=0 switches it off. In a program
 * without MPI they do so if a hocketd runs, for at most HOCKET_MAX_WAIT_S, and HOCKET_ANSWER_S without an answer; in
 * calls of a group only if HOCKET_JOB is set. HOCKET_COORDINATE=0 switches that off, unless the operator holds the
 * target.
 * - Errors: functions return HOCKET_OK or a negative HOCKET_ERROR_…; hocket_error_text (error.h) has a line about it.
 *   No function writes to stdout or stderr.
 */
#ifndef HOCKET_FILE_H
#define HOCKET_FILE_H

#include <stdint.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An open file, or one open version of a data set. */
typedef struct hocket_file hocket_file;

/* Modes of hocket_file_open, combined by |. */
enum {
  HOCKET_FILE_READ = 1,
  HOCKET_FILE_WRITE = 2,
  /* With HOCKET_FILE_WRITE: creates a file that does not exist; an existing one keeps its bytes. Data sets are created
   * in any case. */
  HOCKET_FILE_CREATE = 4
};

/* As `readers`: a version stays until there is a newer one, for any number of applications. An application that opens
 * the data set for the first time receives the newest. */
#define HOCKET_FILE_ANY_READERS (-1)

/* Options of hocket_file_open. A field that is zero or NULL has its default: begin with `hocket_file_options options =
 * {0};`. The strings need to live only during the call. */
typedef struct hocket_file_options {
  /* Addresses of one I/O server ("unix:/path tcp:host:port#instance", as it prints them), or several servers, one line
   * "NAME DIRECTORY ADDRESSES" each. Default: the servers that the hocketd of this node knows. */
  const char* servers;
  /* Name of the application that opens a data set: the same in all of its processes, another in every other
   * application. At most 255 characters, none of them a control character (the same holds for NAME, which has 1 to
   * 255). Default: $HOCKET_JOB, which `hocket run` sets; else "HOST:PID:NUMBER" with a random number, so that this
   * process is an application by itself. */
  const char* application;
  /* Number of processes that open the file together, for collective puts and gets and for data sets. Default: 1. */
  int participants;
  /* Number that these processes have in common, and no other process that has the file open. Required for several
   * participants. For a data set it must be another one each time that the data set is opened, e.g. the time step. */
  uint64_t group;
  /* Number of applications that will read the version of a data set that is written; or HOCKET_FILE_ANY_READERS.
   * Default: 1. */
  int readers;
  /* Time limit of hocket_file_open for a data set, in seconds: for a version to read, or for room at the server to
   * write one, and for the other processes of the group. Default: 600. */
  double wait_s;
} hocket_file_options;

/* Opens the file or data set `path`. `mode` is HOCKET_FILE_READ or HOCKET_FILE_WRITE, or for files both. `options` may
 * be NULL. On success the caller owns *file and closes it with hocket_file_close; on failure *file is NULL.
 *
 * For data sets the call is collective among the participants. It blocks for at most wait_s, and for 40 s more if
 * hocketd and the server hang. For files it blocks for at most 7 s if hocketd hangs, and for 2 s for each server that
 * does not answer. A server of a file that is lost after it has answered is left out silently, even if it was named in
 * `servers`.
 *
 * Errors: ARGUMENT (also: the path is no regular file), NOT_FOUND (no such file), ACCESS (permission denied), NO_DAEMON
 * (data set: neither hocketd nor `servers` names a server), NO_SERVER (data set: no server is running, or it was lost;
 * file: the named servers do not answer), TIMEOUT (data set: wait_s is over, also because another process of the group
 * has gone), NO_SPACE (data set: the server's memory is full; file: it cannot be created), IO, MEMORY. */
HOCKET_API int hocket_file_open(const char* path, int mode, const hocket_file_options* options, hocket_file** file);

/* ---- of this process alone --------------------------------------------------------------------------------------- */

/* Writes `bytes` bytes from `data` to `offset`. Local. After an error some of them may have been written. Errors:
 * ARGUMENT (also: the file was not opened to write), NO_SPACE, NO_SERVER (data set: the server was lost, and the
 * version with it), CANCELED (data set: as for hocket_file_close), IO, MEMORY. */
HOCKET_API int hocket_file_put(hocket_file* file, int64_t offset, const void* data, int64_t bytes);

/* Reads `bytes` bytes at `offset` into `data`. Local. *got receives their number; `got` may be NULL. If the file or
 * version ends before, *got is smaller. That is no error, and
 * the rest of `data` is unchanged, unless the file grows at the same time. After an error `data` is undefined. Errors:
 * ARGUMENT (also: the file was not opened to read), NO_SERVER (data set), IO, MEMORY. */
HOCKET_API int hocket_file_get(hocket_file* file, int64_t offset, void* data, int64_t bytes, int64_t* got);

/* Do the same for `count` blocks of `block_bytes` bytes. The first is at `offset`; each begins `stride_bytes` (>=
 * block_bytes) behind the beginning of the one before. In `data` the blocks follow each other without gaps. */
HOCKET_API int hocket_file_put_strided(hocket_file* file, int64_t offset, int64_t block_bytes, int64_t stride_bytes,
                                       int64_t count, const void* data);
HOCKET_API int hocket_file_get_strided(hocket_file* file, int64_t offset, int64_t block_bytes, int64_t stride_bytes,
                                       int64_t count, void* data, int64_t* got);

/* Do the same for `count` extents of the file: extent i has `bytes[i]` bytes from `offsets[i]` on. In `data` the
 * extents follow each other without gaps, in the order of the list. The offsets may come in any order. An extent of 0
 * bytes, and a list without extents, have no data. If the file or version ends before some extents do, *got counts the
 * bytes before its end; those of the others are unchanged in `data`. Extents of one call must not overlap, in a get
 * neither: such a list does nothing. Errors: as above; ARGUMENT also: a negative count, offset or length, extents that
 * overlap or end behind 2^62. */
HOCKET_API int hocket_file_put_list(hocket_file* file, int64_t count, const int64_t* offsets, const int64_t* bytes,
                                    const void* data);
HOCKET_API int hocket_file_get_list(hocket_file* file, int64_t count, const int64_t* offsets, const int64_t* bytes,
                                    void* data, int64_t* got);

/* ---- collective -------------------------------------------------------------------------------------------------- */

/* Do the same, all participants together: the servers merge data that are neighbours in the file, whichever process
 * they come from. `operation` is a number above 0 that all participants give to the calls that belong together, e.g. 1,
 * 2, … A participant without data calls with 0 bytes. No participant waits for another; one that never calls costs the
 * others some milliseconds. Errors concern the data of this process. Without servers the functions work as the ones
 * above. */
HOCKET_API int hocket_file_put_all(hocket_file* file, uint64_t operation, int64_t offset, const void* data,
                                   int64_t bytes);
HOCKET_API int hocket_file_get_all(hocket_file* file, uint64_t operation, int64_t offset, void* data, int64_t bytes,
                                   int64_t* got);
HOCKET_API int hocket_file_put_strided_all(hocket_file* file, uint64_t operation, int64_t offset, int64_t block_bytes,
                                           int64_t stride_bytes, int64_t count, const void* data);
HOCKET_API int hocket_file_get_strided_all(hocket_file* file, uint64_t operation, int64_t offset, int64_t block_bytes,
                                           int64_t stride_bytes, int64_t count, void* data, int64_t* got);

HOCKET_API int hocket_file_put_list_all(hocket_file* file, uint64_t operation, int64_t count, const int64_t* offsets,
                                        const int64_t* bytes, const void* data);
HOCKET_API int hocket_file_get_list_all(hocket_file* file, uint64_t operation, int64_t count, const int64_t* offsets,
                                        const int64_t* bytes, void* data, int64_t* got);

/* ---- about it ---------------------------------------------------------------------------------------------------- */

/* Returns the length in bytes: of a file, as it is now; of a version that is read; of a version that is written, as far
 * as this process has put. Local. Errors: ARGUMENT, IO. */
HOCKET_API int hocket_file_size(hocket_file* file, int64_t* bytes);

/* Returns the number of this version of the data set: 1, 2, … Local. Errors: ARGUMENT (also: it is a file). */
HOCKET_API int hocket_file_version(hocket_file* file, int64_t* version);

/* Stores everything that was put to the file before, by whichever process through the same servers. On HOCKET_OK it is
 * on the storage. Does nothing for a data set, which is never stored. Each loss of data is reported once, by flush or
 * close: put the data again. Local. Errors: ARGUMENT, NO_SPACE, IO (also: a server that writes behind was lost, and
 * held data or may have held data of other processes), MEMORY. */
HOCKET_API int hocket_file_flush(hocket_file* file);

/* Closes the file and frees `file`, whatever it returns. `file` may be NULL. Closing a data set publishes the version
 * that was written, or states that this process has read it. Closing a file reports failures of writing behind, as
 * hocket_file_flush does, and those of close(2). Errors: ARGUMENT (another process has opened it), CANCELED (a version
 * that was written will never be visible, one that was read counts as not read: a put failed, or another process of the
 * group has gone), NO_SERVER (the server of a data set was lost), NO_SPACE, IO, MEMORY. */
HOCKET_API int hocket_file_close(hocket_file* file);

#ifdef __cplusplus
}
#endif

#endif
