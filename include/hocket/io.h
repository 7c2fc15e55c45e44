/* hocket: functions by which an application announces, requests and ends its I/O steps itself (CALCioM, section III-C).
 *
 * MPI programs are coordinated without them: libhocket requests a grant before their file accesses
 * (docs/coordinate.md). A program uses them if it knows more than the MPI library: how much I/O is to come, and where
 * it is best to stop.
 *
 *   MPI_Info_set(info, "bytes", "4000000000");      // of all processes, in this I/O phase
 *   MPI_Info_set(info, "files", "4");
 *   hocket_io_prepare(info);
 *   for (int i = 0; i < 4; i++) {
 *     hocket_io_inform(MPI_COMM_WORLD);             // others may get ready to make room, or to wait
 *     compute_a_little_longer();
 *     hocket_io_wait();                             // for the grant
 *     write_file(i);
 *     hocket_io_release();                          // another application may come first now
 *   }
 *   hocket_io_complete();                           // the others may have the file system
 *
 * A program that can do something else first asks before it informs (examples/coordinate/ask_first.c):
 *
 *   hocket_io_load load;
 *   if (hocket_io_expected_wait(MPI_COMM_WORLD, &load) == HOCKET_OK && load.wait_s > one_more_iteration_s)
 *     compute_one_more_iteration();
 *
 * Life cycle; a bracket joins a pair:
 *
 *   +- hocket_io_prepare           local         announces an I/O phase
 *   |    +- hocket_io_inform       collective    begins a step: requests a grant, without waiting
 *   |    |    +-> hocket_io_check  local         may the step access files now?
 *   |    |    |   hocket_io_wait   collective    waits until it may; stops here if another application shall go first
 *   |    |    |   access files
 *   |    |    +-- again
 *   |    +- hocket_io_release      collective    ends the step: others may come first
 *   |    further steps of the same phase
 *   +- hocket_io_complete          local         withdraws the announcement, and so ends the phase
 *
 * States of a step, and what hocket_io_check answers in rank 0:
 *
 *               inform                    hocketd grants
 *   no step ------------> requested (0) ------------------> granted (1)
 *      ^                        ^                                |
 *      |                        |   check, wait                  |  another application shall go first
 *      |                        +---------------- to stop (0) <--+
 *      +--- release, from any state
 *
 * Link with -lhocket-mpich or -lhocket-openmpi (lib/hocket of the installation, `pkg-config hocket-mpich`), named
 * before the MPI library itself. Without hocketd, or without `hocket run`, all functions succeed at once.
 *
 * A *step* lasts from inform to release and belongs to the processes of one communicator. Its rank 0 alone communicates
 * with hocketd; the application's name is the same whichever process that is. Accesses within a step are coordinated as
 * always: they are granted at once while the step has its grant, and are finer places to stop.
 *
 * Prepare and complete nest, and so do inform and release: an application, its I/O library and the layers below may all
 * call them. The outermost inform requests the grant, and the outermost release gives it back. Each inner release is a
 * place to stop, and an inner inform sends what its level has prepared. An inner communicator has processes of the
 * outer one only. If it lacks some, the step does not stop there, since these may be in the middle of an access.
 *
 * - Who calls: inform, wait and release are collective over the step's communicator; prepare, complete and check are
 *   local.
 * - Threads: one thread at a time, between MPI_Init and MPI_Finalize.
 * - Ownership: hocket copies the info, and uses the communicator until hocket_io_release.
 * - Errors: functions return HOCKET_OK or a negative HOCKET_ERROR_… (hocket_error_text has a line about it). No
 *   function fails because hocketd is missing, and a program need not check what they return. In the wrong order
 *   (HOCKET_ERROR_ORDER) they do nothing, and write one line to stderr the first time.
 * - Time limits: HOCKET_ANSWER_S and HOCKET_MAX_WAIT_S (seconds) bound every wait; after that the step continues
 *   without a grant. They also bound how long wait and release wait for the other processes of the communicator.
 */
#ifndef HOCKET_IO_H
#define HOCKET_IO_H

