/* hocket: an application that takes its turns at the file system in its own words (CALCioM, section III-C).
 *
 * MPI programs need none of this to be coordinated: libhocket asks before their file accesses (docs/coordinate.md). Who
 * knows more than the MPI library says it here: how much is to come, and where it is best to stop.
 *
 *   MPI_Info_set(info, "bytes", "1000000000");      // of all processes, in this I/O phase
 *   hocket_io_prepare(info);
 *   hocket_io_inform(MPI_COMM_WORLD);               // others may get ready to make room, or to wait
 *   compute_a_little_longer();
 *   for (int i = 0; i < files; i++) {
 *     hocket_io_wait();                             // for our turn; and a place to stop, if another comes first
 *     write_file(i);
 *   }
 *   hocket_io_release();                            // the others may have the file system
 *   hocket_io_complete();
 *
 * Link with -lhocket-mpich or -lhocket-openmpi (lib/hocket of the installation, `pkg-config hocket-mpich`), named
 * before the MPI itself. Without hocketd, and where a program was not started with `hocket run`, all of them succeed at
 * once.
 *
 * From inform to release is a *step*, of the processes of one communicator, whose rank 0 alone talks to hocketd: the
 * application's name is the same whoever it is. A process is in one step at a time. Accesses within a step are
 * coordinated as ever: they are granted at once, as the application has its turn, and are finer places to stop.
 *
 * Functions return HOCKET_OK, or a negative HOCKET_ERROR_… (hocket_error_text has a line about it). None of them fails
 * because hocketd is missing, and no program need look at what they return: called in the wrong order
 * (HOCKET_ERROR_ORDER), they do nothing, and say so on stderr once. Every wait is bounded by HOCKET_ANSWER_S and
 * HOCKET_MAX_WAIT_S; after that the step goes on without a turn. They may be used by one thread at a time, between
 * MPI_Init and MPI_Finalize.
 */
#ifndef HOCKET_COORDINATE_H
#define HOCKET_COORDINATE_H

#include <mpi.h>

#include "hocket.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Says more about the I/O to come, on top of what was said before, until hocket_io_complete. An application and the
 * libraries that it uses each add what they know; of a key that was given twice, the last value holds. Local: what rank
 * 0 of a step, or of a file's communicator, has said is told with its requests. The info is copied.
 *
 *   bytes             that all processes will access in an I/O phase
 *   files             that they will access in a phase, one after the other
 *   rounds            of collective buffering in each file
 *   bytes_per_round   of all processes; where `bytes` is not given, it is files * rounds * bytes_per_round
 *   target            what is shared with others; else
 *   hocket_target     the same; else the file system of
 *   file              the path of a file; else that of the working directory
 *
 * Other keys are handed on as they are. A number that is none is left out, with one line on stderr. MPI_INFO_NULL says
 * nothing. Errors: ORDER (outside of MPI_Init and MPI_Finalize), MEMORY. */
HOCKET_API int hocket_io_prepare(MPI_Info info);

/* Takes back what was said by the last hocket_io_prepare. Local. Errors: ORDER (there was none). */
HOCKET_API int hocket_io_complete(void);

/* A step begins: the application would like its turn. Does not wait for it. Collective over `comm`, which must live
 * until hocket_io_release; by a process that speaks for the others, with MPI_COMM_SELF, which then tells them itself. A
 * turn that is not taken (by check or wait) within hocketd's lease goes to others, and is asked for again by the next
 * check or wait. Errors: ORDER (there is a step already, which goes on), ARGUMENT (no communicator, or one between two
 * groups). */
HOCKET_API int hocket_io_inform(MPI_Comm comm);

/* Whether the step has its turn now: *authorized is 1 or 0. Local. In rank 0 of the step; in the others, what the last
 * hocket_io_wait told them. Where another application is to come first, check says 0 from then on, and the application
 * must not access files until it says 1 again: call it where all processes can stop. Takes some nanoseconds. Errors:
 * ORDER (there is no step; *authorized is 1), ARGUMENT. */
HOCKET_API int hocket_io_check(int* authorized);

/* Waits until the step has its turn, and first gives it up where another application is to come before: so it is also
 * the place between two accesses where a step stops. No process may be in the middle of an access. Collective over the
 * step's communicator; costs a broadcast of one byte where there is nothing to wait for. Errors: ORDER (there is no
 * step). */
HOCKET_API int hocket_io_wait(void);

/* The step ends, and with it the I/O phase: others may have the file system. One that has not had its turn yet takes
 * its request back. Collective: the processes wait for each other, so that none accesses files any more. Errors: ORDER
 * (there is no step). */
HOCKET_API int hocket_io_release(void);

#ifdef __cplusplus
}
#endif

#endif
