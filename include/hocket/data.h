/* hocket: put and get, the data plane for programs that have no MPI-IO (CLARISSE, section III-A). C99 and C++.
 *
 * A path names a file, or a data set: "hocket:/NAME" has no file, its bytes are in the memory of an I/O server, and
 * applications exchange it by its name. Link with -lhocket. In a job started with `hocket run`, the same functions are
 * in the library that watches the program.
 *
 *   hocket_file* file;
 *   int status = hocket_open("/scratch/field", HOCKET_WRITE | HOCKET_CREATE, NULL, &file);
 *   if (status == HOCKET_OK) {
 *     status = hocket_put(file, 0, field, sizeof field);
 *     const int closed = hocket_file_close(file);
 *     if (status == HOCKET_OK) status = closed;
 *   }
 *   if (status < 0) fprintf(stderr, "%s\n", hocket_error_text(status));
 *
 * Files lie in the one file system that all nodes share. One that lies below the directory of I/O servers (hocket
 * servers) is accessed through these, its bytes dealt out over them in stripes of 1 MiB; else the process accesses it
 * itself. A put is done when the file system has the bytes, or, from servers that write behind, when the servers have
 * them. When a server is lost, the access is done again without it, at last by the process itself. One that only hung
 * and goes on later drops what it was sent, but for a write that it had begun: this may still come over bytes that were
 * put to the same place meanwhile. Processes that have one file open by different servers (of which some lost one, or
 * that were told others) find what the others put through servers that write behind after their hocket_flush alone.
 *
 * A data set has versions. A process, or a group of them, that opens it to write makes the next version, which is there
 * for readers when all of the group have closed it; where one of them dies or a put failed, it never is. A process or
 * group that opens it to read is given the oldest version that its application has not read, and waits for it. A
 * version is forgotten when as many applications as its writer asked for have read it: opened, and closed by all of the
 * group. A writer that is ahead of its readers waits for them. When its server dies, what it kept is lost.
 *
 * A hocket_file may be used by one thread at a time; different ones are independent. A process that is forked must open
 * its own: what it has of its parent's it can only free, by hocket_file_close. Every wait is bounded: a server of which
 * nothing comes for 30 s is lost. No function writes to stdout or stderr, starts a thread or raises a signal. Offsets
 * and lengths are in bytes, below 2^62. About an error, hocket_error_text (hocket.h) has a line.
 */
#ifndef HOCKET_DATA_H
#define HOCKET_DATA_H

#include "hocket.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A file, or one version of a data set, that is open. */
typedef struct hocket_file hocket_file;

/* What it is opened for, joined by |. */
enum {
  HOCKET_READ = 1,
  HOCKET_WRITE = 2,
  /* With HOCKET_WRITE: a file that is not there is made; one that is there keeps its bytes. Data sets are made in any
   * case. */
  HOCKET_CREATE = 4
};

/* As `readers`: a version stays until there is a newer one, for any number of applications; one that opens the data
 * set for the first time is given the newest. */
#define HOCKET_ANY_READERS (-1)

/* How it is opened. A field that is zero or NULL has its default: begin with `hocket_open_options options = {0};`. */
typedef struct hocket_open_options {
  /* The addresses of one I/O server ("unix:/path tcp:host:port"), or of several, a line "NAME DIRECTORY ADDRESSES"
   * each. Default: those that the hocketd of this node knows. */
  const char* servers;
  /* Who opens a data set: processes of one application say the same, of another something else; at most 255
   * characters, no control characters (nor in NAME, which has 1 to 255). Default: $HOCKET_JOB, which `hocket run` sets,
   * else this process alone, "HOST:PID:NUMBER" with a number of chance. */
  const char* application;
  /* How many processes open it together, for collective puts and gets and for data sets. Default: 1. */
  int participants;
  /* A number that these give alike, and nobody else who has it open. Needed where there are several. For a data set
   * another one each time that it is opened, e.g. the time step. */
  uint64_t group;
  /* Of a data set that is written: how many applications are to read the version; or HOCKET_ANY_READERS. Default: 1. */
  int readers;
  /* How many seconds hocket_open waits for a data set: to read for a version that is there, to write for room at the
   * server, both for the other processes of the group. Default: 600. */
  double wait_s;
} hocket_open_options;