#include <mpi.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Announces the I/O to come, in addition to earlier announcements, until hocket_io_complete. An application and its
 * libraries may each announce what they know; if a key is given twice, the last value holds, but inner `bytes` and
 * `files` are a part of outer ones. Local: rank 0 of a step, or of a file's communicator, sends its announcements with
 * its requests, less what has been accessed since. The info is copied.
 *
 *   bytes             that all processes will access in the I/O phase, until hocket_io_complete
 *   files             that they will access in it, one after the other
 *   rounds            of collective buffering in each file
 *   bytes_per_round   of all processes; without `bytes`, files * rounds * bytes_per_round is used, and without this
 *                     key, bytes / (files * rounds)
 *
 * Announce files, or rounds, if the application can stop between them: policies expect it.
 *
 *   target            the storage that is shared with others; else
 *   hocket_target     the same; else the file system of
 *   file              the path of a file; else that of the working directory
 *
 *   targets           the parts of that storage that the I/O uses (storage servers, OSTs), "ost3,ost7"; else
 *   hocket_targets    the same; else those on which the file is, if the file system tells; else all of it
 *
 * Two applications conflict only where their parts meet. At most 64 names of at most 64 bytes; others are ignored, with
 * one line on stderr.
 *
 * Other keys are passed on unchanged. A value that should be a number and is none is ignored, with one line on stderr.
 * MPI_INFO_NULL announces nothing. Errors: ORDER (before MPI_Init or after MPI_Finalize), MEMORY. */
HOCKET_API int hocket_io_prepare(MPI_Info info);

/* Withdraws the announcement of the last hocket_io_prepare. With the outermost one that gives a size (bytes, files,
 * rounds or bytes_per_round) the I/O phase ends, and others may use the file system; within a step, at its release.
 * Local. Errors: ORDER (there is none, or MPI is not initialised). */
HOCKET_API int hocket_io_complete(void);

/* How busy the storage is for the calling application. */
typedef struct hocket_io_load {
  double wait_s; /* expected wait for the grant, if the step began now */
  double
      uncertainty_s; /* of wait_s, plus or minus, a standard deviation; INFINITY if an application ahead is unknown */
  int ahead;         /* applications that are served before */
} hocket_io_load;

/* Result of hocket_io_expected_wait: no hocketd has answered, or the program runs without `hocket run`. */
#define HOCKET_IO_LOAD_UNKNOWN 1

/* Asks how long a step would wait for its grant if it began now, so that the program may compute first and come back.
 * Nothing is requested or announced. The target and the bytes are those of hocket_io_prepare. The expectation is that
 * of the policy in force, from what is known of the applications that hold the target or wait for it; later ones, and a
 * bound on waits, may change it. Collective over `comm`, all of whose processes get the same values; one round trip to
 * hocketd, at most HOCKET_ANSWER_S. Call it at most a few times a second.
 *
 * Returns HOCKET_OK, or HOCKET_IO_LOAD_UNKNOWN with a wait of 0, an uncertainty of INFINITY and 0 applications: then
 * the step would not wait either. Errors: ORDER (before MPI_Init or after MPI_Finalize), ARGUMENT (`load` is NULL, or
 * no communicator, or an intercommunicator), MEMORY. */
HOCKET_API int hocket_io_expected_wait(MPI_Comm comm, hocket_io_load* load);

/* Begins a step and requests a grant for it, without waiting. Collective over `comm`, which must live until
 * hocket_io_release. A process that acts for others passes MPI_COMM_SELF, and passes the results on to them itself. A
 * grant that is not used (by check or wait) within hocketd's lease goes to others; the next check or wait requests it
 * again. Within a step it begins an inner level, which uses the step's grant. Errors: ORDER (MPI is not initialised),
 * ARGUMENT (no communicator, or an intercommunicator). */
HOCKET_API int hocket_io_inform(MPI_Comm comm);

/* Sets *authorized to 1 if the step may access files now, else to 0. Local, and takes some nanoseconds. In rank 0 of
 * the step the answer is current; in other ranks it is that of the last hocket_io_wait. If another application shall go
 * first, check returns 0 from then on, and the application must not access files until it returns 1 again; so call it
 * where all processes can stop. Errors: ORDER (no step is open; *authorized is 1), ARGUMENT. */
HOCKET_API int hocket_io_check(int* authorized);

/* Blocks until the step may access files. If another application shall go first, it gives the grant up before it waits,
 * so it is also the place between two accesses where a step stops. No process may be in the middle of an access.
 * Collective over the communicator of the innermost inform; without anything to wait for, it costs a barrier. Errors:
 * ORDER (no step is open). */
HOCKET_API int hocket_io_wait(void);

/* Ends the innermost level. The outermost release ends the step: hocketd decides anew who is next. The I/O phase
 * continues until hocket_io_complete, or until no access has come for HOCKET_PHASE_GAP_S. A request that was not
 * granted yet is withdrawn. An inner release stops like hocket_io_wait, if another application shall go first.
 * Collective over the communicator of the innermost inform: the processes wait for each other, so that none accesses
 * files any more, and count the bytes that they have moved. Errors: ORDER (no step is open). */
HOCKET_API int hocket_io_release(void);

#ifdef __cplusplus
}
#endif

#endif