/* Opens the file or data set `path`. `mode`: HOCKET_READ, HOCKET_WRITE, or for files both. `options` may be NULL. On
 * success *file is the caller's, who closes it; on failure it is NULL. For data sets it is collective among the
 * participants, and waits for wait_s at most, and for 40 s more where hocketd and the server have stopped. For files it
 * takes 7 s at most where hocketd has stopped, and 2 s for each server that does not answer. A server of a file, also a
 * named one, that is lost when it has answered is left out without a word.
 * Errors: ARGUMENT (also: what is there is no regular file), NOT_FOUND (no such file), ACCESS (not for this user),
 * NO_DAEMON (a data set, and neither hocketd nor `servers` name one), NO_SERVER (a data set, and no server is there, or
 * it is lost; or the named servers do not answer), TIMEOUT (a data set: wait_s is over, also where another process of
 * the group has gone), NO_SPACE (a data set: the server keeps no more; a file that is to be made), IO, MEMORY. */
HOCKET_API int hocket_open(const char* path, int mode, const hocket_open_options* options, hocket_file** file);

/* ---- of this process alone ----------------------------------------------------------------------------------------
 */

/* Puts `bytes` bytes from `data` to where `offset` is. After an error some of them may have been put.
 * Errors: ARGUMENT (also: it was not opened to write), NO_SPACE, NO_SERVER (of data sets: the server is lost, and the
 * version with it), CANCELED (of data sets, as hocket_file_close), IO, MEMORY. */
HOCKET_API int hocket_put(hocket_file* file, int64_t offset, const void* data, int64_t bytes);

/* Gets `bytes` bytes. *got: how many there were; fewer than `bytes` where the file or version ends before (where
 * servers write behind: as hocket_size), which is no error and leaves the rest of `data` as it was, but where the file
 * grows at the same time. `got` may be NULL. After an error `data` is undefined. Errors: ARGUMENT (also: it was not
 * opened to read), NO_SERVER (of data sets), IO, MEMORY. */
HOCKET_API int hocket_get(hocket_file* file, int64_t offset, void* data, int64_t bytes, int64_t* got);

/* The same for `count` blocks of `block_bytes`, the first at `offset`, each `stride_bytes` (>= block_bytes) behind the
 * beginning of the one before it. In `data` they lie one behind the other. */
HOCKET_API int hocket_put_strided(hocket_file* file, int64_t offset, int64_t block_bytes, int64_t stride_bytes,
                                  int64_t count, const void* data);
HOCKET_API int hocket_get_strided(hocket_file* file, int64_t offset, int64_t block_bytes, int64_t stride_bytes,
                                  int64_t count, void* data, int64_t* got);

/* ---- collective ---------------------------------------------------------------------------------------------------
 */

/* The same, by all participants together: the servers merge what neighbours in the file from whichever process.
 * `operation`: a number above 0 that all of them give to what belongs together, e.g. 1, 2, … Who has no data calls too,
 * with 0 bytes. Nobody waits for another: a participant that never calls costs the others some milliseconds. Errors
 * are of this process's data. Without servers they are as above. */
HOCKET_API int hocket_put_all(hocket_file* file, uint64_t operation, int64_t offset, const void* data, int64_t bytes);
HOCKET_API int hocket_get_all(hocket_file* file, uint64_t operation, int64_t offset, void* data, int64_t bytes,
                              int64_t* got);
HOCKET_API int hocket_put_strided_all(hocket_file* file, uint64_t operation, int64_t offset, int64_t block_bytes,
                                      int64_t stride_bytes, int64_t count, const void* data);
HOCKET_API int hocket_get_strided_all(hocket_file* file, uint64_t operation, int64_t offset, int64_t block_bytes,
                                      int64_t stride_bytes, int64_t count, void* data, int64_t* got);

/* ---- about it -----------------------------------------------------------------------------------------------------
 */

/* The length: of a file now (where servers write behind: as of the last hocket_flush), of a version that is read; of
 * one that is written, as far as this process has put. Errors: ARGUMENT, IO. */
HOCKET_API int hocket_size(hocket_file* file, int64_t* bytes);

/* Which version of the data set this is: 1, 2, … Errors: ARGUMENT (also: it is a file). */
HOCKET_API int hocket_version(hocket_file* file, int64_t* version);

/* What was put to the file before, by whichever process through the same servers, is on the storage; or is not, which
 * the error tells. Of a data set nothing is stored, and nothing happens.
 * Errors: ARGUMENT, NO_SPACE, IO (also: a server that had written behind is lost), MEMORY. */
HOCKET_API int hocket_flush(hocket_file* file);

/* Closes it; `file` is freed whatever is returned. NULL is allowed. Of a data set it is what publishes the version, or
 * says that this process has read it; of a file it tells what failed of what servers wrote behind, as hocket_flush, and
 * what close(2) tells.
 * Errors: ARGUMENT (another process has opened it), CANCELED (a version that was written will never be there, one that
 * was read counts as not read: a put failed, or another process of the group has gone), NO_SERVER (the server of a data
 * set is lost), NO_SPACE, IO, MEMORY. */
HOCKET_API int hocket_file_close(hocket_file* file);

#ifdef __cplusplus
}
#endif

#endif
